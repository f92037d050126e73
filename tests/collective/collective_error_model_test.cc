// The error models as code: figures that follow from their assumptions in other ways.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "collective/error_model.h"

namespace laconic::error_model::collective_error_model_test {
namespace {

constexpr double e = 0.5;

TEST(ErrorModel, SumsOfRoundingErrors) {
  const Expectation sum = expect(Law::nearest, Op::sum, 12, e);
  EXPECT_EQ(sum.bias, 0);
  EXPECT_DOUBLE_EQ(sum.sigma, 2 * e);
  EXPECT_DOUBLE_EQ(sum.certain, 12 * e);
  const Expectation average = expect(Law::nearest, Op::average, 12, e);
  EXPECT_DOUBLE_EQ(average.sigma, e / 6);
  EXPECT_DOUBLE_EQ(average.certain, e);
  for (const int n : {1, 2, 64}) {
    EXPECT_DOUBLE_EQ(expect(Law::nearest, Op::min, n, e).sigma, e / std::sqrt(3.0));
    EXPECT_DOUBLE_EQ(expect(Law::nearest, Op::max, n, e).certain, e);
  }
}

TEST(ErrorModel, TruncationIsBiasedAndAveragingDoesNotHelp) {
  for (const int n : {1, 2, 64}) {
    EXPECT_DOUBLE_EQ(expect(Law::truncated, Op::sum, n, e).bias, -n * e / 2);
    EXPECT_DOUBLE_EQ(expect(Law::truncated, Op::average, n, e).bias, -e / 2);
    EXPECT_DOUBLE_EQ(expect(Law::truncated, Op::average, n, e).certain, e);
    EXPECT_DOUBLE_EQ(expect(Law::truncated, Op::max, n, e).bias, -e / 2);
  }
  EXPECT_DOUBLE_EQ(expect(Law::truncated, Op::sum, 12, e).sigma, e);
}

TEST(ErrorModel, WithoutALawOnlyTheBoundIsKnown) {
  const Expectation x = expect(Law::unknown, Op::sum, 4, e);
  EXPECT_EQ(x.sigma, 0);
  EXPECT_DOUBLE_EQ(x.certain, 4 * e);
  EXPECT_EQ(share_within(e, Law::unknown, Op::sum, 4, e), 0);
  EXPECT_EQ(law_of(CodecId::szx), Law::unknown);
  EXPECT_EQ(law_of(CodecId::slice), Law::nearest);
  EXPECT_EQ(law_of(CodecId::fzlight), Law::truncated);
}

TEST(ErrorModel, PublishedTheoremsAsTheyArePrinted) {
  // Corollary 1's example: 100 nodes, 20/3 of the bound.
  EXPECT_DOUBLE_EQ(2 * papers_sigma(Op::sum, 100, e), 20 * e / 3);
  EXPECT_DOUBLE_EQ(papers_sigma(Op::average, 4, e), e / 6);
  for (const int n : {2, 3, 8, 20}) {  // Theorem 2's series, formula (4)
    double variance = 0;
    for (int k = 1; k <= n; ++k) variance += k / std::exp2(k) * e * e / 9;
    EXPECT_NEAR(papers_sigma(Op::max, n, e), std::sqrt(variance), 1e-12) << n;
  }
}

TEST(ErrorModel, UniformSumsHaveTheLawThatTheyHave) {
  EXPECT_DOUBLE_EQ(uniform_sum_below(1, 0.25), 0.25);
  EXPECT_DOUBLE_EQ(uniform_sum_below(2, 0.5), 0.125);
  EXPECT_DOUBLE_EQ(uniform_sum_below(2, 1.5), 0.875);
  EXPECT_DOUBLE_EQ(uniform_sum_below(3, 1.5), 0.5);
  EXPECT_EQ(uniform_sum_below(5, -1), 0);
  EXPECT_EQ(uniform_sum_below(5, 5), 1);
  // Where the series ends and the normal law begins, they agree.
  EXPECT_NEAR(uniform_sum_below(16, 8 + 1.5 * std::sqrt(16 / 12.0)),
              uniform_sum_below(17, 8.5 + 1.5 * std::sqrt(17 / 12.0)), 1e-3);
}

TEST(ErrorModel, SharesAreWhatRoundingGives) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> value(0, 100);
  constexpr int n = 4;
  constexpr int trials = 200000;
  const double limit = 2 * papers_sigma(Op::sum, n, e);
  int nearest = 0, truncated = 0;
  for (int t = 0; t < trials; ++t) {
    double rounding = 0, truncation = 0;
    for (int k = 0; k < n; ++k) {
      const double x = value(random);
      rounding += std::round(x / (2 * e)) * 2 * e - x;
      truncation += std::trunc(x / e) * e - x;
    }
    nearest += std::abs(rounding) <= limit ? 1 : 0;
    truncated += std::abs(truncation) <= limit ? 1 : 0;
  }
  EXPECT_NEAR(share_within(limit, Law::nearest, Op::sum, n, e), nearest / double{trials}, 0.005);
  EXPECT_NEAR(share_within(limit, Law::truncated, Op::sum, n, e), truncated / double{trials}, 0.005);
  EXPECT_NEAR(share_within(limit / n, Law::nearest, Op::average, n, e), nearest / double{trials}, 0.005);
  EXPECT_NEAR(share_within(2 * e / 3, Law::nearest, Op::max, n, e), 2.0 / 3, 1e-12);
}

TEST(ErrorModel, ThePublishedIntervalHoldsThreeQuartersOfUniformErrors) {
  EXPECT_NEAR(share_within(2 * papers_sigma(Op::sum, 64, e), Law::nearest, Op::sum, 64, e), 0.752, 0.001);
  EXPECT_LT(share_within(2 * papers_sigma(Op::sum, 64, e), Law::truncated, Op::sum, 64, e), 1e-6);
}

}  // namespace
}  // namespace laconic::error_model::collective_error_model_test
