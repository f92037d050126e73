// Values that lie beyond a grid: how many there are, and whether they are all the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/grid.h"
#include "core/array.h"
#include "core/range.h"

namespace laconic {

/// How many values lie beyond a grid, and how many of those are all the same. A fill value costs next to nothing where
/// all operands have it, and much where others have values there. The others are called lone.
struct Outliers {
  static constexpr std::size_t samples = 1024;  ///< positions that are compared between ranks, spread evenly
  using Positions = std::array<std::uint64_t, samples / 64>;
  std::uint64_t count = 0;
  std::uint64_t fills = 0;
  std::uint64_t densest = 0;  ///< lone ones in one chunk of the array, at most
  double within = 0;          ///< largest magnitude of all that are no outliers
  Positions fill_at{};        ///< which of the positions hold the fill value
  Positions lone_at{};        ///< and which a lone outlier

  /// The k-th position in an array of count > 0 elements. Multiples of the golden ratio spread evenly, and fall into
  /// step with no length of a row.
  static constexpr std::uint64_t position(std::size_t k, std::uint64_t count) {
    constexpr double golden = 0.6180339887498949;
    const double turns = static_cast<double>(k) * golden;
    const double part = turns - static_cast<double>(static_cast<std::uint64_t>(turns));
    const auto i = static_cast<std::uint64_t>(part * static_cast<double>(count));
    return i < count ? i : count - 1;
  }
};

/// The same over all ranks.
struct AllOutliers {
  std::uint64_t count = 0;
  std::uint64_t fills = 0;
  double within = 0;
  double apart = 0;      ///< share of positions where some operands have the fill value and others do not, estimated
  double lone = 0;       ///< and where any operand has a lone outlier
  double lone_most = 0;  ///< in that rank's share of the array where they are most
  std::uint64_t in_one_chunk = 0;  ///< of the sum: lone outliers of all operands, at most
};

/// Values with limit < |x| <= fill; fills are those with |x| == fill, within is among those with |x| <= limit.
/// Floating-point dtypes.
Outliers count_outliers(ConstArray x, double limit, double fill);

/// Adds up what the ranks found, in rank order; at least one.
AllOutliers all_outliers(const std::vector<Outliers>& ranks);

/// Whether so many elements of the sum of so many operands in this range are exceptions that it may take more bytes
/// than the elements themselves.
bool too_many_outliers(const AllOutliers& all, const Grid& grid, int ranks, const Range& range);

/// Most bytes that a chunk of that sum takes. None where exceptions of so many terms may meet in a chunk that there may
/// be no such chunk.
std::optional<std::size_t> largest_sum_chunk(const AllOutliers& all, const Grid& grid, int ranks, const Range& range);

}  // namespace laconic
