// A thread that runs jobs one after the other while whoever submits them does something else.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "core/thread.h"

namespace laconic {

/// Runs jobs in the order in which they are submitted, on a thread that begins with the first. Where the system has no
/// thread to give, a caller of submit() runs them, its own and others', which the log says. Thread safe.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Waits for what has been submitted.
  ~Worker();
  /// Jobs must not throw, nor wait for what they submit.
  void submit(std::function<void()> job);
  [[nodiscard]] bool is_idle();
  /// Whether a job of its calls this.
  [[nodiscard]] bool runs_here();

 private:
  void run();
  bool begin();
  /// The first job, with the lock let go meanwhile.
  void do_one(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool closing_ = false, busy_ = false, warned_ = false;
  std::thread::id runner_;  ///< where it is busy
  Thread thread_;
};

}  // namespace laconic
