// What the survey's tests share, emulated and on a device: arrays, what to ask of them, and the CPU's answers.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "collective/outliers.h"
#include "core/range.h"
#include "support/sample_data.h"
#include "support/sanitized.h"

namespace laconic::test {

inline constexpr std::array float_dtypes = {DType::f32, DType::f64, DType::f16, DType::bf16};

/// Elements and how many of them lie before the array in a unit of 16 bytes.
struct Place {
  std::size_t count;
  std::size_t offset;
};
inline constexpr std::array<Place, 12> places = {{{0, 0},
                                                  {1, 0},
                                                  {1, 1},
                                                  {5, 3},
                                                  {31, 0},
                                                  {33, 1},
                                                  {512, 0},
                                                  {1027, 1},
                                                  {2047, 7},
                                                  {2049, 0},
                                                  {4100, 2},
                                                  {sanitized ? 9001 : 40001, 1}}};

inline Array placed(DType t, Kind kind, const Place& at, std::uint64_t seed = 1) {
  return sample(t, kind, at.count, seed, at.offset * size_of(t));
}
inline std::string describe(DType t, Kind kind, const Place& at) {
  return std::string(name_of(t)) + " " + std::string(name_of(kind)) + ", " + std::to_string(at.count) +
         " elements from " + std::to_string(at.offset);
}

/// Equal to the bit, so that -0 is not 0.
inline void expect_same(const Range& want, const Range& got) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(want.min), std::bit_cast<std::uint64_t>(got.min))
      << want.min << ", got " << got.min;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(want.max), std::bit_cast<std::uint64_t>(got.max))
      << want.max << ", got " << got.max;
  EXPECT_EQ(want.count, got.count);
  EXPECT_EQ(want.non_finite, got.non_finite);
}
inline void expect_same(const Outliers& want, const Outliers& got) {
  EXPECT_EQ(want.count, got.count);
  EXPECT_EQ(want.fills, got.fills);
  EXPECT_EQ(want.within, got.within);
  EXPECT_EQ(want.fill_at, got.fill_at);
  EXPECT_EQ(want.lone_at, got.lone_at);
}

/// Limit and fill value of count_outliers().
struct Beyond {
  double limit;
  double fill;
};
/// As collectives ask, and as nobody should.
inline std::vector<Beyond> questions_about(const Array& x) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double largest = scan(x.view()).max_abs();
  return {{0.5, largest}, {largest / 2, largest}, {0.2, 0.7}, {0, 0}, {-1, -0.0},
          {1, infinity},  {nan, infinity},        {1, nan},   {2, 1}, {-1, 1e300},
          {0x1p-149, 0.5}};
}

}  // namespace laconic::test
