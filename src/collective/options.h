// What a caller may choose per call or per communicator, and what a call reports.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bound.h"

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
  std::size_t segment_values = 0;  ///< pipeline segment in elements, rounded up to whole chunks; 0: automatic. Ranks may
                                   ///< differ: the smallest wins
  bool confirm = true;             ///< agree on success at the end, so that an error anywhere is an error on every rank
};

/// What one call did on this rank; Communicator::total() adds them up. Seconds of wall clock.
struct Stats {
  std::uint64_t calls = 0;
  Route route = Route::automatic;     ///< what was taken (of the last call in a total)
  double operand_bound = 0;           ///< absolute bound that each operand was encoded with; 0: lossless
  double result_bound = 0;            ///< absolute bound that is promised for each element of the result; 0: exact
  double seconds = 0;                 ///< whole call
  double codec_seconds = 0;           ///< encode, add, decode
  double wire_seconds = 0;            ///< waiting for other ranks with nothing else to do
  double compute_seconds = 0;         ///< range scan, exact sums, division
  std::uint64_t bytes_sent = 0;       ///< payload handed to the transport, metadata included
  std::uint64_t bytes_received = 0;
  std::uint64_t original_bytes = 0;   ///< what the same messages would be uncompressed (sent side)
  std::uint64_t messages_sent = 0;
  std::uint64_t scratch_bytes = 0;    ///< most buffer bytes filled at one time

  /// What is neither codec, nor wire, nor compute.
  [[nodiscard]] double other_seconds() const { return seconds - codec_seconds - wire_seconds - compute_seconds; }
  /// Original over sent bytes; 1 when nothing was sent.
  [[nodiscard]] double ratio() const {
    return bytes_sent == 0 ? 1.0 : static_cast<double>(original_bytes) / static_cast<double>(bytes_sent);
  }
  Stats& operator+=(const Stats& o);
};

}  // namespace laconic
