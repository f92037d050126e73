// Every rank has a message for every rank.
#pragma once

#include <span>

#include "collective/communicator.h"
#include "core/array.h"

namespace laconic {

/// send and recv are size() blocks of the same count each: block p of rank r's send becomes block r of rank p's recv.
/// In place when recv.data == send.data; any other overlap is Error(invalid_argument).
///
/// |received - sent| <= bound; what a rank has for itself is copied as it is. Count, dtype and bound are the same on
/// every rank, else Error(mismatch) on every rank. Lossless, NaN, errors: as for bcast.
const Report& alltoall(const ConstArray& send, const MutArray& recv, Communicator& comm, const Options& options);

/// The same with any counts: out.counts[p] elements for rank p, in.counts[p] from rank p, one after the other or where
/// their displs have them; gaps are not written, and parts that are written must not overlap. What r sends to p must be
/// what p expects from r, else Error(mismatch) on every rank, with both values. In place only where out and in are the
/// same.
const Report& alltoallv(const ConstArray& send, const Parts& out, const MutArray& recv, const Parts& in,
                        Communicator& comm, const Options& options);
inline const Report& alltoallv(const ConstArray& send, std::span<const std::size_t> send_counts, const MutArray& recv,
                               std::span<const std::size_t> recv_counts, Communicator& comm, const Options& options) {
  return alltoallv(send, Parts{.counts = send_counts}, recv, Parts{.counts = recv_counts}, comm, options);
}

}  // namespace laconic
