#include "collective/cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "collective/memory.h"
#include "collective/sample.h"
#include "core/common_log2.h"
#include "core/share.h"

namespace laconic {
namespace {

/// As multiples of the workload's bytes, on the busiest link and the busiest rank.
struct Traffic {
  double wire = 0;
  double encode = 0, add = 0, decode = 0;
  double steps = 0;  ///< messages one after the other
};

double log2_of_ranks(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

/// Of the plain library and, but for exact sums, ours.
Traffic traffic_of(const Workload& w) {
  const double n = w.ranks;
  const double others = (n - 1) / n;
  const double log = log2_of_ranks(w.ranks);
  switch (w.collective) {
    case Collective::allreduce:
      return {.wire = 2 * others, .encode = 1 / n, .add = others, .decode = 1, .steps = 2 * log};
    case Collective::reduce_scatter:
      return {.wire = others, .encode = 1 / n, .add = others, .decode = 1 / n, .steps = log};
    case Collective::reduce:
    case Collective::scan:
    case Collective::exscan:
      return {.wire = 1, .add = 1, .decode = 1, .steps = log};
    case Collective::bcast:
      return {.wire = 1, .encode = 1, .decode = 1, .steps = log};
    case Collective::scatter:
      return {.wire = others, .encode = others, .decode = 1 / n, .steps = 1};
    case Collective::gather:
      return {.wire = others, .encode = 1 / n, .decode = others, .steps = 1};
    case Collective::allgather:
      return {.wire = others, .encode = 1 / n, .decode = 1, .steps = log};
    case Collective::alltoall:
      return {.wire = others, .encode = others, .decode = others, .steps = log};
    default:
      return {.wire = 1, .encode = 1, .decode = 1, .steps = 1};
  }
}

/// All operands of a block go to its owner, who adds them up; the sums go to whoever wants them.
Traffic traffic_of_exact_sum(const Workload& w) {
  const double n = w.ranks;
  const double others = (n - 1) / n;
  const Traffic collecting{.wire = others, .encode = others, .add = 1, .decode = others, .steps = 1};
  Traffic t = collecting;
  switch (w.collective) {
    case Collective::reduce_scatter:
      return t;
    case Collective::scan:
    case Collective::exscan:  // the owner of a block has another sum for each rank
      t.encode += others;
      t.add = (n + 1) / 2;
      t.steps += 1;
      break;
    default:  // an allreduce; of a reduce the root's part, who gathers
      t.encode += 1 / n;
      t.steps += w.collective == Collective::allreduce ? log2_of_ranks(w.ranks) : 1;
  }
  t.wire += others;
  t.decode += others;
  return t;
}

// A sum of k operands has log2(k) bits more than one of them where they are alike, half of that where they are noise.
constexpr double bits_per_doubling = 0.75;

/// Bits that partial sums of 1 to n - 1 operands have more than one operand, on average: log2((n - 1)!) by Stirling's
/// formula, so that many ranks cost no time.
double bits_of_partial_sums(int ranks) {
  const double m = ranks - 1;
  return bits_per_doubling * ((m + 0.5) * common_log2(m) + (0.919 - m) * std::numbers::log2e) / m;
}

// Of the wire's time or the codec's, whichever is shorter, this much is not hidden behind the other: the first segment
// must be encoded before anything travels, the last one decoded after everything has.
constexpr double unhidden = 1.0 / 8;

/// How many threads of a rank share a segment.
double threads_of(const Workload& w) {
  const std::size_t block = w.bytes / static_cast<std::size_t>(w.ranks);
  return static_cast<double>(threads_worth(Memory::SegmentBytes{}.of_block(block), w.threads));
}

/// Of the exchange itself.
double seconds_of(const Traffic& t, const Workload& w, const Costs& costs, double fraction) {
  const auto bytes = static_cast<double>(w.bytes);
  const auto element_bytes = static_cast<double>(w.element_bytes);
  const double wire = t.wire * bytes * fraction / costs.link.bytes_per_second;
  const CodecSpeed::Seconds c = costs.codec.at(8 * element_bytes * fraction);
  const double add = w.combining == Combining::extremes ? c.encode + c.decode : c.add;
  const double codec =
      bytes / element_bytes * (t.encode * c.encode + t.add * add + t.decode * c.decode) / threads_of(w);
  return t.steps * costs.link.latency + std::max(wire, codec) + unhidden * std::min(wire, codec);
}

}  // namespace

std::string_view name_of(CodecKind kind) {
  constexpr std::array<std::string_view, codec_kinds> names{"grid16", "grid32",  "grid64",
                                                            "wide64", "exact32", "exact64"};
  return names[static_cast<std::size_t>(kind)];
}

CodecKind codec_kind_of(const Grid& grid, int operands) {
  const std::size_t bytes = size_of(grid.dtype);
  if (grid.lossless()) return bytes == 8 ? CodecKind::exact64 : CodecKind::exact32;
  if (needs_wide_integers(grid, static_cast<std::uint64_t>(operands))) return CodecKind::wide64;
  return bytes == 8 ? CodecKind::grid64 : bytes == 4 ? CodecKind::grid32 : CodecKind::grid16;
}

CodecSpeed::Seconds CodecSpeed::at(double bits) const {
  const double distance = rough.bits - smooth.bits;
  const double x = distance > 0 ? std::max(0.0, (bits - smooth.bits) / distance) : 0;
  const auto between = [x](double a, double b) { return a + (x * std::max(0.0, b - a)); };
  return {bits, between(smooth.encode, rough.encode), between(smooth.add, rough.add),
          between(smooth.decode, rough.decode)};
}

double exchange_seconds(int ranks, const Link& link) { return std::max(1.0, log2_of_ranks(ranks)) * link.latency; }

double look_seconds(const Workload& w, const CodecSpeed& codec) {
  // Finding a range takes a third as long as encoding where values come from a cache, three quarters from memory.
  constexpr double of_encoding = 0.5 + 1.0 / Sample::one_in;
  const double share =
      w.combining == Combining::nothing ? traffic_of(w).encode : 1;  // of the array, on the busiest rank
  return of_encoding * share * static_cast<double>(w.bytes) / static_cast<double>(w.element_bytes) *
         codec.smooth.encode / static_cast<double>(threads_worth(w.bytes, w.threads));
}

double plain_seconds(const Workload& w, const Link& link) {
  const Traffic t = traffic_of(w);
  return t.steps * link.latency + t.wire * static_cast<double>(w.bytes) / link.bytes_per_second;
}

double compressed_seconds(const Workload& w, const Costs& costs, double fraction) {
  const Traffic t = w.combining == Combining::exactly ? traffic_of_exact_sum(w) : traffic_of(w);
  return (2 * exchange_seconds(w.ranks, costs.link)) + seconds_of(t, w, costs, fraction);
}

ScheduleSeconds schedule_seconds(const Workload& w, const Costs& costs, double fraction) {
  const double n = w.ranks;
  const bool sums = w.combining != Combining::extremes;
  const double more =
      (sums ? bits_of_partial_sums(w.ranks) : 0) / (8.0 * static_cast<double>(w.element_bytes)) / fraction;
  Traffic ring = traffic_of(w);
  Traffic direct = ring;
  const double phases = w.collective == Collective::allreduce ? 2 : 1;
  ring.steps = phases * (n - 1);
  ring.wire += more * (n - 1) / n;
  direct.steps = phases;
  direct.encode += (n - 2) / n;
  if (sums) {  // all that comes is added at once: beyond the first message, what it costs to read it
    direct.add = 1 / n;
    direct.decode += (n - 2) / n;
  }
  return {seconds_of(ring, w, costs, fraction), seconds_of(direct, w, costs, fraction)};
}

}  // namespace laconic
