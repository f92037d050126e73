// NCCL's collectives, as NCCL has them, by Laconic's: what the C interface and the drop-in library have in common.
#pragma once

#include <nccl.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "collective/collective.h"
#include "collective/communicator.h"
#include "gpu/device_memory.h"

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

/// What there is for one of a program's communicators. One thread at a time.
class NcclGroup {
 public:
  /// Collective over `nccl`, which it does not use afterwards. Its device must be current.
  NcclGroup(ncclComm_t nccl, const Options& defaults);
  /// Collective. Any device may be current.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  [[nodiscard]] Communicator& comm() { return *comm_; }
  /// Where calls work from now on. Throws Error(unsupported) for a stream that is being captured.
  void use(Stream stream) { memory_->use(stream); }

 private:
  int device_ = 0;
  std::optional<DeviceMemory> memory_;
  std::optional<Communicator> comm_;
};

/// By communicator. Thread safe.
class NcclGroups {
 public:
  /// Makes it in the first call for a communicator, which is collective: NCCL must have nothing under way on that, so
  /// what `stream` has been given is waited for. Throws Error(unsupported) then if the stream is being captured.
  NcclGroup& of(ncclComm_t nccl, const Options& defaults, Stream stream);
  /// Null: there is none.
  NcclGroup* find(ncclComm_t nccl);
  /// Collective where there is one; null where there is none.
  std::unique_ptr<NcclGroup> take(ncclComm_t nccl);

 private:
  std::mutex mutex_;
  std::map<ncclComm_t, std::unique_ptr<NcclGroup>> groups_;
};

}  // namespace laconic::gpu
