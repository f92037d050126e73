// Every rank gets the sum (average, minimum, maximum) of all ranks' arrays, within the bound, bit-identical everywhere.
#pragma once

#include "collective/communicator.h"
#include "core/array.h"
#include "core/op.h"

namespace laconic {

/// recv[i] = sum over ranks of send[i]; average divides by size(). min and max: of the operands' values on the grid, so
/// within the bound exactly, without any rounding; NaN where an operand is NaN, -0 below +0.
///
/// * Same count, dtype, op and bound on every rank, else Error(mismatch) on every rank, naming one that differs.
/// * In place when recv.data == send.data; any other overlap is Error(invalid_argument).
/// * |recv[i] - exact| <= bound + half a unit in the last place, for each i. The bytes are the same on every rank and
///   do not depend on segment size, threads or schedule. With one rank, recv is a copy of send.
/// * NaN and infinities as in IEEE arithmetic. Integers: sum modulo 2^bits, exactly; the average exactly, rounded
///   toward zero.
/// * An error on any rank is an error on all (Options::confirm); recv then holds unspecified values.
///
/// Returns what the call did on this rank: the communicator's, until its next call (so do all collectives).
const Report& allreduce(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm,
                        const Options& options);
const Report& allreduce(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm);

}  // namespace laconic
