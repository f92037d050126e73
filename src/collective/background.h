// Calls that run while the caller does something else: a thread with a communicator of its own takes them one after
// the other, in the order of submission, and needs no help to make progress.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "collective/communicator.h"

namespace laconic {

/// Ranks must submit the same calls in the same order; what they do over other communicators meanwhile does not matter.
/// Thread safe.
class Background {
 public:
  /// One call, over the thread's communicator. Its buffers belong to it until the future is ready.
  using Work = std::function<Report(Communicator&)>;

  /// The transport is this object's alone (Transport::duplicate).
  explicit Background(std::unique_ptr<Transport> transport);
  /// Waits for what has been submitted.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// The report, or the Error that the call threw.
  std::future<Report> submit(Work work);

 private:
  void run();

  Communicator comm_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<Report(Communicator&)>> queue_;
  bool closing_ = false;
  std::thread thread_;  ///< begins with the first call
};

}  // namespace laconic
