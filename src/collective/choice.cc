#include "collective/choice.h"

#include <algorithm>
#include <bit>

#include "schedule/bruck.h"
#include "schedule/chain.h"
#include "schedule/doubling.h"
#include "schedule/pairwise.h"
#include "schedule/ring.h"
#include "schedule/star.h"
#include "schedule/tree.h"
#include "schedule/two_level.h"

namespace laconic {
namespace {

// Below these many uncompressed bytes a message costs more than what is in it, so fewer messages win over fewer bytes:
// 50 us at 1 Gb/s are 6 KB on the wire, some times as many before compression.
constexpr std::size_t short_data = std::size_t{64} << 10;
constexpr std::size_t short_block = std::size_t{1} << 10;
constexpr std::size_t medium_data = std::size_t{1} << 20;

// With slabs, the stages of a two-level schedule overlap: some are needed for that, and more where the blocks, of which
// a rank holds a few, would grow. Below this size messages cost more than the overlap gains.
constexpr std::size_t enough_slabs = 16;
constexpr std::size_t least_slab_block = std::size_t{128} << 10;
constexpr std::size_t most_slab_block = std::size_t{1} << 20;

// What a slab does not overlap with its neighbours is little in so much; memory for all of its messages is little, too.
constexpr std::size_t most_direct_slab = std::size_t{64} << 20;

// Plain elements must be copied from rank to rank, which costs more than to encode, add and decode them. Two levels pay
// where one would send the data over a node's link this many times (measured at 200 Mb/s and 1 Gb/s).
constexpr int many_exits = 4;

std::size_t log2_up(int n) { return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(n - 1))); }

/// Counted in messages, one after the other: along a chain, each link is busy with one segment at a time and the last
/// one begins n - 2 hops late; in a tree the root's link carries each segment log2(n) times.
bool chain_pays(int ranks, std::size_t segments) {
  return segments + static_cast<std::size_t>(ranks) - 2 <= segments * log2_up(ranks);
}

// Where nothing has been measured, among these few a direct exchange is mostly faster than a ring, at any size.
constexpr int few_ranks = 8;

/// Whether a direct exchange is to be thought of. It has a connection, and messages under way, for each peer; with some
/// ranks on a node more would leave it than around a ring. Among two it is a ring.
bool few_peers(const schedule::Nodes& nodes) {
  return nodes.ranks() > 2 && nodes.ranks() <= 16 && (nodes.most() == 1 || nodes.count() == 1);
}

bool power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

}  // namespace

bool choose_two_levels(Schedule wish, const schedule::Nodes& nodes, std::size_t bytes) {
  if (wish != Schedule::automatic) return wish == Schedule::two_level;
  return nodes.exits() >= many_exits && nodes.most() > 1 && bytes > medium_data;
}

int choose_slabs(std::size_t bytes, int shares) {
  const std::size_t share = bytes / static_cast<std::size_t>(shares);
  const std::size_t for_overlap = std::min(enough_slabs, share / least_slab_block);
  return static_cast<int>(std::max({std::size_t{1}, for_overlap, share / most_slab_block}));
}

int choose_direct_slabs(std::size_t share, int ranks) {
  const std::size_t bytes = share * static_cast<std::size_t>(ranks);
  return static_cast<int>(std::max(std::size_t{1}, (bytes + most_direct_slab - 1) / most_direct_slab));
}

schedule::Program choose_bcast(int ranks, int rank, int root, std::size_t segments) {
  return chain_pays(ranks, segments) ? schedule::chain::bcast(ranks, rank, root)
                                     : schedule::tree::bcast(ranks, rank, root);
}

schedule::Program choose_reduce(int ranks, int rank, int root, std::size_t segments) {
  return chain_pays(ranks, segments) ? schedule::chain::reduce(ranks, rank, root)
                                     : schedule::tree::reduce(ranks, rank, root);
}

schedule::Program choose_bcast(const schedule::Nodes& nodes, int rank, int root, std::size_t segments) {
  const auto between = chain_pays(nodes.count(), segments) ? schedule::chain::bcast : schedule::tree::bcast;
  return schedule::two_level::bcast(nodes, rank, root, between);
}

schedule::Program choose_two_level_reduce(const schedule::Nodes& nodes, int rank, int root, std::size_t bytes) {
  const int slabs = choose_slabs(bytes, nodes.most());
  const auto between =
      chain_pays(nodes.count(), static_cast<std::size_t>(slabs)) ? schedule::chain::reduce : schedule::tree::reduce;
  return schedule::two_level::reduce(nodes, rank, root, slabs, between);
}

schedule::Program choose_scan(int ranks, int rank, std::size_t segments) {
  return chain_pays(ranks, segments) ? schedule::chain::scan(ranks, rank) : schedule::doubling::scan(ranks, rank);
}

schedule::Program choose_scatter(int ranks, int rank, int root, std::size_t bytes) {
  return bytes <= short_data ? schedule::tree::scatter(ranks, rank, root) : schedule::star::scatter(ranks, rank, root);
}

schedule::Program choose_gather(int ranks, int rank, int root, std::size_t bytes) {
  return bytes <= short_data ? schedule::tree::gather(ranks, rank, root) : schedule::star::gather(ranks, rank, root);
}

schedule::Program choose_allgather(int ranks, int rank, std::size_t bytes) {
  if (bytes > short_data) return schedule::ring::allgather(ranks, rank);
  // Without a fold Bruck needs fewer steps; without an odd number of ranks doubling stays with one peer each way.
  return power_of_two(ranks) ? schedule::doubling::allgather(ranks, rank) : schedule::bruck::allgather(ranks, rank);
}

schedule::Program choose_allgather(Schedule wish, const schedule::Nodes& nodes, int rank, std::size_t bytes) {
  return choose_two_levels(wish, nodes, bytes) ? schedule::two_level::allgather(nodes, rank)
                                               : choose_allgather(nodes.ranks(), rank, bytes);
}

schedule::Program choose_alltoall(int ranks, int rank, std::size_t block_bytes) {
  return ranks > 4 && block_bytes <= short_block ? schedule::bruck::alltoall(ranks, rank)
                                                 : schedule::pairwise::alltoall(ranks, rank);
}

Schedule choose_allreduce(const schedule::Nodes& nodes, std::size_t bytes, std::optional<bool> direct_pays) {
  if (bytes <= short_data) return Schedule::recursive_doubling;
  if (choose_two_levels(Schedule::automatic, nodes, bytes)) return Schedule::two_level;
  if (bytes <= medium_data && power_of_two(nodes.ranks())) return Schedule::rabenseifner;
  return choose_reduce_scatter(nodes, bytes, bytes / static_cast<std::size_t>(nodes.ranks()), direct_pays);
}

// In medium data steps count, in long data it depends on what is slower, the wire or the codec: each rank encodes more
// the more there are. A share that is much longer than the others would all come in at its owner.
Schedule choose_reduce_scatter(const schedule::Nodes& nodes, std::size_t bytes, std::size_t share,
                               std::optional<bool> direct_pays) {
  const bool even = share <= 2 * (bytes / static_cast<std::size_t>(nodes.ranks()));
  const bool unmeasured = bytes <= medium_data || nodes.ranks() <= few_ranks;
  const bool direct = few_peers(nodes) && even && direct_pays.value_or(unmeasured);
  return direct ? Schedule::direct : Schedule::ring;
}

}  // namespace laconic
