// What a frame promises about an operand: every finite element within the bound, everything else and every lossless
// element bit for bit, and no frame larger than its capacity.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codec/slice/kernels.h"
#include "codec/slice_cases.h"

namespace laconic::test::slice_bound_test {
namespace {

class SliceBound : public testing::TestWithParam<DType> {};

std::uint64_t magnitude_bits(const Array& a, std::size_t i) {
  const FloatLayout l = layout_of(a.dtype);
  return a.bits(i) & ((std::uint64_t{1} << (l.exponent + l.fraction)) - 1);
}

void expect_within(const Array& x, const Array& y, double bound) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const double v = x.value(i);
    if (!std::isfinite(v)) {
      ASSERT_EQ(x.bits(i), y.bits(i)) << "element " << i;
      continue;
    }
    // Exact in long double but for values so far apart that the difference is plain.
    const long double error = std::abs(static_cast<long double>(v) - static_cast<long double>(y.value(i)));
    ASSERT_LE(error, static_cast<long double>(bound)) << "element " << i << ": " << v << " became " << y.value(i);
  }
}

TEST_P(SliceBound, HoldsForEveryElement) {
  const DType t = GetParam();
  for (const Grid& g : grids_of(t))
    for (const Kind kind : all_kinds)
      for (const std::size_t count : {1U, 300U, 6000U}) {
        SCOPED_TRACE(describe(t, g, kind, count));
        const Array x = sample(t, kind, count);
        const Array y = decoded(x, encoded(x, g));
        if (g.lossless()) {
          ASSERT_TRUE(x == y);
        } else {
          expect_within(x, y, g.bound);
        }
      }
}

TEST_P(SliceBound, FramesStayWithinTheirCapacity) {
  const DType t = GetParam();
  for (const Grid& g : grids_of(t))
    for (const Kind kind : all_kinds)
      for (const std::size_t count : {0U, 1U, 2U, 3U, 65U, 2047U, 2048U, 2049U, 6000U}) {
        SCOPED_TRACE(describe(t, g, kind, count));
        const std::size_t capacity = frame::capacity(t, count);
        ASSERT_LE(static_cast<double>(capacity), 1.02 * static_cast<double>(count * size_of(t)) + 64);
        const Outcome f = encoded(sample(t, kind, count), g);
        ASSERT_EQ(f.code, Code::ok);
        ASSERT_LE(f.frame.size(), capacity);
      }
}

INSTANTIATE_TEST_SUITE_P(AllDtypes, SliceBound, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

/// Values at and about the grid's ends and its midpoints, where rounding decides.
TEST(SliceBoundEdges, HoldWhereRoundingDecides) {
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const Grid& g : grids_of(t)) {
      if (g.lossless()) continue;
      Array x(t, 8192);
      Random random(7);
      const double limit = std::ldexp(1.0, g.qbits);
      for (std::size_t i = 0; i < x.count; ++i) {
        const double q = i % 3 == 0
                             ? (random.below(2) == 0 ? limit : -limit) + static_cast<double>(random.below(9)) / 4 - 1
                         : i % 3 == 1 ? static_cast<double>(random.below(1000)) + 0.5
                                      : limit * random.symmetric();
        x.set_value(i, q * g.step);
      }
      SCOPED_TRACE(describe(t, g, Kind::noise, x.count));
      const Outcome f = encoded(x, g);
      expect_within(x, decoded(x, f), g.bound);
      for (const auto target : fast_targets()) {
        const OnTarget guard(target);
        EXPECT_EQ(f, encoded(x, g)) << slice::name_of(target);
      }
    }
}

/// A grid as calls make them: any bound, for values up to some magnitude, or of any.
struct MadeFor {
  double largest;
  Grid grid;
  MadeFor(DType t, Random& random) {
    const double bound = std::ldexp(1 + random.uniform(), static_cast<int>(random.below(120)) - 60);
    largest = random.below(8) == 0 ? std::numeric_limits<double>::infinity()
                                   : bound * std::exp2((t == DType::f64 ? 29 : 21) * random.uniform());
    grid = make_grid(t, bound, largest);
  }
};

/// What encoders find for x, and the error of that, exact but for the last rounding.
template <class A>
struct Found {
  double q;
  double error;
  Found(A x, const Grid& g, A inverse) {
    const A origin = std::ldexp(A{1}, std::numeric_limits<A>::digits - 1) + std::ldexp(A{1}, g.qbits);
    const A on_grid = std::fma(x, inverse, origin) - origin;
    q = static_cast<double>(on_grid);
    error = static_cast<double>(
        std::abs(static_cast<long double>(x) - static_cast<long double>(on_grid * static_cast<A>(g.step))));
  }
};

template <class A>
void expect_proven_integers_keep_the_bound(DType t) {
  Random random(11);
  for (int i = 0; i < 4000; ++i) {
    const MadeFor made(t, random);
    const Grid& g = made.grid;
    if (g.lossless()) continue;
    const slice::Params p = slice::params_for(g, 1);
    const auto inverse = static_cast<A>(1 / g.step);
    const auto most = static_cast<double>(p.proven);
    for (int k = 0; k < 400; ++k) {
      const double q = k % 4 == 0 ? most - static_cast<double>(random.below(3)) : std::floor(most * random.uniform());
      auto x = static_cast<A>((q + 0.5) * g.step);  // halfway, and a little to either side
      for (int n = static_cast<int>(random.below(3)); n > 0; --n) x = std::nextafter(x, k % 2 == 0 ? A{0} : 2 * x);
      const Found<A> found(k % 8 < 4 ? x : -x, g, inverse);
      if (std::abs(found.q) > most || found.q > static_cast<double>(p.highest_proven())) continue;
      ASSERT_LE(found.error, g.bound) << x << " of " << g.step << " within " << g.bound << ", " << p.proven;
    }
  }
}

TEST(SliceProven, IntegersKeepTheBound) {
  expect_proven_integers_keep_the_bound<float>(DType::f32);
  expect_proven_integers_keep_the_bound<double>(DType::f64);
}

TEST(SliceProven, CoversTheElementsThatAGridIsMadeFor) {
  for (const DType t : {DType::f32, DType::f64}) {
    Random random(12);
    int all = 0, covered = 0;
    for (int i = 0; i < 4000; ++i) {
      const MadeFor made(t, random);
      if (made.grid.lossless() || std::isinf(made.largest) || (t == DType::f32 && made.grid.qbits > 14)) continue;
      ++all;
      const auto most = static_cast<double>(slice::params_for(made.grid, 1).proven);
      covered += most + 1 >= made.largest / made.grid.step ? 1 : 0;
    }
    EXPECT_GT(all, 1000);
    EXPECT_GT(covered, all * 0.99);  // of some steps no neighbour has a good inverse, such as of the root of 3
  }
  // On a grid for any value rounding the largest ones takes most of the bound: there each one's error is computed.
  const double any = std::numeric_limits<double>::infinity();
  EXPECT_EQ(slice::params_for(make_grid(DType::f32, 1e-3, any), 1).proven, 0);
}

/// Of the largest floats the nearest grid point may be beyond the type.
TEST(SliceProven, ElementsThatWouldBecomeInfiniteStayAsTheyAre) {
  constexpr float end = std::numeric_limits<float>::max();
  for (const double step : {0x1p106, 0x1p116, 0x1p120}) {
    Array x(DType::f32, 2 * 2048);
    for (std::size_t i = 0; i < x.count; ++i)
      x.set_value(i, i % 64 == 5 ? (i % 128 == 5 ? end : -end) : end / 4 * static_cast<double>(i % 9) / 9);
    const Grid g{.dtype = DType::f32, .step = step, .bound = step, .qbits = 22};
    const Outcome f = encoded(x, g);
    for (const auto target : fast_targets()) {
      const OnTarget guard(target);
      EXPECT_EQ(f, encoded(x, g)) << slice::name_of(target);
      expect_within(x, decoded(x, encoded(x, g)), g.bound);
    }
  }
}

TEST(SliceProven, FramesAreTheReferences) {
  for (const DType t : {DType::f32, DType::f64}) {
    Random random(13);
    for (int i = 0; i < 60; ++i) {
      const MadeFor made(t, random);
      const Grid& g = made.grid;
      if (g.lossless()) continue;
      const slice::Params p = slice::params_for(g, 1);
      Array x(t, 6 * 2048);
      for (std::size_t k = 0; k < x.count; ++k) {
        // Of each two chunks one stays within what is proven, the other may lie about its ends.
        const double most = static_cast<double>(p.proven) + (k / 2048 % 2 == 0 ? -1 : random.below(512) == 0 ? 2 : 0);
        const double q = k % 64 == 0 ? most - static_cast<double>(random.below(3)) : most * random.symmetric();
        x.set_value(k, (std::floor(q) + 0.5) * g.step);
      }
      SCOPED_TRACE(describe(t, g, Kind::noise, x.count));
      const Outcome f = encoded(x, g);
      expect_within(x, decoded(x, f), g.bound);
      for (const auto target : fast_targets()) {
        const OnTarget guard(target);
        EXPECT_EQ(f, encoded(x, g)) << slice::name_of(target);
      }
    }
  }
}

TEST(SliceBoundSpecial, ZerosAndSubnormalsKeepTheirPlaceOnTheGrid) {
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Array x = sample(t, Kind::denormals, 3000);
    const Outcome f = encoded(x, grids_of(t).back());
    EXPECT_LT(f.frame.size(), 48U + 2 * 2 + 2 * 4 + 1);  // constant chunks
    const Array y = decoded(x, f);
    for (std::size_t i = 0; i < y.count; ++i) ASSERT_EQ(magnitude_bits(y, i), 0U);
  }
}

TEST(SliceBoundSpecial, ConstantAndFilledArraysTakeAFewBytesAChunk) {
  constexpr std::size_t chunks = 10;
  Array land(DType::f32, chunks * 2048);
  for (std::size_t i = 0; i < land.count; ++i) land.set_value(i, 1e30);
  const Grid g = make_grid(DType::f32, 1e-3, 10);
  EXPECT_LE(encoded(land, g).frame.size(), 48 + chunks * (2 + 8));
  EXPECT_LE(encoded(sample(DType::f32, Kind::constant, land.count), g).frame.size(), 48 + chunks * (2 + 4));
  EXPECT_LE(encoded(sample(DType::f32, Kind::zeros, land.count), g).frame.size(), 48 + chunks * (2 + 4));
}

}  // namespace
}  // namespace laconic::test::slice_bound_test
