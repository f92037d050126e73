#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "collective/bcast.h"
#include "collective/gather.h"
#include "collective/moved.h"
#include "collective/moving_range.h"
#include "collective/world.h"
#include "support/sanitized.h"

namespace laconic::collective_moving_range_test {
namespace {

using moved::expect_within;
using moved::with;
using world::view;

constexpr std::size_t is_long = std::size_t{400} * 2048 + 77;  // long enough for a sample to speak for it
constexpr double bound = 1e-3;
const Bound absolute = Bound::parse("1e-3");
const Bound relative = Bound::parse("1e-3rel");
constexpr double usual = 0x1p15 * 0.99 * bound;  // about 32

template <typename T>
std::vector<T> wave(std::size_t count, double amplitude) {
  std::vector<T> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<T>(amplitude * std::sin(static_cast<double>(i) / 500));
  return x;
}

template <typename T>
double largest(const std::vector<T>& x) {
  const ConstArray whole = view(x);
  const Range range = moving_range(host_memory(), std::span(&whole, 1), absolute);
  EXPECT_EQ(range.count, x.size());
  EXPECT_EQ(range.min, -range.max);
  return range.max;
}

template <typename T>
void expect_ranges() {
  EXPECT_EQ(largest(wave<T>(is_long, 5)), usual);
  // Values too large for the usual range, in the sample; and a short array, of which all is looked at.
  EXPECT_NEAR(largest(wave<T>(is_long, 50)), 50, 1e-3);
  EXPECT_NEAR(largest(wave<T>(5000, 5)), 5, 1e-3);
  // What no grid could hold is left out, how much ever it is.
  for (const std::size_t count : {std::size_t{5000}, is_long}) {
    for (const double amplitude : {5.0, 50.0}) {
      auto x = wave<T>(count, amplitude);
      for (std::size_t i = 0; i < x.size(); i += 2) x[i] = static_cast<T>(9.97e36);
      x[1] = std::numeric_limits<T>::quiet_NaN();
      x[3] = -std::numeric_limits<T>::infinity();
      const bool stands_for_it = count == is_long && amplitude == 5;
      EXPECT_NEAR(largest(x), stands_for_it ? usual : amplitude, 1e-3) << count << " up to " << amplitude;
    }
  }
}

TEST(MovingRange, IsTheUsualOneWhereASampleIsSmallBesideIt) {
  expect_ranges<float>();
  expect_ranges<double>();
}

/// Slabs of a field whose first row is its edge.
TEST(MovingRange, ASampleSeesMoreThanTheBeginningsOfSlabs) {
  constexpr std::size_t slabs = 16;
  for (const std::size_t rows : {16U, 25U, 64U}) {
    auto x = wave<float>(slabs * rows * 2048, 50);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (i / 2048 % rows == 0) x[i] = 0;
    EXPECT_NEAR(largest(x), 50, 1e-3) << rows;
  }
}

TEST(MovingRange, OfSeveralPartsOrNone) {
  const auto small = wave<float>(is_long, 5);
  const auto large = wave<float>(3000, 50);
  const std::array parts{view(small), view(large), ConstArray{nullptr, 0, DType::f32}};
  EXPECT_NEAR(moving_range(host_memory(), parts, absolute).max, 50, 1e-3);
  EXPECT_EQ(moving_range(host_memory(), std::span(parts).first(1), absolute).max, usual);
  EXPECT_EQ(moving_range(host_memory(), std::span(parts).last(1), absolute), Range{});
  EXPECT_EQ(moving_range(host_memory(), {}, absolute), Range{});
}

TEST(MovingRange, BoundsNearTheEndOfTheType) {
  const auto x = wave<float>(is_long, 5);
  const ConstArray whole = view(x);
  for (const double huge : {1e35, 1e38, 1e300, std::numeric_limits<double>::max()})
    EXPECT_NEAR(moving_range(host_memory(), std::span(&whole, 1), {.kind = BoundKind::absolute, .value = huge}).max, 5,
                1e-3)
        << huge;
}

/// bcast and gather of x, which differ in who brings data.
template <typename T>
std::size_t expect_moves(const std::vector<T>& x) {
  constexpr int ranks = 3;
  const auto sent = world::run<T>(ranks, [&](int rank, Communicator& comm) {
    auto y = rank == 1 ? x : std::vector<T>(x.size());
    const Report report = bcast(view(y), 1, comm, with("1e-3"));
    return std::pair(y, report);
  });
  world::expect_same_everywhere(sent);
  expect_within(sent.results[0], x, bound);
  EXPECT_EQ(sent.reports[0].result_bound, bound);
  const auto gathered = world::run<T>(ranks, [&](int rank, Communicator& comm) {
    std::vector<T> all(rank == 0 ? ranks * x.size() : 0);
    const Report report = gather(view(x), view(all), std::vector<std::size_t>(ranks, x.size()), 0, comm, with("1e-3"));
    return std::pair(all, report);
  });
  for (int r = 0; r < ranks; ++r) {
    const auto at = gathered.results[0].begin() + r * static_cast<std::ptrdiff_t>(x.size());
    expect_within(std::vector<T>(at, at + static_cast<std::ptrdiff_t>(x.size())), x, bound);
  }
  return sent.reports[1].stats.wire_bytes;
}

TEST(MovingRange, WhatASampleHasNotSeenKeepsTheBound) {
  auto x = wave<float>(is_long, 5);
  const std::size_t plain = expect_moves(x);
  for (std::size_t i = 2048; i < 5000; ++i) x[i] = 1e4F + static_cast<float>(i) * 7;  // between chunks of the sample
  x[9000] = 31.9F;
  x[9001] = 32.5F;
  x[9002] = -1e30F;
  x[9003] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_LT(expect_moves(x), plain + 2 * 4 * 3000);
}

TEST(MovingRange, LandCostsNoStep) {
  auto sea = wave<float>(is_long, 5);
  const std::size_t without = expect_moves(sea);
  for (std::size_t i = 0; i < sea.size(); ++i)
    if (i / 1000 % 3 == 0) sea[i] = 9.97e36F;
  EXPECT_LT(expect_moves(sea), without);
}

template <typename T>
Range range_for(const Bound& b, const std::vector<T>& x) {
  const ConstArray whole = view(x);
  return moving_range(host_memory(), std::span(&whole, 1), b);
}

constexpr std::size_t is_sampled = std::size_t{2} << 20;  // elements

TEST(MovingRange, OfARelativeBoundIsThatOfOneValueIn16) {
  const auto x = wave<float>(is_sampled, 5);
  const Range range = range_for(relative, x);
  EXPECT_NEAR(static_cast<double>(range.count), static_cast<double>(x.size()) / 16, 300);
  EXPECT_GE(range.min, -5);
  EXPECT_LE(range.max, 5);
  EXPECT_GE(range.width(), 0.99 * 10);
  EXPECT_EQ(range_for(Bound::parse("60dB"), x), range);
  const auto y = wave<double>(is_sampled, 5);
  EXPECT_NEAR(static_cast<double>(range_for(relative, y).count), static_cast<double>(y.size()) / 16, 300);
}

/// As many ranks have it: none of their parts has enough pieces for all groups of a sample.
TEST(MovingRange, OfARelativeBoundIsThatOfASampleOfManyParts) {
  const auto x = wave<float>(is_sampled, 5);
  const auto in_parts = [&](std::size_t elements, std::size_t short_ones) {
    std::vector<ConstArray> parts(short_ones, {x.data(), 5, DType::f32});
    for (std::size_t at = 0; at + elements <= x.size(); at += elements)
      parts.push_back({x.data() + at, elements, DType::f32});
    return moving_range(host_memory(), parts, relative);
  };
  for (const std::size_t elements : {std::size_t{20000}, std::size_t{60000}, is_sampled / 4}) {
    const Range range = in_parts(elements, 9);
    EXPECT_LE(range.count, x.size() / 16 + 100) << elements;
    EXPECT_GE(range.width(), 0.99 * 10) << elements;
  }
  EXPECT_EQ(in_parts(1024, 0), scan(view(x)));
}

TEST(MovingRange, OfARelativeBoundIsThatOfAllWhereASampleWouldNotDo) {
  const auto expect_all = [](const Bound& b, const std::vector<float>& x) {
    EXPECT_EQ(range_for(b, x), scan(view(x)));
  };
  expect_all(relative, wave<float>(is_sampled / 4, 5));             // short
  expect_all(Bound::parse("1e-5rel"), wave<float>(is_sampled, 5));  // no room beyond
  expect_all(relative, std::vector<float>(is_sampled, 3));
  expect_all(relative, {});
  auto x = wave<float>(is_sampled, 5);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += 1e3F;  // far from 0
  expect_all(relative, x);
  x = wave<float>(is_sampled, 5);
  for (std::size_t i = 0; i < 2000; ++i) x[i + is_sampled / 2] *= 3;  // a peak that one group sees
  expect_all(relative, x);
  x[7] = std::numeric_limits<float>::infinity();
  x[8] = std::numeric_limits<float>::quiet_NaN();
  expect_all(relative, x);
}

/// Such as a source in a wave's field: 32 KiB of it, wherever they are.
TEST(MovingRange, ASampleMissesNoPeakOf32KiB) {
  for (std::size_t at = 0; at < 64; at += test::sanitized ? 7 : 1) {
    auto x = wave<float>(is_sampled, 5);
    for (std::size_t i = 0; i < 8192; ++i)
      x[at * 32000 + i] = static_cast<float>(500 * std::sin(static_cast<double>(i) / 9));
    ASSERT_EQ(range_for(relative, x), scan(view(x))) << at;
  }
}

/// Rows as long as there are bytes from one piece to the next, with values in one part of each.
TEST(MovingRange, ASampleIsNotInStepWithRows) {
  for (const std::size_t row : {2048U, 4096U, 16384U, 65536U}) {
    std::vector<float> x(is_sampled, 0.0F);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (i % row >= row / 2) x[i] = static_cast<float>(i % 97);
    EXPECT_EQ(range_for(relative, x).width(), 96) << row;
  }
}

TEST(MovingRange, WhatASampleHasNotSeenKeepsARelativeBound) {
  auto x = wave<float>(is_sampled, 5);
  const Range seen = range_for(relative, x);
  const auto unseen = [&](std::size_t from) {  // a place whose value may change without a sample noticing
    for (;; ++from) {
      auto y = x;
      y[from] = 1e4F;
      if (range_for(relative, y) == seen) return from;
    }
  };
  const std::size_t at = unseen(5000);
  x[at] = 25;                 // beyond what has been seen, and on the grid
  x[unseen(at + 1)] = -4e5F;  // beyond the grid
  ASSERT_EQ(range_for(relative, x), seen);
  const auto sent = world::run<float>(2, [&](int rank, Communicator& comm) {
    auto y = rank == 1 ? x : std::vector<float>(x.size());
    const Report report = bcast(view(y), 1, comm, with("1e-3rel"));
    return std::pair(y, report);
  });
  world::expect_same_everywhere(sent);
  EXPECT_EQ(sent.reports[0].result_bound, 1e-3 * seen.width());
  expect_within(sent.results[0], x, 1e-3 * seen.width());
  EXPECT_EQ(sent.reports[0].route, Route::on_grid);
}

}  // namespace
}  // namespace laconic::collective_moving_range_test
