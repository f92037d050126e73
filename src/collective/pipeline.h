// Runs any schedule with any kernel: blocks cut in segments, several messages under way, so that encode, wire, add and
// decode overlap. Forwards first, decodes while it would otherwise wait.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/kernel.h"
#include "collective/layout.h"
#include "collective/pool.h"
#include "core/error.h"
#include "schedule/schedule.h"

namespace laconic {

/// Why a collective failed, and on which rank it began.
struct Failure {
  Code code = Code::ok;
  int rank = 0;
  std::string text;
};

/// One run of a program. Every message is one segment of one block.
///
/// When something fails on this rank (a damaged frame, a kernel that throws), it still takes and gives every message
/// that the schedule foresees, but what it gives is a poison message with the reason; who receives one does the same.
/// So nobody hangs and the group stays usable. Only a transport that fails ends a run at once.
class Pipeline {
 public:
  /// All of these must outlive the pipeline. Sizes and bytes are added to `report`.
  Pipeline(Communicator& comm, const schedule::Program& program, const Layout& layout, Kernel& kernel, Report& report);

  /// Returns what went wrong on this rank or reached it, if anything did. Throws Error(transport).
  std::optional<Failure> run();

 private:
  struct SendOp {
    int block;
    std::size_t segment;
    int version;  ///< how many receives go into the block before
  };
  struct Lane {  ///< what goes to one peer, in program order
    std::vector<SendOp> ops;
    std::size_t next = 0;  ///< to be posted next
    std::size_t due = 0;   ///< those before it belong to steps that have begun
  };
  struct RecvOp {
    int peer;
    int block;
    std::size_t segment;
    schedule::Combine how;
  };
  struct Slot {          ///< what this rank holds of one segment of one block
    MessagePtr message;  ///< null: only the operand in the caller's memory, or nothing, or nothing any more
    int version = 0;     ///< receives that went into it
    int sends_left = 0;
  };
  struct Posted {
    Request request;
    MessagePtr message;
  };
  struct Delivery {
    Part part;
    MessagePtr message;
    int from;
  };

  void plan();
  void run_program();
  void post_receives();
  void begin_step(const schedule::Step& step);
  void receive(const RecvOp& op);
  void await(Request& request);
  void combine(const RecvOp& op, MessagePtr received);
  MessagePtr encoded(const Part& part);
  void flush(int peer, Lane& lane);
  void post(int peer, Slot& slot, const Part& part);
  void send_poison(int peer, Lane& lane);
  void reap();
  bool deliver_one();
  void deliver_the_rest();
  /// Runs kernel work against the codec's clock. False when it threw: the run has then failed.
  template <typename Work>
  bool guarded(const std::string& what, Work&& work);
  void fail(Failure failure);
  [[nodiscard]] std::optional<Failure> poison_in(const Message& message) const;
  Slot& slot(int block, std::size_t segment) { return slots_[static_cast<std::size_t>(block)][segment]; }

  Communicator& comm_;
  Transport& transport_;
  const schedule::Program& program_;
  const Layout& layout_;
  Kernel& kernel_;
  Report& report_;
  std::size_t capacity_;                  ///< of every message
  std::vector<std::vector<Slot>> slots_;  ///< [block][segment]
  std::vector<int> final_version_;        ///< per block: receives that go into it in all
  std::vector<bool> sent_;                ///< per block: this rank sends it at some time
  std::map<int, Lane> lanes_;             ///< by peer
  std::vector<RecvOp> recvs_;             ///< in program order
  std::size_t next_recv_ = 0;             ///< of recvs_, to be completed next
  std::deque<Posted> incoming_;           ///< posted, in program order, from recvs_[next_recv_] on
  std::deque<Posted> outgoing_;           ///< not yet known to be complete
  std::deque<Delivery> deliveries_;       ///< decoded when there is time
  std::optional<Failure> failure_;
  MessagePtr poison_;  ///< sent in place of data after a failure
};

}  // namespace laconic
