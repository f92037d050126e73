// What a caller may choose per call or per communicator, and what a call reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "codec/codec.h"
#include "core/bound.h"
#include "core/config.h"
#include "core/stats.h"

namespace laconic {

/// How a collective's data travels.
enum class Route : std::uint8_t {
  automatic = 0,
  on_grid = 1,   ///< error-bounded: one common grid, frames added as integers
  exact = 2,     ///< losslessly to the owner, who sums exactly and rounds once
  stepwise = 3,  ///< decompressed, operated on and compressed again at every step
  plain = 4,     ///< by the plain library's own collective
};

/// How a collective uses its codec.
enum class Framework : std::uint8_t {
  automatic = 0,       ///< reductions: on_grid for slice, stepwise for other codecs and products. Movement: once
  on_grid = 1,         ///< slice only
  stepwise = 2,        ///< reductions: decompress, operate, compress (C-Coll, ZCCL). Movement: compressed once
  point_to_point = 3,  ///< CPRP2P: compressed and decompressed at every hop, a whole block in one message
};
/// "automatic", "on-grid", "stepwise", "point-to-point"; "?" for a value that is no Framework.
const char* name_of(Framework framework);

/// Who talks to whom in an allreduce; in a reduce_scatter (but for sums in steps) only whether it is direct; in a
/// bcast, a reduce and an allgather only whether it is on two levels. The result does not depend on it.
enum class Schedule : std::uint8_t {
  automatic = 0,           ///< by size, number of ranks, and who shares a node
  ring = 1,                ///< every rank sends as many bytes as any must, n - 1 steps twice
  recursive_doubling = 2,  ///< fewest steps, the whole data in each
  rabenseifner = 3,        ///< recursive halving, then doubling: a ring's bytes in few steps where n is a power of two
  two_level = 4,           ///< plain elements within a node, a ring of nodes
  direct = 5,              ///< operands straight to who sums them: fewest bits and two steps, n - 1 messages in each
};
/// "automatic", "ring", "recursive doubling", "rabenseifner", "two-level", "direct"; "?" for a value that is no
/// Schedule.
const char* name_of(Schedule schedule);

struct Options {
  Bound bound{};                   ///< default: lossless
  int threads = 1;                 ///< codec threads of this rank; the bytes do not depend on it
  std::size_t segment_values = 0;  ///< pipeline segment in elements, rounded up to whole chunks; 0: automatic. Ranks
                                   ///< may differ: the smallest wins
  Schedule schedule = Schedule::automatic;  ///< on the grid; the same on every rank
  /// The same on every rank. With a codec that keeps a ratio the bound is one (10x) and nothing is promised. In the
  /// frameworks stepwise and point_to_point, sums are rounded at every step, as plain MPI's are, and products take a
  /// bound per operand or none.
  CodecId codec = CodecId::slice;
  Framework framework = Framework::automatic;
  Mode mode = Mode::automatic;  ///< the same on every rank
  bool confirm = true;          ///< agree on success at the end, so that an error anywhere is an error on every rank
  /// Run the exact operation too and report the achieved error; where one rank wishes it, all do. A result outside of
  /// what was promised is then Error(internal) on every rank. Implies confirm. Of messages the sender's wish counts:
  /// see p2p.h.
  bool verify = false;
  /// Ask the other ranks before every call, also where the plain library is known to make it: what ranks differ in, and
  /// who does not come, is then an error on all. The same on every rank, or, where some wish it alone, from the
  /// communicator's first call on: then all do it.
  bool check = false;

  /// Whether nothing is said about how to compress: only such calls may go to the plain library. Which schedule
  /// compressed data would take is nothing to mode plain.
  [[nodiscard]] bool leave_way_open() const {
    return codec == CodecId::slice && framework == Framework::automatic &&
           (schedule == Schedule::automatic || mode == Mode::plain);
  }

  friend bool operator==(const Options&, const Options&) = default;
};

/// Throws Error(invalid_argument) unless so many threads may be asked for.
void require_threads(int threads);

/// What one call did on this rank. The times in `stats` add up to the whole call.
struct Report {
  Stats stats;                     ///< calls == 1; original_bytes and wire_bytes count what this rank sent
  Route route = Route::automatic;  ///< what was taken
  double operand_bound = 0;        ///< absolute bound that each operand was encoded with; 0: lossless
  double result_bound = 0;  ///< absolute bound promised for each element of the result; 0: exact; infinite: nothing
  std::uint64_t local_bytes = 0;     ///< sent as plain elements within a node; not in stats
  std::uint64_t bytes_received = 0;  ///< payload, metadata included; without plain elements
  std::uint64_t messages_sent = 0;
  std::uint64_t scratch_bytes = 0;  ///< most bytes of messages held at one time, and kernels' room and copies
  double agreement_seconds = 0;     ///< of stats.wire_seconds: the first exchange, which ends when all ranks have come
  /// Where the call was verified (which no other member counts): the largest |result - exact| over all ranks, where the
  /// exact result is rounded to the type, and how many elements were compared. Else NaN and 0.
  double achieved_error = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t verified = 0;
};

}  // namespace laconic
