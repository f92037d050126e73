// Calls that run while the caller does something else: a thread with a communicator of its own takes them one after
// the other, in the order of submission, and needs no help to make progress.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>

#include "collective/communicator.h"
#include "core/error.h"
#include "core/worker.h"

namespace laconic {

/// Ranks must submit the same calls in the same order; what they do over other communicators meanwhile does not matter.
/// Thread safe.
class Background {
 public:
  /// One call, over the thread's communicator. Its buffers belong to it until the future is ready.
  using Work = std::function<Report(Communicator&)>;

  /// The transport is this object's alone (Transport::duplicate).
  explicit Background(std::unique_ptr<Transport> transport);

  /// Before the first call: all arrays lie in `memory`, which must outlive this and be nobody else's.
  void use(Memory& memory) { comm_.use(memory); }

  /// As Communicator::usable(), of the thread's, before the future of a call that ended it is ready; and false after a
  /// call was not whole().
  [[nodiscard]] bool usable() const { return usable_; }
  /// The report, or the Error that the call threw. Throws Error(transport) where it is not usable().
  std::future<Report> submit(Work work);
  /// Runs what makes a call and submits it. What is no Error (memory that ran out) leaves this rank without the call
  /// that the others make: it makes no more of them, lest its next one is taken for that.
  template <typename Run>
  void whole(Run&& run) {
    try {
      run();
    } catch (const Error&) {
      throw;
    } catch (...) {
      usable_ = false;
      throw;
    }
  }

 private:
  std::atomic<bool> usable_ = true;
  Communicator comm_;
  Worker worker_;  ///< behind what its jobs use: destroyed first, it waits for them
};

}  // namespace laconic
