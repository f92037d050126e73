// The root gets every rank's array, one after the other in rank order.
#pragma once

#include <span>

#include "collective/communicator.h"
#include "core/array.h"

namespace laconic {

/// The root's recv = send of rank 0, send of rank 1, ... `recv` and `counts` are of interest on the root only; counts
/// has size() entries that add up to recv.count, and counts[r] must be rank r's send.count (Error(mismatch) on every
/// rank, with both values, if it is not). In place on the root when send.data is where its part lies in recv; any other
/// overlap is Error(invalid_argument).
///
/// |recv[i] - sent| <= bound; the root's own part is copied as it is. Root, lossless, NaN, errors: as for bcast.
Report gather(ConstArray send, MutArray recv, std::span<const std::size_t> counts, int root, Communicator& comm,
              const Options& options);

/// The same count on every rank: recv.count == send.count * size(). Lets short calls go to the plain library without
/// agreement.
Report gather_equal(ConstArray send, MutArray recv, int root, Communicator& comm, const Options& options);

}  // namespace laconic
