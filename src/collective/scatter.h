// Every rank gets its share of the root's array.
#pragma once

#include <span>

#include "collective/communicator.h"
#include "core/array.h"

namespace laconic {

/// Rank r's recv = part r of the root's send: parts.counts[r] elements from parts.displs[r] on or, without displs, one
/// part after the other. `send` and `parts` are of interest on the root only; counts (and displs) have size() entries
/// and fill send (lie within it), and counts[r] must be rank r's recv.count (Error(mismatch) on every rank, with both
/// values, if it is not). In place on the root when recv.data is where its part lies in send; any other overlap is
/// Error(invalid_argument).
///
/// |recv[i] - sent| <= bound; the root's own share is copied as it is. Root, lossless, NaN, errors: as for bcast.
const Report& scatter(const ConstArray& send, const Parts& parts, const MutArray& recv, int root, Communicator& comm,
                      const Options& options);
inline const Report& scatter(const ConstArray& send, std::span<const std::size_t> counts, const MutArray& recv,
                             int root, Communicator& comm, const Options& options) {
  return scatter(send, Parts{.counts = counts}, recv, root, comm, options);
}

/// The same count for every rank: send.count == recv.count * size(). Lets short calls go to the plain library without
/// agreement.
const Report& scatter_equal(const ConstArray& send, const MutArray& recv, int root, Communicator& comm,
                            const Options& options);

}  // namespace laconic
