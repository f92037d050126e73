// Where a communicator's arrays lie, and what touches their elements there. Collectives decide and move messages; what
// they read from an array or write to it goes through this, so that arrays in GPU memory take the same collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collective/budget.h"
#include "collective/outliers.h"
#include "core/array.h"
#include "core/op.h"
#include "core/range.h"

namespace laconic {

class Kernel;
class PlainCollectives;
class Transport;

/// Bytes of no particular content, freed with the last owner.
using Room = std::shared_ptr<std::uint8_t[]>;

/// How many operands there are in a sum.
struct Summands {
  int formed;    ///< at most, in those that this rank forms, also for others
  int averaged;  ///< in its result: by so many an average is divided
};

/// Used by one communicator at a time, by one thread. Whatever is asked of it is done when the call returns.
/// Error(internal) where the device fails.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Whether plain code can read and write arrays there.
  [[nodiscard]] virtual bool on_host() const = 0;

  /// Whether an array at `p` can lie there, as far as that can be told.
  [[nodiscard]] virtual bool holds(const void* /*p*/) const { return true; }

  /// For elements.
  virtual Room array_room(std::size_t bytes) = 0;
  /// For messages: plain code and transports read and write it.
  virtual Room message_room(std::size_t bytes) = 0;
  /// The same for copies of whole arrays: copy() is fast from and to all of it.
  virtual Room copy_room(std::size_t bytes) { return message_room(bytes); }

  /// The same memory for calls that another thread makes; null: any number of threads may use this one.
  [[nodiscard]] virtual std::unique_ptr<Memory> for_another_thread() { return nullptr; }
  /// What is done, by the thread that makes the call, with its memory, before a call that must come after all that has
  /// been begun here by now. Empty: nothing need be.
  using After = std::function<void(Memory&)>;
  [[nodiscard]] virtual After after_all_so_far() { return {}; }

  /// As memmove. Either end lies there, or in the host's memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  /// The same where `to` and `from` lie apart, but it may only have been begun: what is done here afterwards finds it
  /// done.
  virtual void begin_copy(void* to, const void* from, std::size_t bytes) { copy(to, from, bytes); }
  /// The chunks that stand for x where its ratio is estimated (sample.h), one after the other, to the host's memory.
  virtual void fetch_sample(ConstArray x, void* to) = 0;

  /// What core/range.h, outliers.h and operate.h say of arrays on the host.
  virtual Range scan(ConstArray x, int threads) = 0;
  virtual Outliers count_outliers(ConstArray x, double limit, double fill) = 0;
  virtual void divide(MutArray x, int by) = 0;

  /// Kernels for arrays there; see movement.h and reduction.h.
  virtual std::unique_ptr<Kernel> movement(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                           const Budget& budget, int threads) = 0;
  virtual std::unique_ptr<Kernel> reduction(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results,
                                            const Budget& budget, Summands summands, int threads) = 0;

  /// The plain library's own collectives over the transport's ranks, for arrays there; null where there are none.
  virtual PlainCollectives* plain(Transport& transport) = 0;
  /// Before a call that is not certain to be a short plain one: waits for what was left to that library, and what it is
  /// behind, so that the call's time is its own.
  virtual void before_call(Transport& /*transport*/) {}
  /// Before each of its calls: sees to it that operands are there. `timed`: the call's time is measured, without what
  /// came before it; another may return when it is on its stream, where the library can that.
  virtual void before_plain(PlainCollectives& /*library*/, bool /*timed*/) {}

  /// A segment of a pipeline should have so many bytes: a message must cost little beside them, and need not be larger.
  /// Powers of two. Of ranks that differ the largest hold.
  struct SegmentBytes {
    std::size_t least = std::size_t{128} << 10;
    std::size_t most = std::size_t{1} << 20;

    /// A block travels in about 16 of them: enough to keep the wire busy from early on and to have little left to
    /// decode at the end.
    [[nodiscard]] std::size_t of_block(std::size_t bytes) const { return std::clamp(bytes / 16, least, most); }
  };
  [[nodiscard]] virtual SegmentBytes segment_bytes() const { return {}; }
};

/// The ordinary one. Has no state: any number of communicators and threads may use it at once.
Memory& host_memory();

/// An array that plain code can read: itself, or a copy.
class HostOperand {
 public:
  HostOperand(Memory& memory, ConstArray x);
  [[nodiscard]] ConstArray get() const { return x_; }

 private:
  Room copy_;
  ConstArray x_;
};

/// An array that plain code can write: itself, or a copy with the same contents, to be put back. Null data: stays so.
class HostResult {
 public:
  HostResult(Memory& memory, MutArray y);
  [[nodiscard]] MutArray get() const { return y_; }
  void put_back();

 private:
  Memory& memory_;
  Room copy_;
  MutArray there_, y_;
};

/// What work(operand, result), plain code, makes of arrays there.
template <typename Work>
auto on_host(Memory& memory, ConstArray send, MutArray recv, Work&& work) {
  const HostOperand operand(memory, send);
  HostResult result(memory, recv);
  auto outcome = work(operand.get(), result.get());
  result.put_back();
  return outcome;
}

}  // namespace laconic
