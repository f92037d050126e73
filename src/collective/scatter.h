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
Report scatter(ConstArray send, const Parts& parts, MutArray recv, int root, Communicator& comm,
               const Options& options);
inline Report scatter(ConstArray send, std::span<const std::size_t> counts, MutArray recv, int root, Communicator& comm,
                      const Options& options) {
  return scatter(send, Parts{.counts = counts}, recv, root, comm, options);
}

/// The same count for every rank: send.count == recv.count * size(). Lets short calls go to the plain library without
/// agreement.
Report scatter_equal(ConstArray send, MutArray recv, int root, Communicator& comm, const Options& options);

}  // namespace laconic
