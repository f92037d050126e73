// Calls within a group: NCCL makes them when the group ends, and so does Laconic.
#pragma once

#include <nccl.h>

#include <functional>
#include <vector>

#include "preload/nccl/runtime.h"

namespace laconic::preload {

struct Deferred {
  gpu::NcclCall call;
  const Rule* rule;  ///< null: its communicator's name decides, on which ranks have yet to agree
  ncclComm_t comm;
  cudaStream_t stream;
  std::function<ncclResult_t()> plain;
};

/// The first error, if there is one.
inline ncclResult_t worse(ncclResult_t a, ncclResult_t b) {
  const bool is_error = a != ncclSuccess && a != ncclInProgress;
  return is_error || b == ncclSuccess ? a : b;
}

/// The result of plain calls on a communicator that does not block, once they are launched. Still ncclInProgress:
/// another communicator's of their group are not.
ncclResult_t awaited(ncclResult_t result, ncclComm_t comm);

/// Makes a group's calls, when all else of the group has been given to NCCL. Whether a call is served is for its
/// communicator's ranks to know, whatever else is in the group of one of them. So what is on other communicators and
/// other streams goes on at the same time, each on a thread of its own: one thread may have several ranks, and others
/// may make the same calls in another order, or in no group. On one communicator or one stream, or where one is
/// stream 0 and the other waits for it, calls are made one after the other, as NCCL has them there. So are those that
/// turn out to be NCCL's own: a rank that makes the same calls in no group has them in their turn, too.
ncclResult_t make_all(NcclRuntime& runtime, const std::vector<Deferred>& calls);

}  // namespace laconic::preload
