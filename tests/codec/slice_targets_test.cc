// Every SIMD target writes the reference's bytes and reads its values, bit for bit: all dtypes, bounds, kinds of data
// and awkward counts.
#include <gtest/gtest.h>

#include <cmath>

#include "codec/slice_cases.h"
#include "support/sanitized.h"

namespace laconic::test {
namespace {

using slice::Target;

/// The largest only for a few kinds: the reference is slow.
std::vector<std::size_t> counts_of(Kind kind) {
  if (sanitized) return {0, 1, 65, 2047, 2049, kind == Kind::mixed ? std::size_t{5000} : 64};
  std::vector<std::size_t> counts = {0, 1, 2, 63, 64, 65, 2047, 2048, 2049, 5000};
  if (kind == Kind::smooth || kind == Kind::fill_runs || kind == Kind::mixed) counts.push_back(20000);
  return counts;
}

/// Everything that can be done with two arrays on a grid.
struct Results {
  Outcome x, y, sum, longer_sum, fused, fused_onto_constant;
  std::vector<Array> arrays;
};

Results run(const Array& x, const Array& y, const Array& constant, const Grid& g) {
  Results r;
  r.x = encoded(x, g);
  r.y = encoded(y, g);
  r.sum = added(x, r.x, r.y);
  r.arrays.push_back(decoded(x, r.x));
  for (const bool in_place : {false, true})
    EXPECT_TRUE(encode_decoded(x, g, in_place) == std::pair(r.x, r.arrays[0])) << "encode_decode, " << in_place;
  if (r.sum.code != Code::ok) return r;
  r.longer_sum = added(x, r.sum, r.x);
  r.fused = encode_added(y, r.sum);
  r.fused_onto_constant = encode_added(x, encoded(constant, g));
  for (const Outcome* o : {&r.sum, &r.longer_sum, &r.fused, &r.fused_onto_constant})
    if (o->code == Code::ok) r.arrays.push_back(decoded(x, *o));
  if (!g.lossless()) r.arrays.push_back(decoded(x, r.sum, 1, 2));
  return r;
}

void compare(const Results& expected, const Results& got) {
  EXPECT_EQ(expected.x, got.x) << "encode";
  EXPECT_EQ(expected.y, got.y) << "encode of the other";
  EXPECT_EQ(expected.sum, got.sum) << "add";
  EXPECT_EQ(expected.longer_sum, got.longer_sum) << "add to a sum";
  EXPECT_EQ(expected.fused, got.fused) << "encode_add";
  EXPECT_EQ(expected.fused_onto_constant, got.fused_onto_constant) << "encode_add to a constant";
  ASSERT_EQ(expected.arrays.size(), got.arrays.size());
  for (std::size_t i = 0; i < got.arrays.size(); ++i)
    EXPECT_TRUE(expected.arrays[i] == got.arrays[i]) << "decode " << i;
}

#ifdef LACONIC_EMULATE_AVX512
TEST(SliceTargetsEmulated, TakePart) {
  for (const Target t : {Target::avx512, Target::avx512x})
    EXPECT_EQ(slice::supported(t), slice::supported(Target::avx2));
}
#endif

class SliceTargets : public testing::TestWithParam<DType> {};

TEST_P(SliceTargets, WriteAndReadWhatTheReferenceDoes) {
  const DType t = GetParam();
  for (const Grid& g : grids_of(t))
    for (const Kind kind : all_kinds)
      for (const std::size_t count : counts_of(kind)) {
        SCOPED_TRACE(describe(t, g, kind, count));
        const Array x = sample(t, kind, count);
        const Array y = sample(t, kind, count, 2);
        const Array constant = sample(t, Kind::constant, count);
        const auto on = [&](Target target) {
          const OnTarget guard(target);
          return run(x, y, constant, g);
        };
        const Results expected = on(Target::scalar);
        for (const Target target : fast_targets()) {
          SCOPED_TRACE(slice::name_of(target));
          compare(expected, on(target));
          if (HasFailure()) return;
        }
      }
}

/// Sums of arrays whose exceptions and predictors differ.
TEST_P(SliceTargets, AddUnlikeArraysAsTheReferenceDoes) {
  const DType t = GetParam();
  constexpr std::size_t count = 2400;
  for (const Grid& g : grids_of(t))
    for (std::size_t k = 0; k < all_kinds.size(); ++k)
      for (const std::size_t other : {k + 1, k + 5}) {
        if (sanitized && other == k + (k % 2 == 0 ? 1 : 5)) continue;
        const Kind a = all_kinds[k];
        const Kind b = all_kinds[other % all_kinds.size()];
        SCOPED_TRACE(describe(t, g, a, count) + " + " + std::string(name_of(b)));
        const Array x = sample(t, a, count);
        const Array y = sample(t, b, count);
        const auto on = [&](Target target) {
          const OnTarget guard(target);
          return run(x, y, sample(t, Kind::zeros, count), g);
        };
        const Results expected = on(Target::scalar);
        for (const Target target : fast_targets()) {
          SCOPED_TRACE(slice::name_of(target));
          compare(expected, on(target));
          if (HasFailure()) return;
        }
      }
}

/// Frames of `n` arrays of a kind; every third of another one.
std::vector<Outcome> several(DType t, const Grid& g, Kind kind, Kind third, std::size_t count, std::size_t n) {
  std::vector<Outcome> frames;
  for (std::size_t i = 0; i < n; ++i) frames.push_back(encoded(sample(t, i % 3 == 2 ? third : kind, count, i + 2), g));
  return frames;
}

/// In one pass what adding one after another gives on the reference, with local elements and without.
TEST_P(SliceTargets, AddSeveralAsOneAfterAnother) {
  const DType t = GetParam();
  constexpr std::size_t count = 2 * 2048 + 300;
  std::size_t turn = 0;
  for (const Grid& g : grids_of(t))
    for (const Kind kind : all_kinds)
      for (const Kind third : {kind, all_kinds[++turn % all_kinds.size()], Kind::constant}) {
        if (sanitized && turn % 3 != 0) continue;  // the reference is slow there; every kind's turn comes on some grid
        const std::size_t n = std::array{2U, 3U, 5U, 7U, 8U}[turn % 5];
        SCOPED_TRACE(describe(t, g, kind, count) + " and " + std::string(name_of(third)) + ", " + std::to_string(n));
        const Array x = sample(t, kind, count);
        std::vector<Outcome> frames = several(t, g, kind, third, count, n);
        for (const Array* local : {&x, static_cast<const Array*>(nullptr)}) {
          const auto on = [&](Target target) {
            const OnTarget guard(target);
            return target == Target::scalar ? summed_in_turn(local, x, frames) : summed(local, x, frames);
          };
          const Outcome expected = on(Target::scalar);
          for (const Target target : fast_targets())
            ASSERT_EQ(expected, on(target)) << slice::name_of(target) << (local != nullptr ? ", local too" : "");
          std::swap(frames[0], frames[n - 1]);
        }
      }
}

/// A chunk that is all fill value counts as zeros in a sum, for the choice of its predictor too.
TEST_P(SliceTargets, AddAnArrayThatIsAllFill) {
  const DType t = GetParam();
  if (!is_float(t)) return;
  constexpr std::size_t count = 2 * 2048;
  const Grid g = make_grid(t, t == DType::bf16 ? 2e-2 : 1e-2, 1);
  const Array x = all_fill(t, count);
  const Outcome b = encoded(white_noise(t, count), g);
  const auto on = [&](Target target) {
    const OnTarget guard(target);
    return std::pair(encode_added(x, b), summed(&x, x, {b, b}));
  };
  const auto expected = on(Target::scalar);
  ASSERT_EQ(expected.first.code, Code::ok);
  for (const Target target : fast_targets()) EXPECT_EQ(expected, on(target)) << slice::name_of(target);
}

/// Noise, a walk or a curve, with land in the same places whichever it is. `which`: for each chunk in turn.
Array with_land(DType t, std::size_t count, std::array<int, 3> which, double fill) {
  Array x(t, count);
  Random noise(31), land(32);
  double walk = 0;
  std::size_t left = 100;  // of the land that the array begins with
  for (std::size_t i = 0; i < count; ++i) {
    if (left == 0 && land.below(60) == 0) left = land.below(3) == 0 ? 1 : land.below(200);
    walk += noise.symmetric() / 50 - walk / 1000;
    const double along = static_cast<double>(i % 2048) / 2048;
    const double value =
        std::array{noise.symmetric() * 0.9, walk, along * along * 0.8}[static_cast<std::size_t>(which[i / 2048 % 3])];
    x.set_value(i, left != 0 ? fill : value);
    left -= left != 0 ? 1 : 0;
  }
  return x;
}

/// One fill value in each, in the same places, and predictors of every pair.
TEST_P(SliceTargets, AddUnlikeArraysWithTheSameLand) {
  const DType t = GetParam();
  if (!is_float(t)) return;
  constexpr std::size_t count = 6 * 2048 + 100;
  const Grid g = make_grid(t, t == DType::f32 || t == DType::f64 ? 1e-4 : 1e-2, 1);
  for (const std::array<int, 3> other : {std::array{0, 1, 2}, {1, 2, 0}, {2, 0, 1}})
    for (const double fill : {60000.0, -60000.0, 0.0}) {  // a sum of 0, and no land in the other
      const Array x = with_land(t, count, {0, 1, 2}, 60000);
      const Array y = with_land(t, count, other, fill);
      const auto on = [&](Target target) {
        const OnTarget guard(target);
        return run(x, y, all_fill(t, count), g);
      };
      const Results expected = on(Target::scalar);
      ASSERT_EQ(expected.sum.code, Code::ok);
      for (const Target target : fast_targets()) {
        SCOPED_TRACE(slice::name_of(target));
        compare(expected, on(target));
      }
    }
}

/// On a grid of integers: noise, a walk or a curve, for each chunk in turn, the steps of every block of another size,
/// up to 2^most, or nothing.
Array of_all_widths(DType t, std::size_t count, std::array<int, 3> which, int most, std::uint64_t seed) {
  Array x(t, count);
  Random random(seed);
  const double limit = std::ldexp(1.0, most);
  double q = 0;
  double slope = 0;
  double size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool sampled = i / 64 % 8 == 4;  // these blocks tell what the predictor is
    if (i % 64 == 0)
      size = random.below(3) == 0 ? 0 : std::ldexp(1.0, static_cast<int>(random.below(static_cast<std::size_t>(most))));
    const double step = random.symmetric() * (sampled ? 3 : size);
    const int way = which[i / 2048 % 3];
    slope = way == 2 ? slope * 0.97 + step : step;
    q = way == 0 ? step : q + slope;
    if (std::fabs(q) > limit) q = slope = 0;
    x.set_value(i, is_float(t) ? std::round(q) : std::round(q) / 1000);
  }
  return x;
}

Array negative(const Array& x) {
  Array y(x.dtype, x.count);
  for (std::size_t i = 0; i < x.count; ++i) y.set_value(i, -x.value(i));
  return y;
}

TEST_P(SliceTargets, AddUnlikeArraysOfAllWidths) {
  const DType t = GetParam();
  constexpr std::size_t count = 9 * 2048 + 100;
  for (const int most : {4, 7, 10, 15, 20, 28}) {
    if (is_float(t) && most > (size_of(t) == 2 ? 7 : 20)) continue;
    const Grid g = make_grid(t, is_float(t) ? 0.5 : 0, 1 << most);
    for (const std::array<int, 3> other : {std::array{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}) {
      const Array x = of_all_widths(t, count, {0, 1, 2}, most, 7);
      const Array y = of_all_widths(t, count, other, most, 8);
      const auto on = [&](Target target) {
        const OnTarget guard(target);
        const Outcome fx = encoded(x, g);
        const Outcome fy = encoded(y, g);
        const std::vector<Outcome> several{fx, fy, fy, fx};
        std::vector<Outcome> sums{added(x, fx, fy), added(x, fy, fx)};
        const auto sum = [&](const Array* local, const std::vector<Outcome>& frames) {
          sums.push_back(target == Target::scalar ? summed_in_turn(local, x, frames) : summed(local, x, frames));
        };
        sum(&x, several);
        sum(nullptr, several);
        if (is_float(t)) sum(nullptr, {fx, encoded(negative(x), g), fy});  // a constant has lost its predictor
        return sums;
      };
      const auto expected = on(Target::scalar);
      ASSERT_EQ(expected[0].code, Code::ok);
      for (const Target target : fast_targets())
        EXPECT_EQ(expected, on(target)) << slice::name_of(target) << ", " << most;
    }
  }
}

TEST_P(SliceTargets, DoNotCareForAlignment) {
  const DType t = GetParam();
  constexpr std::size_t count = 2 * 2048 + 77;
  for (const Grid& g : grids_of(t))
    for (const Target target : fast_targets()) {
      const OnTarget guard(target);
      SCOPED_TRACE(slice::name_of(target));
      const Array x = sample(t, Kind::mixed, count);
      const Outcome expected = encoded(x, g);
      const Array y = decoded(x, expected);
      for (const std::size_t offset : {1U, 2U, 4U, 7U}) {
        const Array moved = sample(t, Kind::mixed, count, 1, offset);
        std::vector<std::uint8_t> out(frame::capacity(t, count) + offset);
        const frame::MutBytes to = frame::MutBytes(out).subspan(offset);
        const std::size_t n = frame::encode(moved.view(), g, to);
        ASSERT_TRUE(n == expected.frame.size() && std::memcmp(to.data(), expected.frame.data(), n) == 0);
        Array back(t, count, offset);
        frame::decode(to.first(n), back.view());
        ASSERT_TRUE(y == back);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(AllDtypes, SliceTargets, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

/// Large outputs are written past the caches, at any alignment.
TEST(SliceTargetsLarge, DecodeAsTheReferenceDoes) {
  constexpr std::size_t count = (std::size_t{4} << 20) / 4 + 5000;
  const Array x = sample(DType::f32, Kind::fill_runs, count);
  const Outcome f = encoded(x, make_grid(DType::f32, 1e-3, 1.3));
  const auto on = [&](Target target, std::size_t offset) {
    const OnTarget guard(target);
    return decoded(x, f, 1, 1, offset);
  };
  const Array expected = on(Target::scalar, 0);
  for (const Target target : fast_targets())
    for (const std::size_t offset : {0U, 4U, 9U})
      EXPECT_TRUE(expected == on(target, offset)) << slice::name_of(target) << " at offset " << offset;
}

/// A part of something large is written past the caches, too; so is what is encoded just then.
TEST(SliceTargetsLarge, DecodePartsAsTheReferenceDoes) {
  constexpr std::size_t count = 3 * 2048 + 77;
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::i32})
    for (const Grid& g : grids_of(t)) {
      const Array x = sample(t, Kind::mixed, count);
      const Outcome f = encoded(x, g);
      const Array expected = decoded(x, f);
      for (const Target target : fast_targets())
        for (const std::size_t offset : {0U, 4U, 9U}) {
          const OnTarget guard(target);
          Array y(t, count, offset);
          frame::decode(f.frame, y.view(), 1, 1, std::size_t{1} << 40);
          Array again(t, count, offset);
          const Outcome same = outcome_of(frame::capacity(t, count), [&](frame::MutBytes out) {
            return frame::encode_decode(slice_codec(), x.view(), g, out, again.view(), 1, std::size_t{1} << 40);
          });
          EXPECT_TRUE(expected == y && f == same && expected == again)
              << describe(t, g, Kind::mixed, count) << ", " << slice::name_of(target) << " at offset " << offset;
        }
    }
}

}  // namespace
}  // namespace laconic::test
