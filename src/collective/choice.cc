#include "collective/choice.h"

#include <bit>

#include "schedule/bruck.h"
#include "schedule/chain.h"
#include "schedule/doubling.h"
#include "schedule/pairwise.h"
#include "schedule/ring.h"
#include "schedule/star.h"
#include "schedule/tree.h"

namespace laconic {
namespace {

// Below these many uncompressed bytes a message costs more than what is in it, so fewer messages win over fewer bytes:
// 50 us at 1 Gb/s are 6 KB on the wire, some times as many before compression.
constexpr std::size_t short_data = std::size_t{64} << 10;
constexpr std::size_t short_block = std::size_t{1} << 10;
constexpr std::size_t medium_data = std::size_t{1} << 20;

std::size_t log2_up(int n) { return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(n - 1))); }

/// Counted in messages, one after the other: along a chain, each link is busy with one segment at a time and the last
/// one begins n - 2 hops late; in a tree the root's link carries each segment log2(n) times.
bool chain_pays(int ranks, std::size_t segments) {
  return segments + static_cast<std::size_t>(ranks) - 2 <= segments * log2_up(ranks);
}

bool power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

}  // namespace

schedule::Program choose_bcast(int ranks, int rank, int root, std::size_t segments) {
  return chain_pays(ranks, segments) ? schedule::chain::bcast(ranks, rank, root)
                                     : schedule::tree::bcast(ranks, rank, root);
}

schedule::Program choose_reduce(int ranks, int rank, int root, std::size_t segments) {
  return chain_pays(ranks, segments) ? schedule::chain::reduce(ranks, rank, root)
                                     : schedule::tree::reduce(ranks, rank, root);
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

schedule::Program choose_alltoall(int ranks, int rank, std::size_t block_bytes) {
  return ranks > 4 && block_bytes <= short_block ? schedule::bruck::alltoall(ranks, rank)
                                                 : schedule::pairwise::alltoall(ranks, rank);
}

Schedule choose_allreduce(int ranks, std::size_t bytes) {
  if (bytes <= short_data) return Schedule::recursive_doubling;
  return bytes <= medium_data && power_of_two(ranks) ? Schedule::rabenseifner : Schedule::ring;
}

}  // namespace laconic
