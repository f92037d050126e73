#include "preload/mpi/group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/error.h"
#include "preload/mpi/runtime.h"
#include "transport/mpi/mpi.h"

namespace laconic::preload {
namespace {

constexpr unsigned longest_interval = 1023;

/// All ranks of the program, and nothing but communicators are made of it. Each with a tag of its own.
MPI_Comm meeting_place = MPI_COMM_NULL;
int first_meeting = 0, meetings = 1;  ///< this rank's tags, a pair for each meeting
std::vector<int> nodes;               ///< of those who meet: for each the lowest that it shares memory with

int next_meeting() {
  static std::atomic<unsigned> used{0};
  return first_meeting +
         2 * static_cast<int>(used.fetch_add(1, std::memory_order_relaxed) % static_cast<unsigned>(meetings));
}

/// A communicator. Threads do so at the same time: in Open MPI and MPICH one has to wait for another then, and which
/// one they tell from the communicator that it is made of, by a number that may differ between ranks, and from the tag.
/// So all are made of one.
MPI_Comm meet(MPI_Group ranks, int tag) {
  MPI_Comm met = MPI_COMM_NULL;
  if (PMPI_Comm_create_group(meeting_place, ranks, tag, &met) != MPI_SUCCESS)
    throw Error(Code::transport, "MPI_Comm_create_group failed: no communicator for Laconic's own messages");
  return met;
}

/// The ranks of `mpi`, which may come from a session, as a part of those that meet.
MPI_Group at_meeting_place(MPI_Comm mpi) {
  MPI_Group its = MPI_GROUP_NULL, all = MPI_GROUP_NULL, found = MPI_GROUP_NULL;
  int size = 0;
  PMPI_Comm_size(mpi, &size);
  PMPI_Comm_group(mpi, &its);
  PMPI_Comm_group(meeting_place, &all);
  std::vector<int> ranks(static_cast<std::size_t>(size)), there(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(its, size, ranks.data(), all, there.data());
  PMPI_Group_incl(all, size, there.data(), &found);
  PMPI_Group_free(&its);
  PMPI_Group_free(&all);
  return found;
}

/// For each of `ranks` the lowest of them that it shares memory with.
std::vector<int> nodes_among(MPI_Group ranks) {
  MPI_Group all = MPI_GROUP_NULL;
  int size = 0;
  PMPI_Group_size(ranks, &size);
  PMPI_Comm_group(meeting_place, &all);
  std::vector<int> each(static_cast<std::size_t>(size)), there(each.size()), lowest(nodes.size(), -1);
  std::iota(each.begin(), each.end(), 0);
  PMPI_Group_translate_ranks(ranks, size, each.data(), all, there.data());
  PMPI_Group_free(&all);
  for (std::size_t r = 0; r < each.size(); ++r) {
    int& first = lowest[static_cast<std::size_t>(nodes[static_cast<std::size_t>(there[r])])];
    if (first < 0) first = static_cast<int>(r);
    each[r] = first;
  }
  return each;
}

/// A program's rank may well come minutes after the others, and MPI waits for it: so does Laconic, unless told
/// otherwise.
double patience() { return config().timeout_seconds.value_or(0); }

/// An attribute of communicators that are made here: the BackgroundLine.
int line_key = MPI_KEYVAL_INVALID;
/// Calls the program's error handler with the program's communicator.
MPI_Errhandler forwarding = MPI_ERRHANDLER_NULL;

void forward(MPI_Comm* comm, int* code, ...) {  // NOLINT(cert-dcl50-cpp,readability-non-const-parameter): as MPI has it
  void* line = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(*comm, line_key, static_cast<void*>(&line), &found);
  if (found != 0) PMPI_Comm_call_errhandler(static_cast<BackgroundLine*>(line)->program(), *code);
}

/// For a communicator in place of the program's: what the program has, but with its own handlers called as it expects.
MPI_Errhandler errors_of(MPI_Comm program) {
  MPI_Errhandler its = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(program, &its);
  const bool own = its != MPI_ERRORS_ARE_FATAL && its != MPI_ERRORS_RETURN;
  if (own) PMPI_Errhandler_free(&its);
  return own ? forwarding : its;
}

void release(MPI_Errhandler errors) {
  if (errors != forwarding) PMPI_Errhandler_free(&errors);
}

std::string name_of_rank_0(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(comm, name, &length);
  PMPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
  return name;
}

std::unique_ptr<Transport> transport_like(MPI_Comm mpi, int tag) {
  MPI_Group ranks = at_meeting_place(mpi);
  std::vector<int> among = nodes_among(ranks);
  MPI_Comm own = MPI_COMM_NULL;
  try {
    own = meet(ranks, tag);
  } catch (...) {
    PMPI_Group_free(&ranks);
    throw;
  }
  PMPI_Group_free(&ranks);
  return adopt_mpi_transport(own, patience(), std::move(among));
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

Line::Line(MPI_Comm mpi, int tag) : mpi_(mpi), name_(name_of_rank_0(mpi)), comm_(transport_like(mpi, tag)) {}

bool Line::passes_over(Collective collective) { return !asking_[static_cast<std::size_t>(collective)].is_due(); }

std::optional<Shape> Line::agree(Collective collective, const Word& mine) {
  Asking& kind = asking_[static_cast<std::size_t>(collective)];
  const auto words = allgather_value(comm_.transport(), mine);
  const std::optional<Shape> shape = shape_of(words.data(), comm_.size());
  kind.learned(shape && shape->bytes >= Runtime::get()->least_bytes());
  return shape;
}

BackgroundLine::BackgroundLine(MPI_Comm mpi) : program_(mpi) {
  int rank = 0;
  PMPI_Comm_rank(mpi, &rank);
  if (rank == 0) tag_ = next_meeting();
  if (PMPI_Iallreduce(MPI_IN_PLACE, &tag_, 1, MPI_INT, MPI_MAX, mpi, &arrival_) != MPI_SUCCESS)
    throw Error(Code::transport, "MPI_Iallreduce failed: no communicator for non-blocking calls");
  ranks_ = at_meeting_place(mpi);
  errors_ = errors_of(mpi);
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  PMPI_Comm_get_name(mpi, name, &length);
  name_ = name;
  worker_.emplace();
}

BackgroundLine::~BackgroundLine() {
  worker_.reset();
  line_.reset();
  if (arrival_ != MPI_REQUEST_NULL) PMPI_Wait(&arrival_, MPI_STATUS_IGNORE);
  if (mpi_ != MPI_COMM_NULL) PMPI_Comm_free(&mpi_);
  release(errors_);
  PMPI_Group_free(&ranks_);
}

void BackgroundLine::begin() {
  try {
    for (int done = 0; done == 0;) {
      if (PMPI_Test(&arrival_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        throw Error(Code::transport, "MPI_Iallreduce failed: no communicator for non-blocking calls");
      if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    mpi_ = meet(ranks_, tag_);
    PMPI_Comm_set_attr(mpi_, line_key, this);
    PMPI_Comm_set_errhandler(mpi_, errors_);
    PMPI_Comm_set_name(mpi_, name_.c_str());
    line_.emplace(mpi_, tag_ + 1);
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

void BackgroundLine::renew_errors() {
  worker_->submit([this, errors = errors_of(program_)] {
    release(std::exchange(errors_, errors));
    if (mpi_ != MPI_COMM_NULL) PMPI_Comm_set_errhandler(mpi_, errors_);
  });
}

Line* BackgroundLine::if_idle() { return worker_->is_idle() && line_ ? &*line_ : nullptr; }

Line& Group::foreground() {
  if (foreground_) return *foreground_;
  wait_for_all(comm_);  // it makes a communicator: see communicators.cc
  int tag = rank_ == 0 ? next_meeting() : 0;
  PMPI_Bcast(&tag, 1, MPI_INT, 0, comm_);
  return foreground_.emplace(comm_, tag);
}

BackgroundLine& Group::background() {
  if (!background_) background_.emplace(comm_);
  return *background_;
}

void Group::renew_errors() {
  if (background_) background_->renew_errors();
}

void wait_for_all(MPI_Comm comm) {
  MPI_Request all = MPI_REQUEST_NULL;
  if (PMPI_Ibarrier(comm, &all) == MPI_SUCCESS) PMPI_Wait(&all, MPI_STATUS_IGNORE);
}

void prepare_groups() {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &line_key, nullptr);
  PMPI_Comm_create_errhandler(forward, &forwarding);
  int rank = 0, size = 1;
  PMPI_Comm_dup(MPI_COMM_WORLD, &meeting_place);
  PMPI_Comm_set_errhandler(meeting_place, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(meeting_place, &rank);
  PMPI_Comm_size(meeting_place, &size);
  int* most = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(meeting_place, MPI_TAG_UB, static_cast<void*>(&most), &found);
  meetings = std::max(1, (found != 0 ? *most : 32767) / size / 2);
  first_meeting = rank * meetings * 2;
  nodes = find_mpi_nodes(meeting_place);
}

void release_groups() {
  PMPI_Comm_free(&meeting_place);
  PMPI_Errhandler_free(&forwarding);
  PMPI_Comm_free_keyval(&line_key);
}

}  // namespace laconic::preload
