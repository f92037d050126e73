// What a caller may choose per call or per communicator, and what a call reports.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bound.h"
#include "core/stats.h"

namespace laconic {

/// How a collective's data travels.
enum class Route : std::uint8_t {
  automatic = 0,
  on_grid = 1,  ///< error-bounded: one common grid, frames added as integers
  exact = 2,    ///< losslessly to the owner, who sums exactly and rounds once
};

struct Options {
  Bound bound{};                   ///< default: lossless
  int threads = 1;                 ///< codec threads of this rank; the bytes do not depend on it
  std::size_t segment_values = 0;  ///< pipeline segment in elements, rounded up to whole chunks; 0: automatic. Ranks
                                   ///< may differ: the smallest wins
  bool confirm = true;             ///< agree on success at the end, so that an error anywhere is an error on every rank
};

/// What one call did on this rank. The times in `stats` add up to the whole call.
struct Report {
  Stats stats;                       ///< calls == 1; original_bytes and wire_bytes count what this rank sent
  Route route = Route::automatic;    ///< what was taken
  double operand_bound = 0;          ///< absolute bound that each operand was encoded with; 0: lossless
  double result_bound = 0;           ///< absolute bound promised for each element of the result; 0: exact
  std::uint64_t bytes_received = 0;  ///< payload, metadata included
  std::uint64_t messages_sent = 0;
  std::uint64_t scratch_bytes = 0;  ///< most bytes of messages held at one time
};

}  // namespace laconic
