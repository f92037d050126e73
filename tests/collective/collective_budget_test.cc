#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "collective/budget.h"
#include "collective/outliers.h"
#include "core/error.h"

namespace laconic::collective_budget_test {
namespace {

constexpr Range unit{.min = -1, .max = 1, .count = 100, .non_finite = 0};

TEST(Budget, SumSharesTheBoundAmongTheOperands) {
  for (const int n : {2, 3, 64}) {
    const Budget b = budget_reduction(Op::sum, DType::f64, Bound::parse("1e-3"), n, unit);
    EXPECT_EQ(b.route, Route::on_grid);
    EXPECT_EQ(b.result_bound, 1e-3);
    EXPECT_LT(b.operand_bound * n, 1e-3);
    EXPECT_GT(b.operand_bound * n, 0.9999e-3);
    EXPECT_LE(b.grid.bound, b.operand_bound);
    EXPECT_EQ(b.fallback, nullptr);
  }
}

TEST(Budget, AverageAndMovementGiveItToEachOperand) {
  const Budget average = budget_reduction(Op::average, DType::f32, Bound::parse("1e-3"), 8, unit);
  EXPECT_EQ(average.result_bound, 1e-3);
  EXPECT_GT(average.operand_bound, 0.999e-3);
  const Budget moved = budget_movement(DType::f32, Bound::parse("1e-3rel"), unit);
  EXPECT_EQ(moved.result_bound, 2e-3);
  EXPECT_EQ(moved.operand_bound, 2e-3);
}

TEST(Budget, OperandScopeLetsTheSumsErrorGrow) {
  const Budget b = budget_reduction(Op::sum, DType::f32, Bound::parse("operand:1e-3"), 8, unit);
  EXPECT_GT(b.operand_bound, 0.999e-3);
  EXPECT_EQ(b.result_bound, 8e-3);
}

TEST(Budget, SigmasGiveOperandsMoreWhereTheyAreMany) {
  const Bound four = Bound::parse("4sigma:1e-3");
  for (const int n : {1, 2, 4, 5}) {  // up to 16 / 3 ranks the certain share is the larger one
    const Budget sum = budget_reduction(Op::sum, DType::f64, four, n, unit);
    EXPECT_EQ(sum.grid.step, budget_reduction(Op::sum, DType::f64, Bound::parse("1e-3"), n, unit).grid.step);
    EXPECT_NEAR(sum.result_bound, 1e-3, 1e-18);
  }
  for (const int n : {6, 48, 1000}) {
    const double e = 1e-3 / (4 * std::sqrt(n / 3.0));
    const Budget sum = budget_reduction(Op::sum, DType::f64, four, n, unit);
    EXPECT_NEAR(sum.operand_bound, e, e * 1e-6);
    EXPECT_LE(n * sum.operand_bound, sum.result_bound);  // what is certain
    EXPECT_NEAR(sum.result_bound, n * e, n * e * 1e-9);
    const Budget average = budget_reduction(Op::average, DType::f64, four, n, unit);
    EXPECT_NEAR(average.operand_bound, n * e, n * e * 1e-6);
    EXPECT_LE(average.operand_bound, average.result_bound);
    EXPECT_NEAR(average.result_bound, n * e, n * e * 1e-9);
  }
  EXPECT_LT(budget_reduction(Op::sum, DType::f64, Bound::parse("2sigma:1e-3"), 1, unit).result_bound, 1.0001e-3);
}

TEST(Budget, SigmasMeanNothingWhereOneErrorIsAll) {
  for (const int n : {2, 64}) {
    const Bound four = Bound::parse("4sigma:1e-3");
    EXPECT_EQ(budget_reduction(Op::max, DType::f32, four, n, unit).result_bound, 1e-3);
    EXPECT_EQ(budget_stepwise(*find_codec(CodecId::szx), n, Op::sum, DType::f32, four, n, unit).result_bound, 1e-3);
  }
  EXPECT_EQ(budget_movement(DType::f32, Bound::parse("4sigma:1e-3"), unit).result_bound, 1e-3);
}

void expect_exact(const Budget& b, const char* why) {
  EXPECT_EQ(b.route, Route::exact);
  EXPECT_TRUE(b.grid.lossless());
  EXPECT_EQ(b.operand_bound, 0);
  EXPECT_EQ(b.result_bound, 0);
  if (why == nullptr) {
    EXPECT_EQ(b.fallback, nullptr);
  } else {
    ASSERT_NE(b.fallback, nullptr);
    EXPECT_NE(std::string(b.fallback).find(why), std::string::npos) << b.fallback;
  }
}

TEST(Budget, FallsBackToExactWithTheReason) {
  constexpr double huge = std::numeric_limits<float>::max();
  const Range wide{.min = -huge, .max = huge, .count = 2, .non_finite = 0};
  expect_exact(budget_reduction(Op::sum, DType::f32, Bound{}, 4, unit), nullptr);
  expect_exact(budget_reduction(Op::sum, DType::i32, Bound::parse("1e-3"), 4, unit), "integers");
  expect_exact(budget_reduction(Op::sum, DType::f32, Bound::parse("1e-3rel"), 4, Range{5, 5, 9, 0}), "equal");
  expect_exact(budget_reduction(Op::average, DType::f64, Bound::parse("6e-16"), 4, unit), "finer");
  expect_exact(budget_reduction(Op::sum, DType::f32, Bound::parse("1e-3"), 1 << 30, unit), "holds the sum");
  expect_exact(budget_reduction(Op::average, DType::f32, Bound::parse("1e-3rel"), 4, wide), "overflow");
  const double most = std::numeric_limits<double>::max();
  expect_exact(budget_reduction(Op::sum, DType::f64, Bound::parse("1e-3rel"), 4, Range{-most, most, 2, 0}), "overflow");
}

TEST(Budget, AGridOnWhichTheSumWouldBeLongerThanItsValuesIsNotUsed) {
  const Range normal{.min = -4.5, .max = 4.5, .count = 1000, .non_finite = 0};
  for (const Op op : {Op::sum, Op::average}) {
    for (const int n : {2, 8, 64}) {
      int exact = 0, on_grid = 0;
      for (double e = 1e-2; e > 1e-7; e /= 1.3) {
        const Bound bound{.kind = BoundKind::absolute, .scope = BoundScope::operand, .value = e};
        for (const DType t : {DType::f16, DType::bf16}) {
          const Budget b = budget_reduction(op, t, bound, n, normal);
          (b.route == Route::on_grid ? on_grid : exact) += 1;
          if (b.route == Route::on_grid) {
            EXPECT_LE(share_of_noise(b.grid, n), 1) << e;
          }
        }
        EXPECT_EQ(budget_reduction(op, DType::f64, bound, n, normal).route, Route::on_grid) << e;
      }
      EXPECT_GT(exact, 0);
      EXPECT_GT(on_grid, 0);
    }
  }
}

TEST(Budget, FillValuesBeyondTheGridAreOutliersNotAReasonToGiveUp) {
  const Range filled{.min = -1, .max = 1e30, .count = 1000, .non_finite = 0};
  const Budget b = budget_reduction(Op::sum, DType::f32, Bound::parse("1e-3"), 4, filled);
  EXPECT_EQ(b.route, Route::on_grid);
  EXPECT_GT(b.operand_bound, 0.98e-3 / 4);
  EXPECT_GT(b.outliers_beyond, 1000);
  EXPECT_LT(b.outliers_beyond, 1e5);
  EXPECT_EQ(budget_reduction(Op::sum, DType::f32, Bound::parse("1e-3"), 4, unit).outliers_beyond, 0);
  // An average of f64 would be rounded twice, and fill values not be what they were.
  expect_exact(budget_reduction(Op::average, DType::f64, Bound::parse("1e-3"), 4, filled), "twice");
}

TEST(Budget, TheGridIsThatOfWhatIsWithin) {
  const Range filled{.min = -1, .max = 1e30, .count = 1000, .non_finite = 0};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Budget b = budget_reduction(Op::sum, dtype, Bound::parse("1e-3"), 4, filled, 1);
    const Budget alone = budget_reduction(Op::sum, dtype, Bound::parse("1e-3"), 4, unit);
    EXPECT_EQ(b.grid.step, alone.grid.step);
    EXPECT_EQ(b.grid.qbits, alone.grid.qbits);
    EXPECT_GT(b.outliers_beyond, 1);
  }
}

/// Else exceptions would be more than are counted.
TEST(Budget, WhatIsNoOutlierIsOnTheGridThatIsMadeForIt) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int n : {2, 4, 9, 600})
      for (int i = 0; i < 200; ++i) {
        const Bound bound{.kind = BoundKind::absolute, .value = 1e-3 * std::exp2(i / 100.0)};
        const Range filled{.min = -1, .max = 1e30, .count = 1000, .non_finite = 0};
        const double limit = budget_reduction(Op::sum, dtype, bound, n, filled).outliers_beyond;
        ASSERT_GT(limit, 0);
        for (const double within : {limit, limit * (1 - i * 0x1p-10), infinity}) {
          const Budget b = budget_reduction(Op::sum, dtype, bound, n, filled, within);
          ASSERT_EQ(b.route, Route::on_grid);
          ASSERT_LT(std::min(within, limit) / b.grid.step, std::ldexp(1.0, b.grid.qbits) - 1) << n << ", " << i;
          ASSERT_TRUE(sum_fits(b.grid, static_cast<std::uint64_t>(n)));
        }
        // Values that are all this large may be beyond the grid that is made for them.
        for (const double largest : {limit, limit * 1.2, limit * 1.9}) {
          const Range range{.min = -1, .max = largest, .count = 1000, .non_finite = 0};
          const Budget b = budget_reduction(Op::sum, dtype, bound, n, range);
          ASSERT_TRUE(b.outliers_beyond != 0 || largest / b.grid.step <= std::ldexp(1.0, b.grid.qbits) - 1)
              << n << ", " << i << ", " << largest / limit;
        }
      }
}

TEST(Outliers, FillsAreCountedApart) {
  const std::vector<float> x{
      0, 1, -5, 1e30F, -1e30F, 2e3F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
  const Outliers o = count_outliers({x.data(), x.size(), DType::f32}, 4, static_cast<double>(1e30F));
  EXPECT_EQ(o.count, 4U);
  EXPECT_EQ(o.fills, 2U);
  EXPECT_EQ(o.densest, 2U);
  EXPECT_EQ(o.within, 1);
  for (std::size_t k = 0; k < Outliers::samples; ++k) {
    const auto i = Outliers::position(k, x.size());
    EXPECT_EQ(o.fill_at[k / 64] >> (k % 64) & 1, i == 3 || i == 4 ? 1U : 0U);
    EXPECT_EQ(o.lone_at[k / 64] >> (k % 64) & 1, i == 2 || i == 5 ? 1U : 0U);
  }
}

TEST(Outliers, AreCountedByTheChunk) {
  std::vector<double> x(10000, 1);
  std::fill(x.begin() + 1000, x.begin() + 5000, 1e20);
  x[9999] = 1e30;
  EXPECT_EQ(count_outliers({x.data(), x.size(), DType::f64}, 4, 1e30).densest, 2048U);
  std::fill(x.begin() + 2000, x.begin() + 5000, 1e30);
  EXPECT_EQ(count_outliers({x.data(), x.size(), DType::f64}, 4, 1e30).densest, 1000U);
}

/// Of a thousand elements in all, with values up to 100 on the grid.
bool too_many(const AllOutliers& all, DType dtype = DType::f32, double largest = static_cast<double>(1e30F),
              int ranks = 4) {
  const Range range{.min = -1, .max = largest, .count = 1000, .non_finite = 0};
  return too_many_outliers(all, make_grid(dtype, 1e-3, 100), ranks, range);
}

TEST(Outliers, AreTooManyWhereTheSumOutgrowsItsElements) {
  EXPECT_FALSE(too_many({.count = 20, .lone = 0.02, .lone_most = 0.05}));
  EXPECT_FALSE(too_many({.count = 900, .fills = 880, .lone = 0.02, .lone_most = 0.05}));
  EXPECT_TRUE(too_many({.count = 20, .lone = 0.02, .lone_most = 0.3}));  // all in one rank's share
  EXPECT_TRUE(too_many({.count = 200, .lone = 0.2, .lone_most = 0.2}));
  EXPECT_TRUE(too_many({.count = 200}));  // between all samples
  EXPECT_TRUE(too_many({.count = 900, .fills = 900, .apart = 0.2}));
  // Three times a fill value of as many bits as it can have takes two terms.
  const AllOutliers land{.count = 600, .fills = 600};
  EXPECT_FALSE(too_many(land, DType::f64, 0x1p100, 3));
  EXPECT_FALSE(too_many(land, DType::f64, 0x1p100 + 0x1p48, 2));
  EXPECT_TRUE(too_many(land, DType::f64, 0x1p100 + 0x1p48, 3));
}

TEST(Outliers, AChunkOfTheSumMustHoldTheirTerms) {
  const auto chunk = [](std::uint64_t lone, DType dtype, int ranks, std::uint64_t fills = 1, std::uint64_t nans = 0) {
    const Range range{.min = -1, .max = static_cast<double>(1e30F), .count = 1000, .non_finite = nans};
    return largest_sum_chunk({.count = lone + fills, .fills = fills, .in_one_chunk = lone}, make_grid(dtype, 1e-3, 100),
                             ranks, range);
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_LT(chunk(100, dtype, 64).value(), 30000U);
    EXPECT_LE(chunk(4 * 2048, dtype, 4).value(), 4U * 65535);
    EXPECT_GE(chunk(4 * 2048, dtype, 4).value(), 4U * 2048 * 8);
    EXPECT_FALSE(chunk(64 * 2048, dtype, 64));
    EXPECT_GE(chunk(100, dtype, 64, 5000).value(), chunk(100, dtype, 64).value() + 2000 * 2 * 8);
    EXPECT_GE(chunk(100, dtype, 64, 1, 5000).value(), chunk(100, dtype, 64).value() + 1900 * 8);
  }
}

TEST(Budget, RatioIsNotOffered) {
  EXPECT_THROW(budget_reduction(Op::sum, DType::f32, Bound::parse("10x"), 4, unit), Error);
}

TEST(Ulp, OfEveryType) {
  EXPECT_EQ(ulp_of(DType::f32, 1.0), 0x1p-23);
  EXPECT_EQ(ulp_of(DType::f32, 1.999), 0x1p-23);
  EXPECT_EQ(ulp_of(DType::f64, 1.0), 0x1p-52);
  EXPECT_EQ(ulp_of(DType::f16, 1.0), 0x1p-10);
  EXPECT_EQ(ulp_of(DType::bf16, 1.0), 0x1p-7);
  EXPECT_EQ(ulp_of(DType::f32, 0), 0x1p-149);
  EXPECT_EQ(ulp_of(DType::f32, 1e-44), 0x1p-149);
  EXPECT_EQ(ulp_of(DType::f16, 1e-7), 0x1p-24);
  EXPECT_EQ(ulp_of(DType::f16, 1e6), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace laconic::collective_budget_test
