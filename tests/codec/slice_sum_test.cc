// A sum of frames is the exact sum of what its operands stand for, rounded once; whatever the order of adding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "codec/slice_cases.h"
#include "support/sanitized.h"
#include "support/wide.h"

namespace laconic::test::slice_sum_test {
namespace {

using Exact = Wide;  // 113 bits hold the sums of these tests

/// An operand's element as the grid sees it, worked out apart from the codec.
struct Contribution {
  bool on_grid = false;
  std::int64_t q = 0;
  double value = 0;  ///< where it is not on the grid
};

double nearest_even(double v) { return std::nearbyint(v); }

Contribution contribution_of(const Array& x, std::size_t i, const Grid& g) {
  Contribution c{false, 0, x.value(i)};
  const bool f64 = x.dtype == DType::f64;
  const double inverse = f64 ? 1 / g.step : static_cast<float>(1 / g.step);
  // The product is exact but for f64, where test data stays far from midpoints.
  const double q = nearest_even(c.value * inverse);
  const double limit = std::ldexp(1.0, g.qbits);
  if (!(q >= -limit && q < limit)) return c;
  Array on_grid(x.dtype, 1);
  on_grid.set_value(0, f64 ? q * g.step : static_cast<float>(q) * static_cast<float>(g.step));
  const double error = f64 ? std::abs(c.value - on_grid.value(0))
                           : std::abs(static_cast<float>(c.value) - static_cast<float>(on_grid.value(0)));
  if (!(error <= g.bound)) return c;
  c.on_grid = true;
  c.q = static_cast<std::int64_t>(q);
  return c;
}

/// v rounded to the dtype, ties to even, once.
double rounded_to(DType t, Exact v) {
  if (t == DType::f64) return static_cast<double>(v);
  if (t == DType::f32) return static_cast<float>(v);
  const FloatLayout l = layout_of(t);
  const auto about = static_cast<double>(v);
  if (about == 0) return 0;
  const int least = 2 - (1 << (l.exponent - 1)) - l.fraction;
  const double quantum = std::ldexp(1.0, std::max(std::ilogb(about) - l.fraction, least));
  const Exact scaled = v / quantum;
  auto whole = static_cast<long long>(scaled);
  const Exact rest = scaled - whole;
  const Exact half = rest < 0 ? -rest : rest;
  if (half > 0.5 || (half == 0.5 && whole % 2 != 0)) whole += rest < 0 ? -1 : 1;
  const double result = static_cast<double>(whole) * quantum;
  return std::abs(result) > largest_of(t) * 1.05 ? std::copysign(INFINITY, result) : result;
}

double expected_sum(const std::vector<Array>& x, std::size_t i, const Grid& g) {
  bool on_grid = true;
  bool finite = true;
  std::int64_t q = 0;
  Exact exact = 0;
  double ieee = 0;
  for (const Array& a : x) {
    const Contribution c = contribution_of(a, i, g);
    on_grid = on_grid && c.on_grid;
    q += c.q;
    exact += c.on_grid ? static_cast<Exact>(static_cast<double>(c.q)) * g.step : static_cast<Exact>(c.value);
    if (!c.on_grid && !std::isfinite(c.value)) {
      finite = false;
      ieee += c.value;
    }
  }
  if (!finite) return ieee;
  if (!on_grid) return rounded_to(x[0].dtype, exact);
  const double largest = std::ldexp(static_cast<double>(x.size()), g.qbits);
  Array y(x[0].dtype, 1);
  if (y.dtype == DType::f64) return static_cast<double>(q) * g.step;
  y.set_value(0, largest <= 0x1p24 ? static_cast<float>(q) * static_cast<float>(g.step)
                                   : static_cast<float>(static_cast<double>(q) * g.step));
  return y.value(0);
}

class SliceSum : public testing::TestWithParam<DType> {};

std::vector<Array> operands(DType t, std::size_t count, bool mix) {
  const std::array kinds = {Kind::smooth, Kind::sparse_outliers, Kind::nan_and_infinity, Kind::offset_noise};
  std::vector<Array> x;
  for (std::size_t k = 0; k < 4; ++k) x.push_back(sample(t, mix ? kinds[k] : Kind::sparse_outliers, count, k + 1));
  return x;
}

std::vector<Grid> stepped_grids_of(DType t) {
  std::vector<Grid> g = grids_of(t);
  g.erase(g.begin());
  if (t == DType::f64) g.erase(g.begin());  // so tight that products are inexact
  return g;
}

Outcome total_of(const std::vector<Outcome>& frames, const std::vector<std::size_t>& order, const Array& like) {
  Outcome sum = frames[order[0]];
  for (std::size_t k = 1; k < order.size(); ++k) sum = added(like, sum, frames[order[k]]);
  return sum;
}

TEST_P(SliceSum, IsTheExactSumRoundedOnce) {
  const DType t = GetParam();
  for (const Grid& g : stepped_grids_of(t))
    for (const bool mix : {false, true}) {
      const std::vector<Array> x = operands(t, 4500, mix);
      SCOPED_TRACE(describe(t, g, Kind::mixed, x[0].count));
      std::vector<Outcome> frames;
      for (const Array& a : x) frames.push_back(encoded(a, g));
      const Array y = decoded(x[0], total_of(frames, {0, 1, 2, 3}, x[0]));
      for (std::size_t i = 0; i < y.count; ++i) {
        const double want = expected_sum(x, i, g);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(y.value(i))) << "element " << i;
        } else {
          ASSERT_EQ(y.value(i), want) << "element " << i;
        }
      }
    }
}

/// Another one, until all have been; under sanitizers every fifth.
bool next_order(std::vector<std::size_t>& order) {
  for (int i = 0; i < (sanitized ? 5 : 1); ++i)
    if (!std::next_permutation(order.begin(), order.end())) return false;
  return true;
}

TEST_P(SliceSum, DoesNotDependOnTheOrder) {
  const DType t = GetParam();
  for (const Grid& g : stepped_grids_of(t))
    for (const Kind other : {Kind::several_fills, Kind::random_bits, Kind::huge, Kind::mixed}) {
      constexpr std::size_t count = 3000;
      SCOPED_TRACE(describe(t, g, other, count));
      const std::vector<Array> x = {sample(t, Kind::smooth, count), sample(t, other, count),
                                    sample(t, Kind::fill_runs, count), sample(t, other, count, 2)};
      std::vector<Outcome> frames;
      for (const Array& a : x) frames.push_back(encoded(a, g));
      std::vector<std::size_t> order = {0, 1, 2, 3};
      const Array expected = decoded(x[0], total_of(frames, order, x[0]));
      while (next_order(order))
        ASSERT_TRUE(expected == decoded(x[0], total_of(frames, order, x[0])))
            << order[0] << order[1] << order[2] << order[3];
      const Outcome tree = added(x[0], added(x[0], frames[3], frames[1]), added(x[0], frames[2], frames[0]));
      ASSERT_TRUE(expected == decoded(x[0], tree)) << "as a tree";
      Outcome fused = frames[2];
      for (const std::size_t k : {3U, 0U, 1U}) fused = encode_added(x[k], fused);
      ASSERT_TRUE(expected == decoded(x[0], fused)) << "fused";
    }
}

INSTANTIATE_TEST_SUITE_P(Floats, SliceSum, testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

/// A sum of large integers of 32 bits chooses its predictor by a mean that wraps, also where a frame that is added
/// later needs 64 bits.
TEST(SliceSumOfSeveral, IsAsOneAfterAnotherWhereGridsHaveOtherBits) {
  constexpr std::size_t count = 2048;
  Array noise(DType::f64, count);
  Array ramp(DType::f64, count);
  const Array zeros(DType::f64, count);
  Random random(1);
  for (std::size_t i = 0; i < count; ++i) {
    noise.set_value(i, 0x1p26 + static_cast<double>(random.below(1 << 20)));
    ramp.set_value(i, static_cast<double>(i));
  }
  const Grid narrow{.dtype = DType::f64, .step = 1, .bound = 0.5, .qbits = 28};
  Grid wide = narrow;
  wide.qbits = 40;
  const std::vector<Outcome> frames = {encoded(noise, narrow), encoded(ramp, narrow), encoded(zeros, wide)};
  EXPECT_EQ(summed(nullptr, noise, frames), summed_in_turn(nullptr, noise, frames));
  const std::vector<Outcome> received = {encoded(zeros, narrow), frames[2]};
  EXPECT_EQ(summed(&noise, noise, received), summed_in_turn(&noise, noise, received));
}

/// What is left of their sum by rounding lies half a place beyond the largest double where it is worked out carelessly.
TEST(SliceSumOfSeveral, HasTheLargestDoubleInEitherOrder) {
  const double most = -std::numeric_limits<double>::max(), other = 0x1.f2617d67cd51bp+1022;
  const Grid g = make_grid(DType::f64, 1e-3, 1);
  Array x(DType::f64, 2100), y(DType::f64, 2100);
  for (std::size_t i = 0; i < x.count; ++i) {
    x.set_value(i, i % 3 == 0 ? most : 0.25);
    y.set_value(i, i % 3 == 0 ? other : 0.5);
  }
  std::vector<slice::Target> targets = fast_targets();
  targets.push_back(slice::Target::scalar);
  for (const slice::Target target : targets) {
    const OnTarget on(target);
    const Outcome one = added(x, encoded(x, g), encoded(y, g)), two = added(x, encoded(y, g), encoded(x, g));
    ASSERT_EQ(one.code, Code::ok);
    const Array sum = decoded(x, one), turned = decoded(x, two);
    EXPECT_EQ(sum.value(0), most + other);
    for (std::size_t i = 0; i < x.count; ++i) ASSERT_EQ(sum.bits(i), turned.bits(i)) << i;
  }
}

TEST(SliceSumIntegers, WrapAsUnsignedOnesDo) {
  for (const DType t : {DType::i32, DType::u32, DType::i64, DType::u64})
    for (const Kind kind : {Kind::smooth, Kind::huge, Kind::random_bits}) {
      const Array x = sample(t, kind, 4500);
      const Array y = sample(t, kind, 4500, 2);
      const Grid g = make_grid(t, 0, 1);
      const Array sum = decoded(x, encode_added(x, added(x, encoded(x, g), encoded(y, g))));
      for (std::size_t i = 0; i < x.count; ++i) {
        Array want(t, 1);
        want.set_bits(0, 2 * x.bits(i) + y.bits(i));
        ASSERT_EQ(sum.bits(i), want.bits(0)) << i;
      }
    }
}

TEST(SliceSumRefusal, ComesBeforeIntegersCouldOverflow) {
  for (const DType t : {DType::f32, DType::f64, DType::bf16})
    for (const Grid& g : grids_of(t)) {
      if (g.lossless()) continue;
      const Array x = sample(t, Kind::noise, 10);
      Outcome sum = encoded(x, g);
      std::uint64_t operands = 1;
      while (sum_fits(g, 2 * operands) && operands < (1U << 30)) {
        sum = added(x, sum, sum);
        ASSERT_EQ(sum.code, Code::ok) << operands;
        operands *= 2;
        ASSERT_EQ(frame::peek(sum.frame).operands, operands);
      }
      const Array y = decoded(x, sum);
      for (std::size_t i = 0; i < x.count; ++i)
        ASSERT_NEAR(
            y.value(i), x.value(i) * static_cast<double>(operands),
            g.bound * static_cast<double>(operands) + std::abs(y.value(i)) * std::ldexp(1.0, -layout_of(t).fraction));
      if (operands < (1U << 30)) {
        ASSERT_EQ(added(x, sum, sum).code, Code::unsupported);
      }
    }
}

TEST(SliceSumRefusal, NamesWhatDiffers) {
  const Array x = sample(DType::f32, Kind::smooth, 100);
  const Outcome a = encoded(x, make_grid(DType::f32, 1e-3, 2));
  EXPECT_EQ(added(x, a, encoded(x, make_grid(DType::f32, 1e-4, 2))).code, Code::mismatch);
  EXPECT_EQ(added(x, a, encoded(sample(DType::f32, Kind::smooth, 99), make_grid(DType::f32, 1e-3, 2))).code,
            Code::mismatch);
  const Outcome lossless = encoded(x, make_grid(DType::f32, 0, 2));
  EXPECT_EQ(added(x, lossless, lossless).code, Code::unsupported);
  EXPECT_EQ(encode_added(sample(DType::f32, Kind::smooth, 99), a).code, Code::invalid_argument);
}

}  // namespace
}  // namespace laconic::test::slice_sum_test
