// NCCL over threads of this process, for tests: those functions of nccl.h that Laconic calls. Link laconic_fake_nccl in
// place of libnccl; streams and memory are fake_cuda.h's. Begin with ncclCommInitAll, communicator r for the thread
// that plays rank r, or with ncclGetUniqueId and ncclCommInitRankConfig in each.
//
// As strict as NCCL, and where NCCL would hang or return garbage, the program ends with a message:
//  - Operations of a communicator run in the order in which they were issued, and only as their stream is asked for.
//  - Those of one group begin after what all their streams have been given, and these wait for their end.
//  - Sends and receives of one group progress together; outside of one, a send holds up its stream until the receive.
//  - Byte counts of a send and its receive, and all arguments of a collective, must agree on all ranks.
//  - Buffers must be device or pinned memory, and in place where NCCL has that, or apart.
//  - A communicator with config.blocking = 0 answers ncclInProgress, and has not put its work on the stream before
//    ncclCommGetAsyncError says otherwise. Communicators of ncclCommInitAll block; others do as their config says.
//  - A communicator that ranks join has its handle at once, and works when all have; one that is split off has it when
//    it works: at the end of a group, or when ncclCommGetAsyncError of a parent says so that does not block.
//  - What finalizes a communicator that does not block, in a group, begins when the group ends.
//  - A communicator that was destroyed or aborted must not be used.
//  - Sums are rounded at each addition, in rank order.
// ncclGetVersion says what the environment has as FAKE_NCCL_VERSION.
// As in NCCL, each function goes by its pnccl name too, and by its nccl name only where nobody else has that.
#pragma once

#include <nccl.h>

#include <cstddef>

namespace laconic::fake {

/// What ncclCommGetAsyncError says from now on of this rank's communicator and of all that were split from it.
void set_async_error(ncclComm_t comm, ncclResult_t error);

/// From now on nothing of this rank's communicator, which does not block, comes on its stream: it stays in progress.
void hold_launches(ncclComm_t comm);

/// Communicators neither destroyed nor aborted.
std::size_t live_communicators();

/// What a test may count: groups that were launched and the sends and all-gathers in them, by all ranks.
struct Traffic {
  std::size_t sends = 0, sent_bytes = 0, all_gathers = 0;
  std::size_t senders = 0;      ///< communicators with sends
  std::size_t lone_aborts = 0;  ///< outside of a group, where NCCL may wait for kernels of other communicators
};
Traffic traffic();

}  // namespace laconic::fake
