#include "collective/outliers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codec/slice/layout.h"
#include "codec/slice/slice.h"
#include "collective/budget.h"
#include "core/common_log2.h"
#include "core/half.h"
#include "frame/frame.h"

namespace laconic {

Outliers count_outliers(ConstArray x, double limit, double fill) {
  Outliers found;
  const auto look = [&]<typename Bits>(Bits, auto widen) {
    const auto* bytes = static_cast<const std::uint8_t*>(x.data);
    const auto magnitude = [&](std::size_t i) {
      Bits bits;
      std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
      return std::abs(static_cast<double>(widen(bits)));
    };
    for (std::size_t first = 0; first < x.count; first += frame::chunk_values) {
      const std::uint64_t before = found.count - found.fills;
      for (std::size_t i = first; i < std::min(first + frame::chunk_values, x.count); ++i) {
        const double m = magnitude(i);
        found.count += m > limit && m <= fill ? 1U : 0U;
        found.fills += m == fill ? 1U : 0U;
        found.within = !(m > limit) && m > found.within ? m : found.within;
      }
      found.densest = std::max(found.densest, found.count - found.fills - before);
    }
    for (std::size_t k = 0; k < Outliers::samples && x.count > 0; ++k) {
      const double m = magnitude(Outliers::position(k, x.count));
      const std::uint64_t bit = std::uint64_t{1} << (k % 64);
      if (m == fill) found.fill_at[k / 64] |= bit;
      if (m > limit && m < fill) found.lone_at[k / 64] |= bit;
    }
  };
  switch (x.dtype) {
    case DType::f64:
      look(double{}, [](double v) { return v; });
      break;
    case DType::f16:
      look(std::uint16_t{}, f32_of_f16);
      break;
    case DType::bf16:
      look(std::uint16_t{}, f32_of_bf16);
      break;
    default:
      look(float{}, [](float v) { return v; });
  }
  return found;
}

namespace {

/// Where they are. Each of many ranks has too few of the samples in its share.
void note_lone(const Outliers::Positions& lone, int ranks, AllOutliers& sum) {
  constexpr std::size_t most_shares = 16;
  const std::size_t shares = ranks <= static_cast<int>(most_shares) ? static_cast<std::size_t>(ranks) : 1;
  std::array<double, most_shares> looked_at{}, found{};
  for (std::size_t k = 0; k < Outliers::samples; ++k) {
    const std::uint64_t share = Outliers::position(k, shares);
    const bool is = (lone[k / 64] >> (k % 64) & 1) != 0;
    looked_at[share] += 1;
    found[share] += is ? 1 : 0;
    sum.lone += is ? 1.0 / Outliers::samples : 0;
  }
  for (std::size_t s = 0; s < shares; ++s) sum.lone_most = std::max(sum.lone_most, found[s] / looked_at[s]);
}

}  // namespace

AllOutliers all_outliers(const std::vector<Outliers>& ranks) {
  AllOutliers sum;
  Outliers::Positions some{}, lone{}, all = ranks.front().fill_at;
  for (const Outliers& o : ranks) {
    sum.count += o.count;
    sum.fills += o.fills;
    sum.within = std::max(sum.within, o.within);
    // A chunk of the sum may lie across two of the array.
    sum.in_one_chunk += std::min<std::uint64_t>(2 * o.densest, frame::chunk_values);
    for (std::size_t i = 0; i < some.size(); ++i) {
      some[i] |= o.fill_at[i];
      all[i] &= o.fill_at[i];
      lone[i] |= o.lone_at[i];
    }
  }
  int apart = 0;
  for (std::size_t i = 0; i < some.size(); ++i) apart += std::popcount(some[i] ^ all[i]);
  sum.apart = static_cast<double>(apart) / Outliers::samples;
  note_lone(lone, static_cast<int>(ranks.size()), sum);
  return sum;
}

namespace {

// Grid points are added to an exact sum one by one, q * step as two numbers of f64 or as one: the terms that this takes
// as a rule, and at most beside those of outliers. (Found by trying, in all orders of ranks that are not made for it.)
struct PointTerms {
  double usual;
  std::size_t most;
};
PointTerms point_terms(DType dtype) { return dtype == DType::f64 ? PointTerms{2, 8} : PointTerms{1, 2}; }

/// Terms of the sum at a position where some operand has a lone outlier, as a rule: as many as are added, or as it
/// takes to say all bits from the grid's to the largest sum's.
double usual_terms(double at_once, const Grid& grid, int ranks, const Range& range) {
  const double bits = common_log2(ranks * range.max_abs() / grid.step) + (grid.dtype == DType::f64 ? 53 : 24);
  return std::min(at_once + point_terms(grid.dtype).usual, std::ceil(bits / 53));
}

}  // namespace

// An exception takes a byte and 8 for each term. In an allreduce the sum itself is half of what travels, partial sums
// with about half of its exceptions the rest. Of the other elements it is known how many bits noise would take.
bool too_many_outliers(const AllOutliers& all, const Grid& grid, int ranks, const Range& range) {
  const auto values = static_cast<double>(range.count);
  const auto lone = static_cast<double>(all.count - std::min(all.count, all.fills)) / values;
  const double at_once = all.lone > 0 ? std::clamp(lone * ranks / all.lone, 1.0, double(ranks)) : 1;
  const double terms = usual_terms(at_once, grid, ranks, range);
  double exceptions = (std::max(all.lone_most, lone) + all.apart) * (1 + 8 * terms);
  const double fill = range.max_abs();
  if (std::fma(ranks, fill, -(ranks * fill)) != 0) exceptions += static_cast<double>(all.fills) / values * (1 + 8 * 2);

  const auto bytes = static_cast<double>(size_of(grid.dtype));
  return exceptions / bytes > std::min(0.75, (1 - share_of_noise(grid, ranks)) / 0.75);
}

// Multiples of a fill value take two terms; NaN and infinities, which are no outliers, one.
std::optional<std::size_t> largest_sum_chunk(const AllOutliers& all, const Grid& grid, int ranks, const Range& range) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto in_a_chunk = [](std::uint64_t many) { return std::min<std::size_t>(many, frame::chunk_values); };
  const std::size_t fills = in_a_chunk(all.fills);
  const std::size_t others = in_a_chunk(range.non_finite);
  const std::size_t exceptions = in_a_chunk(all.in_one_chunk + fills + others);
  const std::size_t added = grid.dtype == DType::f64 ? 2 * n - 1 : n;  // to each of them
  const std::size_t terms =
      std::min(all.in_one_chunk + 2 * fills + others + exceptions * point_terms(grid.dtype).most, exceptions * added);
  const int planes = grid.qbits + std::bit_width(static_cast<unsigned>(ranks)) + 3;  // of second differences
  const std::size_t bytes = slice::sum_chunk_bytes(planes, exceptions, terms);
  return bytes <= slice::largest_chunk ? std::optional(bytes) : std::nullopt;
}

}  // namespace laconic
