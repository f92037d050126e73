// Values that lie beyond a grid: how many there are, and whether they are all the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/array.h"

namespace laconic {

/// How many values lie beyond a grid, and how many of those are all the same. A fill value costs next to nothing where
/// all operands have it, and much where others have values there.
struct Outliers {
  static constexpr std::size_t samples = 1024;  ///< positions that are compared between ranks, spread evenly
  std::uint64_t count = 0;
  std::uint64_t fills = 0;
  double within = 0;                                  ///< largest magnitude of the others
  std::array<std::uint64_t, samples / 64> fill_at{};  ///< which of the positions hold the fill value

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
  double apart = 0;  ///< share of positions where some operands have the fill value and others do not, estimated
};

/// Values with limit < |x| <= fill; fills are those with |x| == fill, within is among those with |x| <= limit.
/// Floating-point dtypes.
Outliers count_outliers(ConstArray x, double limit, double fill);

/// Whether so many of `values` elements are exceptions that sending everything losslessly takes fewer bytes.
bool too_many_outliers(const AllOutliers& all, std::uint64_t values);

}  // namespace laconic
