#include "transport/nccl/link.h"

#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/beside_captures.h"
#include "core/error.h"
#include "transport/timeout.h"

namespace laconic::nccl {
namespace {

[[noreturn]] void fail(int rank, const char* call, ncclResult_t status) {
  std::string text = "rank " + std::to_string(rank) + ": " + call + " failed: " + pncclGetErrorString(status);
  const char* const more = pncclGetLastError(nullptr);  // the thread's; a communicator may be gone
  if (more != nullptr && *more != '\0') text += std::string(" (") + more + ")";
  throw Error(Code::transport, text);
}

void require(int rank, const char* call, ncclResult_t status) {
  if (status != ncclSuccess && status != ncclInProgress) fail(rank, call, status);
}

/// NCCL may still write to it, and work on what it has made: to abort that might wait for ranks that are gone.
void keep_for_ever(std::unique_ptr<ncclComm_t> child) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<ncclComm_t>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(child));
}

ncclComm_t split(ncclComm_t parent, int rank, double timeout, Stop& stop) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  auto child = std::make_unique<ncclComm_t>(nullptr);
  stop.check();  // without its lock: a parent that blocks waits for all ranks here, and only an abort would end that
  require(rank, "ncclCommSplit", pncclCommSplit(parent, 0, rank, child.get(), &config));
  const auto is_asked_for = [&] { return is_settled(rank, parent); };
  const auto made = [&] { return stop.unless_set(is_asked_for) && *child != nullptr && is_settled(rank, *child); };
  try {
    wait_until(made, rank, "all ranks to make a communicator", timeout);
  } catch (...) {
    keep_for_ever(std::move(child));
    throw;
  }
  return *child;
}

}  // namespace

bool is_settled(int rank, ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  require(rank, "ncclCommGetAsyncError", pncclCommGetAsyncError(comm, &state));
  require(rank, "the communicator", state);
  return state != ncclInProgress;
}

Link::Link(ncclComm_t parent, int rank, double timeout, Stop& stop) : rank_(rank), stream_(rank) {
  comm_ = split(parent, rank, timeout, stop);
}

Link::~Link() { abort(); }

void Link::require(const char* call, ncclResult_t status) const { nccl::require(rank_, call, status); }

void Link::exchange(std::span<const Transfer> transfers, cudaStream_t stream) {
  require("ncclGroupStart", pncclGroupStart());
  ncclResult_t worst = ncclSuccess;
  for (const Transfer& t : transfers) {
    const ncclResult_t status = t.from != nullptr ? pncclSend(t.from, t.bytes, ncclUint8, t.peer, comm_, stream)
                                                  : pncclRecv(t.to, t.bytes, ncclUint8, t.peer, comm_, stream);
    if (status != ncclSuccess && status != ncclInProgress) worst = status;
  }
  const ncclResult_t end = pncclGroupEnd();  // also after an error: a group that was begun must end
  require("a send or receive", worst);
  require("ncclGroupEnd", end);
}

void Link::close(double timeout) {
  require("ncclCommFinalize", pncclCommFinalize(comm_));
  wait_until([this] { return ready(); }, rank_, "NCCL to close a communicator", timeout);
  const ncclResult_t status = pncclCommDestroy(comm_);
  comm_ = nullptr;
  require("ncclCommDestroy", status);
}

void Link::abort() noexcept {
  if (comm_ != nullptr) pncclCommAbort(comm_);
  comm_ = nullptr;
}

void Link::await_silence() noexcept {
  constexpr double patience = 10;  // an aborted kernel ends at once
  const Deadline deadline(patience);
  const BesideCaptures beside;
  while (cudaStreamQuery(stream_.get()) == cudaErrorNotReady && !deadline.passed()) std::this_thread::yield();
  cudaGetLastError();
}

bool Operation::launched() {
  if (launched_) return true;
  if (!is_settled(rank_, comm_)) return false;
  end_.record(stream_);
  return launched_ = true;
}

}  // namespace laconic::nccl
