// The exact route of a reduction: every operand travels losslessly to the owner of its block, who sums exactly and
// rounds once. As many bytes as a plain ring would send at worst, the same bits whatever the order, for everything that
// no grid can hold: lossless bounds, integers, sums beyond the grid.
#pragma once

#include <optional>
#include <vector>

#include "collective/communicator.h"
#include "collective/pipeline.h"
#include "core/op.h"

namespace laconic {

/// operands: this rank's block for each rank. Writes the sum of this rank's own blocks to `result`, which may lie over
/// operands[rank()] or, as in-place reduce_scatter has it, before it in the same array. Scratch: one slab of a block
/// for each other rank. Throws Error(transport).
std::optional<Failure> exact_reduce_scatter(const std::vector<ConstArray>& operands, MutArray result, Op op,
                                            std::size_t segment_values, int threads, Communicator& comm,
                                            Report& report);

/// recv = sum of the ranks up to this one or, exclusive, before it (on rank 0 nothing is written then). recv may be
/// send. Owners of blocks form all sums of their block and send them back. Scratch: two slabs of a block
/// for each rank, of half the size.
std::optional<Failure> exact_scan(ConstArray send, MutArray recv, Op op, bool exclusive, std::size_t segment_values,
                                  int threads, Communicator& comm, Report& report);

}  // namespace laconic
