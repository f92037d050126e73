#include "collective/moving_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "collective/budget.h"
#include "collective/layout.h"
#include "collective/sample.h"

namespace laconic {
namespace {

// A small sample must stay this much below the usual range: other values are larger than those in it.
constexpr double headroom = 4;
// Shorter arrays are looked through: that costs little, and a sample is much of them.
constexpr std::uint64_t fewest_chunks = 16 * Sample::most_chunks;

/// No grid has a larger one within the bound.
double reach_of(DType t, double bound) { return std::ldexp(bound, t == DType::f64 ? 51 : 23); }

/// The largest magnitude that is at most `reach` (finite), on the host: a chunk at a time, of those values alone.
template <typename T>
double largest_on_host(ConstArray x, double reach) {
  std::array<T, frame::chunk_values> kept;
  double largest = 0;
  for (std::size_t first = 0; first < x.count; first += kept.size()) {
    const std::size_t n = std::min(kept.size(), x.count - first);
    std::memcpy(kept.data(), static_cast<const std::uint8_t*>(x.data) + first * sizeof(T), n * sizeof(T));
    for (T& v : std::span(kept).first(n)) v = std::abs(v) <= static_cast<T>(reach) ? v : T{0};
    largest = std::max(largest, scan({kept.data(), n, x.dtype}).max_abs());
  }
  return largest;
}

/// The largest magnitude of what can be on a grid, in memory where `scan` and `count` look.
double largest_within(Memory& memory, ConstArray x, double reach, int threads = 1) {
  if (x.count == 0) return 0;
  const Range range = memory.scan(x, threads);
  if (range.max_abs() <= reach) return range.max_abs();
  if (!memory.on_host()) return memory.count_outliers(x, reach, range.max_abs()).within;
  return x.dtype == DType::f64 ? largest_on_host<double>(x, reach) : largest_on_host<float>(x, reach);
}

/// The same of a sample of a long array on the host. In step with the planes of a field it might see their edges alone.
double largest_sampled(Memory& memory, ConstArray x, double reach) {
  double largest = 0;
  for (std::size_t i = 0; i < Sample::most_chunks; ++i) {
    const std::size_t first = Outliers::position(i, x.count - frame::chunk_values);
    largest = std::max(largest, largest_within(memory, slice_of(x, first, frame::chunk_values), reach));
  }
  return largest;
}

/// Whether a usual range will do.
bool is_usual(Memory& memory, std::span<const ConstArray> parts, double usual, double reach) {
  return std::ranges::all_of(parts, [&](const ConstArray& x) {
    if (x.count == 0) return true;
    const bool is_short = Sample{x.count}.chunks_in_all() < fewest_chunks;
    return headroom * (is_short ? largest_within(memory, x, reach) : largest_sampled(memory, x, reach)) <= usual;
  });
}

Range absolute_range(Memory& memory, std::span<const ConstArray> parts, double bound, int threads) {
  std::uint64_t count = 0, longest = 0;
  for (const ConstArray& x : parts) {
    count += x.count;
    longest = std::max<std::uint64_t>(longest, x.count);
  }
  if (count == 0) return {};
  const DType t = parts.front().dtype;
  const double reach = reach_of(t, bound);
  const double usual = usual_reach(t, bound);
  const bool may_be_usual = usual > 0 && Sample{longest}.chunks_in_all() >= fewest_chunks;
  // The memory of a GPU is much faster than any link: it is looked through. Grids are the host's where that finds the
  // usual range.
  if (may_be_usual && memory.on_host() && is_usual(memory, parts, usual, reach)) return {-usual, usual, count, 0};
  double largest = 0;
  for (const ConstArray& x : parts) largest = std::max(largest, largest_within(memory, x, reach, threads));
  if (may_be_usual && headroom * largest <= usual) largest = usual;
  return {-largest, largest, count, 0};
}

/// One of so many pieces of an array on the host, anywhere among them, so that the sample falls into step with no
/// length of a row; in four groups. Of several arrays, which take turns in all groups; what is too short for a piece in
/// so many is seen as a whole.
class Pieces {
 public:
  static constexpr std::size_t groups = 4;

  Pieces(std::size_t piece_bytes, std::size_t one_in) : piece_bytes_(piece_bytes), one_in_(one_in) {}

  [[nodiscard]] bool is_short(ConstArray x) const { return x.bytes() < one_in_ * piece_bytes_; }

  void see(ConstArray x) {
    if (x.count == 0) return;
    if (is_short(x)) return take(x);
    const std::size_t piece = piece_bytes_ / size_of(x.dtype);
    const std::size_t stride = one_in_ * piece;
    const std::size_t first = taken_;
    const std::size_t line = 64 / size_of(x.dtype);
    const auto at = [&](std::size_t i) {
      return slice_of(x, i * stride + Outliers::position(first + i, stride - piece) / line * line, piece);
    };
    const std::size_t n = x.count / stride;
    for (std::size_t i = 0; i < n; ++i) {
      if (i + ahead < n) fetch(at(i + ahead));
      take(at(i));
    }
  }
  [[nodiscard]] Range all() const {
    Range r;
    for (const Range& g : group_) r = merge(r, g);
    return r;
  }
  /// Of the range of all, the share that each group has by itself, at least, and on average; 0 where it has no width.
  struct Shares {
    double least = 0, mean = 0;
  };
  [[nodiscard]] Shares shares() const {
    const double width = all().width();
    if (!(width > 0) || !std::isfinite(width)) return {};
    Shares s{1, 0};
    for (const Range& g : group_) {
      s.least = std::min(s.least, g.width() / width);
      s.mean += g.width() / width / groups;
    }
    return s;
  }

 private:
  static constexpr std::size_t ahead = 8;  ///< pieces on their way from memory: the hardware does not foresee them
  /// The sum of i's digits to base 4, modulo 4: in step with no power of two.
  static std::size_t group_of(std::size_t i) {
    std::size_t sum = 0;
    for (; i != 0; i /= groups) sum += i % groups;
    return sum % groups;
  }
  void take(ConstArray piece) {
    Range& group = group_[group_of(taken_++)];
    group = merge(group, scan(piece));
  }
  void fetch(ConstArray piece) const {
    const auto* const at = static_cast<const char*>(piece.data);
    for (std::size_t i = 0; i < piece_bytes_; i += 64) __builtin_prefetch(at + i);
    __builtin_prefetch(at + piece_bytes_ - 1);
  }

  std::size_t piece_bytes_;
  std::size_t one_in_;
  std::size_t taken_ = 0;
  std::array<Range, groups> group_{};
};

/// Shorter ones are in the caches after having been looked through, where they are wanted next.
constexpr std::uint64_t shortest_sampled = std::uint64_t{4} << 20;
/// Of longer ones too a sample of so many bytes tells.
constexpr std::uint64_t most_sampled = std::uint64_t{8} << 20;

Range relative_range(Memory& memory, std::span<const ConstArray> parts, const Bound& bound, int threads) {
  std::uint64_t bytes = 0;
  for (const ConstArray& x : parts) bytes += x.bytes();
  if (!memory.on_host() || bytes < shortest_sampled) return whole_range(memory, parts, threads);
  // To find a page of memory takes as long as to read it all: what counts is how many are looked at, one in four here.
  const auto one_in = static_cast<std::size_t>(std::max<std::uint64_t>(16, bytes / most_sampled));
  Pieces sample(1024, one_in);
  std::uint64_t in_short_ones = 0;
  for (const ConstArray& x : parts)
    if (sample.is_short(x)) in_short_ones += x.bytes();
  if (in_short_ones > bytes / 16) return whole_range(memory, parts, threads);  // one pass in place of several
  for (const ConstArray& x : parts) sample.see(x);
  const Range range = sample.all();
  const Pieces::Shares shares = sample.shares();
  if (shares.least < 0.8) return whole_range(memory, parts, threads);
  // Four times as many values widen a quarter's range to the sample's, and if they go on like that, the sample's to all
  // values' in so many steps. A quarter of a bit costs less time than the pass does from some 600 Mb/s on. (No link is
  // asked: the same data give the same result.)
  const double bits = -std::log2(shares.mean) * std::log2(static_cast<double>(one_in)) / 2;
  const bool room_beyond = has_usual_reach(parts.front().dtype, bound.absolute_for(range.width()), range);
  return bits <= 0.25 && room_beyond ? range : whole_range(memory, parts, threads);
}

}  // namespace

Range whole_range(Memory& memory, std::span<const ConstArray> parts, int threads) {
  Range range;
  for (const ConstArray& part : parts)
    if (part.count != 0) range = merge(range, memory.scan(part, threads));
  return range;
}

Range moving_range(Memory& memory, std::span<const ConstArray> parts, const Bound& bound, int threads) {
  if (bound.kind == BoundKind::absolute) return absolute_range(memory, parts, bound.value, threads);
  return relative_range(memory, parts, bound, threads);
}

}  // namespace laconic
