#include "core/worker.h"

#include <string>
#include <system_error>
#include <utility>

#include "core/log.h"

namespace laconic {

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool Worker::begin() {
  try {
    thread_.start([this] { run(); });
    return true;
  } catch (const std::system_error& e) {
    if (!std::exchange(warned_, true))
      log(LogLevel::warning,
          std::string("no thread for calls in the background, they run where they are made: ") + e.what());
    return false;
  }
}

void Worker::submit(std::function<void()> job) {
  std::unique_lock lock(mutex_);
  const bool threaded = thread_.joinable() || (!busy_ && begin());
  jobs_.push_back(std::move(job));
  if (threaded) {
    lock.unlock();
    changed_.notify_one();
    return;
  }
  if (busy_) return;  // another caller is at it, and takes this one, too
  while (!jobs_.empty()) do_one(lock);
}

bool Worker::is_idle() {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() && !busy_;
}

bool Worker::runs_here() {
  const std::lock_guard lock(mutex_);
  return busy_ && runner_ == std::this_thread::get_id();
}

void Worker::do_one(std::unique_lock<std::mutex>& lock) {
  std::function<void()> job = std::move(jobs_.front());
  jobs_.pop_front();
  busy_ = true;
  runner_ = std::this_thread::get_id();
  lock.unlock();
  job();
  job = nullptr;  // what it holds may come back here
  lock.lock();
  busy_ = false;
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    do_one(lock);
  }
}

}  // namespace laconic
