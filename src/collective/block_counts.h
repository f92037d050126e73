// What the ranks of an alltoall with counts have for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/communicator.h"

namespace laconic {

/// Among more ranks than this each hears of its own blocks alone: all of them are 16 bytes times the ranks, squared.
inline constexpr int most_ranks_that_hear_all = 64;

/// Collective, after the ranks have agreed that they make this call. The elements of the largest block of all. Throws
/// the same Error(mismatch) everywhere where a rank does not expect what another sends. size() counts each.
std::uint64_t largest_block(Communicator& comm, std::span<const std::size_t> send_counts,
                            std::span<const std::size_t> recv_counts, Report& report);

}  // namespace laconic
