// A group of ranks that run collectives together: its transport, the memory of its arrays, defaults, statistics.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "collective/call_kind.h"
#include "collective/memory.h"
#include "collective/options.h"
#include "core/error.h"
#include "transport/transport.h"

namespace laconic {

class BufferPool;
class Routing;

/// Why ranks of different turns (Communicator::set_turn()) cannot go on.
inline constexpr const char* other_turns =
    "ranks are at different calls: some of them alone left one to the plain library, as where one passes bytes and "
    "another one numbers, or another bound or mode";

/// What all ranks know of a call, having asked each other, beside what its arguments tell; and what they learn of it.
struct InAdvance {
  std::uint64_t bytes = 0;       ///< stand for its size
  std::uint64_t left_alone = 0;  ///< calls since the last one, taken for its like, that went plainly unasked
  // Written by the call, where the way is chosen for it:
  bool pays = true;                     ///< to compress it
  std::uint64_t may_be_left_alone = 0;  ///< calls of its like between two that are asked about
  std::optional<CallKind> kind{};       ///< where what such calls take is noted; nothing: nowhere
};

/// One thread at a time. Every collective must be called by all ranks of the group in the same order.
class Communicator {
 public:
  /// Takes the transport over. All arrays of its calls lie in `memory`, which must outlive it; ranks may differ.
  explicit Communicator(std::unique_ptr<Transport> transport, Options defaults = {}, Memory& memory = host_memory());
  /// Borrows it: it must outlive the communicator.
  explicit Communicator(Transport& transport, Options defaults = {}, Memory& memory = host_memory());
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] int rank() const { return transport_->rank(); }
  [[nodiscard]] int size() const { return transport_->size(); }
  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] Memory& memory() { return *memory_; }
  /// From now on arrays lie in `memory`, which must outlive this. Before the first call: costs are measured with it.
  void use(Memory& memory);
  /// The plain library's own collectives for these arrays; null where there is no such library.
  [[nodiscard]] PlainCollectives* plain() { return memory_->plain(*transport_); }

  /// Used by calls that are given no options of their own.
  [[nodiscard]] const Options& defaults() const { return defaults_; }
  void set_defaults(const Options& options);

  /// What the last successful call did, and all of them together. Collectives return the former: valid until the next.
  [[nodiscard]] const Report& last() const { return last_; }
  [[nodiscard]] const Stats& total() const { return total_; }
  void reset_total() { total_ = {}; }

  /// False after a transport error (a dead rank, a timeout) and where a call ended in its middle for lack of memory:
  /// messages may still be under way, so nothing more can be said over this group, and every further call fails at once
  /// with Error(transport).
  [[nodiscard]] bool usable() const { return usable_; }

  // --- for the collectives themselves ---
  [[nodiscard]] BufferPool& pool() { return *pool_; }
  [[nodiscard]] Routing& routing() { return *routing_; }
  /// Throws if not usable.
  void require_usable() const {
    if (!usable_) refuse_further_calls();
  }
  [[noreturn]] static void refuse_further_calls();
  void mark_unusable() { usable_ = false; }
  /// Runs a call. What is no Error (memory that ran out) leaves it in the middle, where the others still are.
  template <typename Run>
  decltype(auto) whole(Run&& run) {
    try {
      return run();
    } catch (const Error&) {
      throw;
    } catch (...) {
      mark_unusable();
      throw;
    }
  }
  /// Which of its calls this is, where some may be left out by a rank on its own: ranks whose turns differ find out.
  void set_turn(std::uint8_t turn) { turn_ = turn; }
  [[nodiscard]] std::uint8_t turn() const { return turn_; }
  /// A call went plainly, and nobody was asked: perhaps on this rank only.
  void count_unasked() { ++turn_; }
  /// Of the call that comes next, where its arguments do not tell its size; nothing: ranks do not know it.
  [[nodiscard]] std::optional<InAdvance>& in_advance() { return in_advance_; }
  void record(const Report& call);
  /// Of a short call that the plain library made.
  void record_plain(std::uint64_t bytes, double seconds, double result_bound);

 private:
  std::unique_ptr<Transport> owned_;
  Transport* transport_;
  Memory* memory_;
  Options defaults_;
  Report last_;
  bool last_is_plain_ = false;  ///< of record_plain()
  Stats total_;
  std::unique_ptr<BufferPool> pool_;
  std::unique_ptr<Routing> routing_;
  bool usable_ = true;
  std::optional<InAdvance> in_advance_;
  std::uint8_t turn_ = 0;
};

}  // namespace laconic
