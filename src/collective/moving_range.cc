#include "collective/moving_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "collective/sample.h"

namespace laconic {
namespace {

// The usual range: so many times the bound. Rounding its values takes half a percent of an f32's bound, and a grid of
// 14 bits reaches to its end.
constexpr double usual_bounds = 0x1p15 * 0.99;
// A sample must stay this much below: other values are larger than those in it.
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
double largest_within(Memory& memory, ConstArray x, double reach) {
  if (x.count == 0) return 0;
  const Range range = memory.scan(x);
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

}  // namespace

Range moving_range(Memory& memory, std::span<const ConstArray> parts, double bound) {
  std::uint64_t count = 0, longest = 0;
  for (const ConstArray& x : parts) {
    count += x.count;
    longest = std::max<std::uint64_t>(longest, x.count);
  }
  if (count == 0) return {};
  const DType t = parts.front().dtype;
  const double reach = reach_of(t, bound);
  const double usual = usual_bounds * bound;
  const bool is_long = Sample{longest}.chunks_in_all() >= fewest_chunks;
  const double type_limit = t == DType::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const bool may_be_usual = is_long && usual < type_limit;
  // The memory of a GPU is much faster than any link: it is looked through. Grids are the host's where that finds the
  // usual range.
  if (may_be_usual && memory.on_host() && is_usual(memory, parts, usual, reach)) return {-usual, usual, count, 0};
  double largest = 0;
  for (const ConstArray& x : parts) largest = std::max(largest, largest_within(memory, x, reach));
  if (may_be_usual && headroom * largest <= usual) largest = usual;
  return {-largest, largest, count, 0};
}

}  // namespace laconic
