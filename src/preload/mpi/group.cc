#include "preload/mpi/group.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "core/error.h"
#include "preload/mpi/runtime.h"
#include "transport/mpi/mpi.h"

namespace laconic::preload {
namespace {

constexpr unsigned longest_interval = 1023;

std::string name_of_rank_0(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  PMPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
  return name;
}

}  // namespace

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::submit(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_one();
}

bool Worker::is_idle() {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() && !busy_;
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    lock.lock();
    busy_ = false;
  }
}

bool Asking::is_due() {
  if (left_ == 0) return true;
  --left_;
  return false;
}

void Asking::learned(bool served) {
  interval_ = served ? 0 : std::min(2 * interval_ + 1, longest_interval);
  left_ = interval_;
}

Line::Line(MPI_Comm mpi) : mpi_(mpi), name_(name_of_rank_0(mpi)), comm_(make_mpi_transport(mpi)) {}

bool Line::passes_over(const Call& call) { return !asking_[static_cast<std::size_t>(call.collective)].is_due(); }

std::optional<Shape> Line::agree(const Call& call) {
  Asking& kind = asking_[static_cast<std::size_t>(call.collective)];
  const auto words = allgather_value(comm_.transport(), word_of(call, comm_.rank(), comm_.size()));
  const std::optional<Shape> shape = shape_of(words.data(), comm_.size());
  kind.learned(shape && shape->bytes >= Runtime::get()->least_bytes());
  return shape;
}

BackgroundLine::BackgroundLine(MPI_Comm mpi) {
  if (PMPI_Comm_idup(mpi, &mpi_, &duplication_) != MPI_SUCCESS)
    throw Error(Code::transport, "MPI_Comm_idup failed: no communicator for non-blocking calls");
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(mpi, name, &length);
  name_ = name;
  worker_.emplace();
}

BackgroundLine::~BackgroundLine() {
  worker_.reset();
  line_.reset();
  if (mpi_ != MPI_COMM_NULL) PMPI_Comm_free(&mpi_);
}

void BackgroundLine::begin() {
  try {
    for (int done = 0; done == 0;) {
      if (PMPI_Test(&duplication_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        throw Error(Code::transport, "MPI_Comm_idup failed");
      if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    PMPI_Comm_set_name(mpi_, name_.c_str());
    line_.emplace(mpi_);
  } catch (const std::exception& e) {
    why_none_ = e.what();
  }
}

void BackgroundLine::submit(Job job) {
  worker_->submit([this, job = std::move(job)] {
    if (!line_ && why_none_.empty()) begin();
    job(line_ ? &*line_ : nullptr, why_none_);
  });
}

Line* BackgroundLine::if_idle() { return worker_->is_idle() && line_ ? &*line_ : nullptr; }

Line& Group::foreground() {
  if (!foreground_) foreground_.emplace(comm_);
  return *foreground_;
}

BackgroundLine& Group::background() {
  if (!background_) background_.emplace(comm_);
  return *background_;
}

}  // namespace laconic::preload
