// Every rank gets the sum (average, minimum, maximum) of the arrays of the ranks up to it.
#pragma once

#include "collective/communicator.h"
#include "core/array.h"
#include "core/op.h"

namespace laconic {

/// recv[i] on rank r = sum over ranks 0 .. r of send[i]; average divides by r + 1. The bound is that of a sum over all
/// ranks: each rank's result keeps it. On the last rank the bits are those of an allreduce. Counts, place, NaN,
/// integers, errors: as for allreduce. With one rank, recv is a copy of send.
const Report& scan(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm, const Options& options);

/// The same over ranks 0 .. r - 1; average divides by r. On rank 0 recv is not written.
const Report& exscan(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm, const Options& options);

}  // namespace laconic
