// Every rank gets every rank's array, one after the other in rank order.
#pragma once

#include "collective/communicator.h"
#include "core/array.h"

namespace laconic {

/// recv = send of rank 0, send of rank 1, ... Counts may differ between ranks; recv.count is their total
/// (Error(mismatch) with both values if it is not). In place when send.data is where this rank's part lies in recv; any
/// other overlap costs a copy of send.
///
/// Each rank's data is compressed once and forwarded unopened: |recv[i] - sent| <= bound. Every rank holds the same
/// bytes: also the owner keeps what the others decode. Lossless (the default) keeps every bit. NaN and infinities pass
/// through.
const Report& allgather(const ConstArray& send, const MutArray& recv, Communicator& comm, const Options& options);
const Report& allgather(const ConstArray& send, const MutArray& recv, Communicator& comm);

/// The same where every rank knows the counts of all (the same on every rank, else Error(mismatch)) and may have the
/// parts elsewhere than one after the other: part r begins at element parts.displs[r] of recv. Gaps are not written,
/// and parts must not overlap.
const Report& allgather(const ConstArray& send, const MutArray& recv, const Parts& parts, Communicator& comm,
                        const Options& options);

/// The same count on every rank, which lets short calls go to the plain library without agreement.
const Report& allgather_equal(const ConstArray& send, const MutArray& recv, Communicator& comm, const Options& options);

}  // namespace laconic
