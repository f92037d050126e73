// Every rank gets its share of the sum (average, minimum, maximum) of all ranks' arrays.
#pragma once

#include <span>

#include "collective/communicator.h"
#include "core/array.h"
#include "core/op.h"

namespace laconic {

/// Rank r gets elements [counts[0] + ... + counts[r-1], ... + counts[r]) of the sum. counts has size() entries, the
/// same on every rank; send.count is their total and recv.count is counts[rank()]. In place when recv.data ==
/// send.data (the rank's share then comes to the front of the array), or when recv is this rank's own block of send.
/// Everything else as for allreduce.
const Report& reduce_scatter(const ConstArray& send, const MutArray& recv, std::span<const std::size_t> counts, Op op,
                             Communicator& comm, const Options& options);

/// The same count for every rank: send.count == recv.count * size().
const Report& reduce_scatter_block(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm,
                                   const Options& options);

}  // namespace laconic
