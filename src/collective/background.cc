#include "collective/background.h"

#include <utility>

namespace laconic {

Background::Background(std::unique_ptr<Transport> transport) : comm_(std::move(transport)) {}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::future<Report> Background::submit(Work work) {
  std::packaged_task<Report(Communicator&)> task(std::move(work));
  std::future<Report> result = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_one();
  return result;
}

void Background::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    auto task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task(comm_);
    lock.lock();
  }
}

}  // namespace laconic
