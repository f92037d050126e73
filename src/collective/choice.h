// Which schedule suits a size and a number of ranks, where several give the same result.
#pragma once

#include <cstddef>
#include <optional>

#include "collective/options.h"
#include "schedule/nodes.h"
#include "schedule/schedule.h"

namespace laconic {

/// Whether `bytes` (uncompressed) go on two levels: by wish, or where ranks are spread over nodes so that one level
/// would send the data over the same link many times.
bool choose_two_levels(Schedule wish, const schedule::Nodes& nodes, std::size_t bytes);

/// How many slabs a two-level schedule cuts `bytes` in, of which each has `shares` blocks.
int choose_slabs(std::size_t bytes, int shares);

/// The same for a direct exchange among `ranks`, of which none sums more than `share` bytes; a slab is what is under
/// way at one time.
int choose_direct_slabs(std::size_t share, int ranks);

/// One block of `segments` segments from the root to all, or summed from all to the root: a chain, where every rank
/// sends the data once, or a tree, where a message takes few hops.
schedule::Program choose_bcast(int ranks, int rank, int root, std::size_t segments);
schedule::Program choose_reduce(int ranks, int rank, int root, std::size_t segments);
/// The same on two levels; a reduce has blocks of its own then, of `bytes` in all.
schedule::Program choose_bcast(const schedule::Nodes& nodes, int rank, int root, std::size_t segments);
schedule::Program choose_two_level_reduce(const schedule::Nodes& nodes, int rank, int root, std::size_t bytes);
schedule::Program choose_scan(int ranks, int rank, std::size_t segments);

/// n blocks of `bytes` (uncompressed) in all.
schedule::Program choose_scatter(int ranks, int rank, int root, std::size_t bytes);
schedule::Program choose_gather(int ranks, int rank, int root, std::size_t bytes);
schedule::Program choose_allgather(int ranks, int rank, std::size_t bytes);
/// On two levels where `wish` or the placement of ranks say so.
schedule::Program choose_allgather(Schedule wish, const schedule::Nodes& nodes, int rank, std::size_t bytes);

/// n * n blocks of `block_bytes` each.
schedule::Program choose_alltoall(int ranks, int rank, std::size_t block_bytes);

/// What Schedule::automatic stands for, for `bytes` (uncompressed) on each rank, of which no rank ends with more than
/// `share`. direct_pays: see routing.h.
Schedule choose_allreduce(const schedule::Nodes& nodes, std::size_t bytes, std::optional<bool> direct_pays);
Schedule choose_reduce_scatter(const schedule::Nodes& nodes, std::size_t bytes, std::size_t share,
                               std::optional<bool> direct_pays);

}  // namespace laconic
