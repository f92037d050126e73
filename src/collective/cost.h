// What a collective costs, by the plain library and compressed: the model behind the automatic choice. Pure functions;
// what they are given is measured (calibration.h) or sampled from the data (routing.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "codec/grid.h"
#include "collective/collective.h"

namespace laconic {

/// Between two neighbouring ranks while all of them talk.
struct Link {
  double latency = 0;           ///< seconds until a few bytes are there
  double bytes_per_second = 0;  ///< each way
};

/// What the codec works on decides how fast it is: the integers, and what elements become them.
enum class CodecKind : std::uint8_t {
  grid16,   ///< 16-bit floats on a grid
  grid32,   ///< f32 on a grid
  grid64,   ///< f64 on a grid whose integers have 32 bits
  wide64,   ///< f64 on a finer one
  exact32,  ///< every bit of elements of up to 32 bits
  exact64,  ///< of 64 bits
};
constexpr std::size_t codec_kinds = 6;
std::string_view name_of(CodecKind kind);

/// `operands`: as many are summed on this grid.
CodecKind codec_kind_of(const Grid& grid, int operands);

/// Seconds that one thread of one rank takes for an element while all of them work. They grow with the bits that are
/// left of it; two kinds of data say how.
struct CodecSpeed {
  struct Seconds {
    double bits = 0;  ///< left of an element, on average
    double encode = 0;
    double add = 0;  ///< where every bit is kept: to one more operand in an exact sum
    double decode = 0;
  };
  Seconds smooth, rough;

  /// Between and beyond the two, but never faster than the smooth one.
  [[nodiscard]] Seconds at(double bits) const;
};

struct Costs {
  Link link;
  CodecSpeed codec;
};

/// What becomes of operands.
enum class Combining : std::uint8_t {
  nothing,   ///< they only move
  on_grid,   ///< compressed sums
  exactly,   ///< who owns a block collects all operands of it (exact.h)
  extremes,  ///< decoded, compared and encoded again at every step (extreme.h)
};

/// One call. All ranks see the same.
struct Workload {
  Collective collective = Collective::allreduce;
  std::uint64_t bytes = 0;  ///< of the array that is there for all ranks: the operand of a reduction or a bcast, all
                            ///< parts together of a scatter, gather or allgather, a rank's blocks of an alltoall
  int ranks = 1;
  int threads = 1;
  std::size_t element_bytes = 4;
  Combining combining = Combining::on_grid;  ///< of a reduction
};

/// Seconds of the plain library's own call, at its best: bytes on the busiest link and the least number of steps.
double plain_seconds(const Workload& w, const Link& link);

/// Seconds of ours, when what travels is `fraction` of the original: agreement and confirmation, the wire and the codec
/// side by side, and the segment that nothing hides.
double compressed_seconds(const Workload& w, const Costs& costs, double fraction);

/// Of the same reduction by one schedule and by the other. 0: not known.
struct ScheduleSeconds {
  double ring = 0, direct = 0;
  [[nodiscard]] bool direct_pays() const { return direct < ring; }
};

/// Of an allreduce or a reduce_scatter where partial sums go around a ring, and where operands go straight to who sums
/// them (schedule/direct.h): fewer bits to send (but for extremes, which have no more than operands), more to encode.
ScheduleSeconds schedule_seconds(const Workload& w, const Costs& costs, double fraction);

/// Seconds that a rank takes to look through its operand before a call is agreed on: for its range, and for a sample of
/// what it shrinks to.
double look_seconds(const Workload& w, const CodecSpeed& codec);

/// Seconds of one of the small exchanges around our calls.
double exchange_seconds(int ranks, const Link& link);

}  // namespace laconic
