// The root gets the sum (average, minimum, maximum) of all ranks' arrays.
#pragma once

#include "collective/communicator.h"
#include "core/array.h"
#include "core/op.h"

namespace laconic {

/// recv[i] on the root = sum over ranks of send[i]; recv is of interest there only. In place on the root when recv.data
/// == send.data. The root is the same number on every rank. Everything else, the bits of the result too, as for
/// allreduce.
const Report& reduce(const ConstArray& send, MutArray recv, Op op, int root, Communicator& comm,
                     const Options& options);

}  // namespace laconic
