// The root gets every rank's array, each in its place.
#pragma once

#include <span>

#include "collective/communicator.h"
#include "core/array.h"

namespace laconic {

/// Part r of the root's recv = send of rank r: parts.counts[r] elements from parts.displs[r] on or, without displs, one
/// part after the other. Gaps are not written, and parts must not overlap. `recv` and `parts` are of interest on the
/// root only; counts (and displs) have size() entries and fill recv (lie within it), and counts[r] must be rank r's
/// send.count (Error(mismatch) on every rank, with both values, if it is not). In place on the root when send.data is
/// where its part lies in recv; any other overlap is Error(invalid_argument).
///
/// |recv[i] - sent| <= bound; the root's own part is copied as it is. Root, lossless, NaN, errors: as for bcast.
const Report& gather(const ConstArray& send, const MutArray& recv, const Parts& parts, int root, Communicator& comm,
                     const Options& options);
inline const Report& gather(const ConstArray& send, const MutArray& recv, std::span<const std::size_t> counts, int root,
                            Communicator& comm, const Options& options) {
  return gather(send, recv, Parts{.counts = counts}, root, comm, options);
}

/// The same count on every rank: recv.count == send.count * size(). Lets short calls go to the plain library without
/// agreement.
const Report& gather_equal(const ConstArray& send, const MutArray& recv, int root, Communicator& comm,
                           const Options& options);

}  // namespace laconic
