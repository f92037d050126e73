// Calls within a group.
#pragma once

#include <nccl.h>

#include <functional>
#include <memory>
#include <vector>

#include "preload/nccl/runtime.h"
#include "transport/nccl/stop.h"

namespace laconic::preload {

struct Deferred {
  gpu::NcclCall call;
  const Rule* rule;  ///< null: its communicator's name decides, on which ranks have yet to agree
  ncclComm_t comm;
  int device;  ///< the communicator's
  cudaStream_t stream;
  std::function<ncclResult_t()> plain;
  std::shared_ptr<nccl::Stop> stop;  ///< the communicator's
  bool has_beside = false;           ///< its group has calls of its communicator on other streams
};

/// Of a group, what NCCL makes.
struct Given {
  ncclComm_t comm;
  cudaStream_t stream;
};

/// The first error, if there is one.
inline ncclResult_t worse(ncclResult_t a, ncclResult_t b) {
  const bool is_error = a != ncclSuccess && a != ncclInProgress;
  return is_error || b == ncclSuccess ? a : b;
}

/// The calls of a group, which NCCL makes when it ends, and so does Laconic.
///
/// Those on one communicator begin after what all their streams have been given, and these wait for their end. NCCL
/// sees to that for its own calls. Where some are Laconic's, the streams of NCCL's wait for what theirs have been given
/// before NCCL's are made, and theirs for all others' after that.
///
/// Whether a call is served is for its communicator's ranks to know, whatever else is in the group of one of them. So
/// what is on other communicators and other streams goes on at the same time, each on a thread of its own: one thread
/// may have several ranks, and others may make the same calls in another order, or in no group. On one communicator or
/// one stream, or where one is stream 0 and the other waits for it, calls are made one after the other, as NCCL has
/// them there. So are those that turn out to be NCCL's own: a rank that makes the same calls in no group has them in
/// their turn, too.
struct GroupCalls {
  std::vector<Deferred> calls;
  std::vector<Given> given;

  /// Makes them all: `plain` those that were given to NCCL. The first error, if there is one.
  ncclResult_t make(NcclRuntime& runtime, const std::function<ncclResult_t()>& plain);
};

}  // namespace laconic::preload
