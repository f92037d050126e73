// NCCL's collectives, as NCCL has them, by Laconic's: what the C interface and the drop-in library have in common.
#pragma once

#include <nccl.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collective/collective.h"
#include "collective/communicator.h"
#include "core/error.h"
#include "gpu/device_memory.h"
#include "transport/nccl/stop.h"

namespace laconic::gpu {

/// One call. `count` is NCCL's: of recv for a reduce_scatter, of send for an allgather. send and recv as NCCL has them,
/// in place too.
struct NcclCall {
  Collective collective = Collective::allreduce;  ///< that, reduce, reduce_scatter, bcast or allgather
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;
  Op op = Op::none;
  int root = 0;
};

/// Bytes of the largest array of the call.
std::uint64_t bytes_of(const NcclCall& call, int ranks);

/// Makes the call; arrays lie where the communicator's do. Throws Error.
laconic::Report run(const NcclCall& call, Communicator& comm, const Options& options);

/// A rank's GPU has no kernels of Laconic's (it is too old, or its driver), or no memory left: all ranks know.
struct CannotRun : Error {
  CannotRun(const std::string& what, bool first) : Error(Code::unsupported, what), is_first(first) {}
  bool is_first;  ///< of the ranks that cannot: it is for this one to tell
};

/// Of the device that is current. Collective: throws CannotRun on every rank if one has none.
std::unique_ptr<DeviceMemory> device_memory_of_all(Transport& transport);

/// What there is for one of a program's communicators. One thread at a time, but for stop().
class NcclGroup {
 public:
  NcclGroup() = default;
  /// Collective, unless stopped. Any device may be current.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// First of all, and collective over `nccl`, which must live as long as calls are made: what is left to NCCL is an
  /// operation of its own. Its device must be current. Calls wait for other ranks `timeout` seconds; 0: for ever.
  /// Throws CannotRun, on every rank.
  void begin(ncclComm_t nccl, const Options& defaults, double timeout);
  /// Whoever waits for other ranks, in begin() too, and whoever would, gets Error(transport) at once.
  void stop() { stop_->set(); }

  [[nodiscard]] Communicator& comm() { return *comm_; }
  /// Where calls work from now on, and whether those that go plainly may be left there. Throws Error(unsupported) for a
  /// stream that is being captured.
  void use(Stream stream, bool may_leave = true) {
    memory_->use(stream);
    memory_->let_leave(may_leave);
  }

 private:
  const std::shared_ptr<nccl::Stop> stop_ = std::make_shared<nccl::Stop>();
  int device_ = 0;
  std::unique_ptr<DeviceMemory> memory_;
  std::optional<Communicator> comm_;
};

/// By communicator. Thread safe; whoever works with a group holds it meanwhile.
class NcclGroups {
 public:
  /// Makes it in the first call for a communicator: add() and begin(), with default_timeout().
  std::shared_ptr<NcclGroup> of(ncclComm_t nccl, const Options& defaults, Stream stream);
  /// From here on abandon() finds it.
  std::shared_ptr<NcclGroup> add(ncclComm_t nccl);
  /// Collective: NCCL must have nothing under way on the communicator, so what `stream` has been given is waited for.
  /// Throws Error(unsupported) if the stream is being captured. Where this fails the group is no longer here.
  void begin(const std::shared_ptr<NcclGroup>& added, ncclComm_t nccl, const Options& defaults, Stream stream,
             double timeout);
  /// Null: there is none.
  std::shared_ptr<NcclGroup> find(ncclComm_t nccl);
  /// The same, and it is no longer here; to let go of it is collective.
  std::shared_ptr<NcclGroup> take(ncclComm_t nccl);
  /// Stops and forgets it. Nothing is freed yet: that waits for the device, where kernels of a communicator may run
  /// that is aborted next. A later begin() does so.
  void abandon(ncclComm_t nccl);

 private:
  std::mutex mutex_;
  std::map<ncclComm_t, std::shared_ptr<NcclGroup>> groups_;
  std::vector<std::shared_ptr<NcclGroup>> abandoned_;
};

}  // namespace laconic::gpu
