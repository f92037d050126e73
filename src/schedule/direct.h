// Direct exchange: every operand goes straight to the rank that sums its block, so that only operands travel, which
// have fewer bits than their partial sums, and a sum is two messages away. Pays while each rank has few peers.
//
// Each of n owners sums `slabs` blocks: block owner * slabs + slab. Slabs bound what is under way at one time: a slab's
// sums go out while the operands of the next one come in.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::direct {

/// Every rank brings all blocks; owner r ends with its own.
Program reduce_scatter(int ranks, int rank, int slabs);

/// Every rank brings all blocks and ends with all.
Program allreduce(int ranks, int rank, int slabs);

}  // namespace laconic::schedule::direct
