// Runs any schedule with any kernel: blocks cut in segments, several messages under way, so that encode, wire, add and
// decode overlap. Forwards first, decodes while it would otherwise wait.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "collective/failure.h"
#include "collective/kernel.h"
#include "collective/layout.h"
#include "collective/pool.h"
#include "core/error.h"
#include "schedule/schedule.h"

namespace laconic {

/// One run of a program. A message is one segment of one block or, where several short ones go to the same peer in the
/// same step, all of those together; or the elements of a segment as they are, where the program says so.
///
/// When something fails on this rank (a damaged frame, a kernel that throws, no memory for a message), it still takes
/// and gives every message that the schedule foresees, but what it gives is a poison message with the reason; who
/// receives one does the same. So nobody hangs and the group stays usable. Only a transport that fails ends a run at
/// once, or memory that does not do for the first receive.
class Pipeline {
 public:
  /// All of these must outlive the pipeline. Sizes and bytes are added to `report`.
  Pipeline(Communicator& comm, const schedule::Program& program, const Layout& layout, Kernel& kernel, Report& report);

  /// Returns what went wrong on this rank or reached it, if anything did. Throws Error(transport). `earlier`: what went
  /// wrong on this rank in a run before this one of the same call; nothing but that is then said to the others.
  std::optional<Failure> run(const std::optional<Failure>& earlier = std::nullopt);

 private:
  static constexpr std::size_t piece_head = 4;  ///< a piece's bytes, before it in a shared message

  struct Piece {  ///< one segment of one block on its way
    int block;
    std::size_t segment;
    schedule::Combine how;  ///< of a receive
    int version;            ///< of a send: how many receives go into the block before
    bool plain;
  };
  struct Envelope {  ///< one message
    int peer;
    std::vector<Piece> pieces;
  };
  struct Lane {  ///< what goes to one peer, in program order
    std::vector<Envelope> envelopes;
    std::size_t next = 0;  ///< to be posted next
    std::size_t due = 0;   ///< those before it belong to steps that have begun
  };
  struct StepPlan {
    std::vector<std::pair<int, std::size_t>> sends;  ///< peers, and how many envelopes go to each
    std::size_t plain = 0, coded = 0;                ///< envelopes that come
  };
  struct Slot {          ///< what this rank holds of one segment of one block
    MessagePtr message;  ///< null: only the operand in the caller's memory, or nothing, or nothing any more
    MessagePtr room{};   ///< for what comes of a call that has been announced to the kernel
    std::vector<std::pair<int, MessagePtr>> waiting{};  ///< came after it, from these peers; to be added to it
    int version = 0;                                    ///< receives that went into it, or wait
    int sends_left = 0;                                 ///< of the message
    bool queued = false;                                ///< for delivery
    bool delivered = false;
  };
  struct Posted {
    Request request;
    MessagePtr message;
  };
  struct Inbox {  ///< what comes in one form, in program order; each has its window, so that none waits for the other
    int tag;
    Content content;
    std::vector<Envelope> envelopes{};
    std::size_t next = 0;         ///< to be completed next
    std::deque<Posted> posted{};  ///< from next on
    MessagePtr spare{};           ///< so that a rank whose memory has run out can go on receiving
  };
  struct Delivery {
    Part part;
    Slot* slot;
    MessagePtr message;  ///< null: nothing to decode, see Kernel::keep()
    int from;
  };

  void plan();
  void plan_sums();
  [[nodiscard]] std::vector<Envelope> pack(const std::vector<schedule::Transfer>& transfers) const;
  [[nodiscard]] std::size_t capacity_for(const Envelope& envelope) const;
  void run_program();
  void post_receives();
  void post_receives(Inbox& inbox);
  bool free_some();
  void lack_memory(const std::exception& why);
  MessagePtr room(Content content);
  void begin_step(const StepPlan& step);
  void prepare(const Envelope& envelope, const Envelope* following);
  void receive(Inbox& inbox);
  void await(Request& request);
  MessagePtr readable(const MessagePtr& message);
  void open(const Envelope& envelope, const MessagePtr& received);
  void take_plain(int peer, const Piece& piece, const MessagePtr& received);
  void combine(int peer, const Piece& piece, MessagePtr received);
  [[nodiscard]] Task sum_of(const Piece& piece, std::vector<frame::Bytes> received);
  bool add_waiting(const Piece& piece);
  void advance(int peer, const Piece& piece, MessagePtr result);
  MessagePtr encoded(const Piece& piece, bool final = false);
  void flush_all();
  void flush(Lane& lane);
  bool post(const Envelope& envelope);
  void send(const MessagePtr& message, const Envelope& envelope);
  MessagePtr plain(const Piece& piece);
  void make_room();
  MessagePtr sealed(const Envelope& envelope);
  void send_poison(Lane& lane);
  void reap();
  bool deliver_one();
  void queue(const Piece& piece, MessagePtr message, int from);
  void note_what_stays();
  // What the kernel is told before it is asked, if it cares; see Kernel::begin(). Nothing is to hold up the message
  // that comes of a call while nothing else is on its way.
  [[nodiscard]] bool is_sending() const { return !outgoing_.empty(); }
  void announce_encoding(const Envelope& envelope);
  void announce_delivery(const Delivery& delivery);
  void announce_next_sum();
  void announce(Slot& slot, Task task);
  [[nodiscard]] bool is_to_encode(const Piece& p);
  [[nodiscard]] bool encodes_finally(const Piece& p) const;
  [[nodiscard]] bool adds_finally(const Piece& p);
  MessagePtr room_of(Slot& slot);
  /// Runs kernel work against the codec's clock. False when it threw: the run has then failed.
  template <typename Work>
  bool guarded(const std::string& what, Work&& work);
  void fail(Failure failure);
  [[nodiscard]] bool is_result(const Piece& p) const;
  [[nodiscard]] bool is_last_sum(const Piece& p);
  [[nodiscard]] bool ready(const Piece& p, bool due);
  [[nodiscard]] std::size_t plain_bytes(const Piece& p) const { return part(p).count * kernel_.element_bytes(); }
  [[nodiscard]] Inbox& inbox_of(const Envelope& e) { return e.pieces[0].plain ? plain_ : coded_; }
  Slot& slot(const Piece& p) { return slots_[static_cast<std::size_t>(p.block)][p.segment]; }
  [[nodiscard]] Part part(const Piece& p) const { return layout_.part(p.block, p.segment); }

  Communicator& comm_;
  Transport& transport_;
  const schedule::Program& program_;
  const Layout& layout_;
  Kernel& kernel_;
  Report& report_;
  std::size_t capacity_ = 0;              ///< of every message
  std::vector<std::vector<Slot>> slots_;  ///< [block][segment]
  std::vector<int> final_version_;        ///< per block: receives that go into it in all
  std::vector<bool> sent_;                ///< per block: this rank sends it at some time
  std::vector<std::vector<bool>> sums_;   ///< [block][version]: the receive that follows is not put off
  std::map<int, Lane> lanes_;             ///< by peer
  std::vector<StepPlan> steps_;
  Inbox plain_, coded_;
  std::deque<Posted> outgoing_;      ///< not yet known to be complete
  std::deque<Delivery> deliveries_;  ///< decoded when there is time
  std::optional<Failure> failure_;
  MessagePtr poison_;  ///< sent in place of data after a failure
};

}  // namespace laconic
