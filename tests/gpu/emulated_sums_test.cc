// Sums of up to eight operands, emulated: integers that just fit their planes, in every number of planes, predictors
// that agree or do not, on grids that prove all, some or none of their integers. What the device makes are the bytes
// that the CPU comes to by adding one after another.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/emulated.h"
#include "support/patched_crc.h"
#include "support/sanitized.h"

namespace laconic::test::emulated_sums_test {
namespace {

/// How the integers of a chunk go on.
enum class Course { ends, opposite_ends, noise, walk, bends, constant };
constexpr std::size_t courses = 6;

/// A chunk of integers whose residuals need up to `planes` + 2 planes, those of `ends` just planes + 1 (none is the
/// predictor then).
void fill_chunk(Array& x, std::size_t begin, Course course, int planes, const Grid& g, Random& random) {
  const double reach = std::ldexp(1.0, planes);
  const double most = std::ldexp(1.0, g.qbits) - 1;
  const double level = std::floor(reach * random.symmetric());
  double q = 0;
  double slope = 0;
  for (std::size_t i = begin; i < std::min(begin + 2048, x.count); ++i) {
    const double step = std::floor(reach * random.symmetric());
    switch (course) {
      case Course::ends:
        q = i % 2 == 0 ? reach - 1 : -reach;
        break;
      case Course::opposite_ends:
        q = i % 2 == 0 ? 1 - reach : reach;
        break;
      case Course::noise:
        q = step;
        break;
      case Course::walk:
        q += std::abs(q + step) <= most ? step : -step;
        break;
      case Course::bends:
        slope = i % 64 == 0 ? 0 : slope + std::floor(step / 16);
        q += std::abs(q + slope) <= most ? slope : -slope;
        break;
      case Course::constant:
        q = level;
        break;
    }
    x.set_value(i, std::clamp(q, -most, most) * g.step);
  }
}

/// Integers up to which all are elements of the type, where the step is one.
int exact_bits(DType t) { return t == DType::bf16 ? 7 : t == DType::f16 ? 10 : 16; }

Grid grid_of(DType t) {
  Grid g = make_grid(t, t == DType::f16 ? 0x1p-6 : 0x1p-10, std::numeric_limits<double>::infinity());
  g.qbits = exact_bits(t) + 1;
  return g;
}

class GpuEmulatedSums : public testing::TestWithParam<DType> {
 protected:
  /// What the device makes of x (null: none) and frames of one operand each.
  static void expect_sum(const Array* x, const Array& like, const std::vector<Outcome>& frames, const Grid& g) {
    std::vector<EmulatedOperand> operands;
    operands.reserve(frames.size());
    for (const Outcome& f : frames) operands.push_back({&f.frame, g, 1});
    const Outcome expected = summed_in_turn(x, like, frames);
    const Emulated got = emulated_sum(like, x, operands);
    if (expected.code == Code::too_small) {  // more exact terms than a chunk has room for
      ASSERT_NE(got.faults, 0U);
      return;
    }
    ASSERT_EQ(expected.code, Code::ok);
    ASSERT_EQ(got.faults, 0U);
    ASSERT_TRUE(got.frame == expected.frame);
    Array y(like.dtype, like.count);
    const auto n = static_cast<std::uint32_t>(frames.size() + (x != nullptr ? 1 : 0));
    ASSERT_EQ(emulated_decode(expected.frame, g, n, 1, y), 0U);
    ASSERT_TRUE(decoded(like, expected) == y);
  }
  /// The arrays' sum, of streams only and with the first as elements.
  static void expect_sums(const std::vector<Array>& arrays, const Grid& g) {
    std::vector<Outcome> frames;
    for (const Array& x : arrays) {
      frames.push_back(encoded(x, g));
      const Emulated got = emulated_encode(x, g);
      ASSERT_EQ(got.faults, 0U);
      ASSERT_TRUE(got.frame == frames.back().frame);
    }
    {
      SCOPED_TRACE("streams");
      ASSERT_NO_FATAL_FAILURE(expect_sum(nullptr, arrays[0], frames, g));
    }
    SCOPED_TRACE("elements and streams");
    ASSERT_NO_FATAL_FAILURE(expect_sum(arrays.data(), arrays[0], {frames.begin() + 1, frames.end()}, g));
  }
  /// The first two arrays' sum, added to itself and to elements; and averages.
  static void expect_sums_of_sums(const std::vector<Array>& arrays, const Grid& g) {
    const Array& x = arrays[0];
    const Outcome sum = added(x, encoded(x, g), encoded(arrays[1], g));
    const EmulatedOperand operand{&sum.frame, g, 2};
    const Emulated twice = emulated_sum(x, nullptr, {operand, operand});
    ASSERT_EQ(twice.faults, 0U);
    ASSERT_TRUE(twice.frame == added(x, sum, sum).frame);
    const Emulated more = emulated_sum(x, &x, {operand});
    ASSERT_EQ(more.faults, 0U);
    ASSERT_TRUE(more.frame == encode_added(x, sum).frame);
    Array y(x.dtype, x.count);
    ASSERT_EQ(emulated_decode(sum.frame, g, 2, 2, y), 0U);
    ASSERT_TRUE(decoded(x, sum, 1, 2) == y);
    ASSERT_EQ(emulated_decode(twice.frame, g, 4, 3, y), 0U);
    ASSERT_TRUE(decoded(x, {Code::ok, twice.frame}, 1, 3) == y);
  }
};

/// Nothing overflows the planes that the sum is made in, and nothing is left.
TEST_P(GpuEmulatedSums, OfIntegersThatJustFit) {
  const DType t = GetParam();
  const Grid g = grid_of(t);
  ASSERT_TRUE(sum_fits(g, gpu::most_operands));
  Random random(1);
  for (const std::size_t operands : {2U, 3U, 4U, 5U, 8U})
    for (int planes = 0; planes <= exact_bits(t); planes += sanitized ? 3 : 1) {
      SCOPED_TRACE(std::to_string(operands) + " operands, " + std::to_string(planes) + " planes");
      std::vector<Array> arrays(operands, Array(t, 2048));
      for (Array& x : arrays) fill_chunk(x, 0, Course::ends, planes, g, random);
      ASSERT_NO_FATAL_FAILURE(expect_sums(arrays, g));
      // The elements need a plane more than the streams.
      fill_chunk(arrays[0], 0, Course::ends, std::min(planes + 1, exact_bits(t)), g, random);
      ASSERT_NO_FATAL_FAILURE(expect_sums(arrays, g));
      // One block only, and only its second half; it ends in a zero, so that the next one has no residuals.
      for (Array& x : arrays)
        for (std::size_t i = 0; i < 2048; ++i)
          if (i / 32 != 35 || i % 32 == 31) x.set_value(i, 0);
      ASSERT_NO_FATAL_FAILURE(expect_sums(arrays, g));
    }
}

TEST_P(GpuEmulatedSums, OfAnyCourses) {
  const DType t = GetParam();
  Random random(2);
  for (int turn = 0; turn < (sanitized ? 25 : 250); ++turn) {
    Grid g = grid_of(t);
    // As tight as it is, then tighter: fewer integers are proven, then none, and elements between two are exceptions.
    if (random.below(2) == 0) g.bound *= 1 - std::ldexp(1.0, -static_cast<int>(random.below(14)) - 2);
    const std::size_t operands = 2 + random.below(7);
    const bool alike = random.below(2) == 0;
    const bool between = random.below(4) == 0;
    SCOPED_TRACE("turn " + std::to_string(turn) + ", " + std::to_string(operands) + " operands");
    const LaneOrder order(turn % 32, turn % 2 == 0 ? 13 : 31);
    std::vector<Array> arrays(operands, Array(t, random.below(8) == 0 ? 3000 : 4096));
    for (std::size_t begin = 0; begin < arrays[0].count; begin += 2048) {
      auto course = static_cast<Course>(random.below(courses));
      auto planes = static_cast<int>(random.below(static_cast<std::size_t>(exact_bits(t)) + 1));
      const bool filled = random.below(8) == 0;
      for (Array& x : arrays) {
        if (!alike || random.below(8) == 0) course = static_cast<Course>(random.below(courses));
        if (random.below(4) == 0) planes = static_cast<int>(random.below(static_cast<std::size_t>(exact_bits(t)) + 1));
        fill_chunk(x, begin, course, planes, g, random);
        for (std::size_t i = begin; i < std::min(begin + 2048, x.count); ++i) {
          if (between) x.set_value(i, x.value(i) + g.step * (random.uniform() - 0.5));
          if (filled && i % 64 > 40) x.set_value(i, 60000);
        }
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_sums(arrays, g));
  }
}

/// Which positions of a chunk are exceptions.
std::vector<bool> draw_marks(Random& random) {
  std::vector<bool> marks(2048);
  const std::size_t runs = random.below(6);
  for (std::size_t i = 0; i < runs; ++i) {
    const std::size_t begin = random.below(3) == 0 ? 0 : random.below(marks.size());
    const std::size_t length = 1 + random.below(random.below(2) == 0 ? 70 : 900);
    std::fill_n(marks.begin() + static_cast<std::ptrdiff_t>(begin), std::min(length, marks.size() - begin), true);
  }
  if (random.below(8) == 0) marks.assign(marks.size(), true);  // but for one, perhaps
  if (random.below(2) == 0) marks[random.below(marks.size())] = random.below(2) == 0;
  return marks;
}

/// A value that is no grid point; sums of some have one term, of others two, or are no numbers.
double draw_fill(DType t, Random& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double huge = t == DType::f64 ? 1e300 : t == DType::f16 ? 65504 : 1e30;
  const double tiny = t == DType::f16 ? 0x1p-24 : 1e-30;
  const std::array fills = {60000.0, -60000.0, huge, -huge, 0.7 * huge, tiny, infinity, -infinity, std::nan("")};
  return fills[random.below(fills.size())];
}

/// Land that all operands have, or nearly all; of one value, or of one in each.
TEST_P(GpuEmulatedSums, OfMarkedPositions) {
  const DType t = GetParam();
  Random random(3);
  for (int turn = 0; turn < (sanitized ? 25 : 250); ++turn) {
    Grid g = grid_of(t);
    g.bound = std::ldexp(g.step, -50);  // nothing between two grid points
    const std::size_t operands = 2 + random.below(random.below(2) == 0 ? 3 : 7);
    const bool alike = random.below(2) == 0;
    SCOPED_TRACE("turn " + std::to_string(turn) + ", " + std::to_string(operands) + " operands");
    const LaneOrder order(turn % 32, turn % 2 == 0 ? 13 : 31);
    std::vector<Array> arrays(operands, Array(t, random.below(8) == 0 ? 3000 : 4096));
    for (std::size_t begin = 0; begin < arrays[0].count; begin += 2048) {
      auto course = static_cast<Course>(random.below(courses));
      const auto planes = static_cast<int>(random.below(static_cast<std::size_t>(exact_bits(t)) + 1));
      const std::vector<bool> common = draw_marks(random);
      double fill = draw_fill(t, random);
      for (Array& x : arrays) {
        if (!alike) course = static_cast<Course>(random.below(courses));
        if (random.below(4) == 0) fill = draw_fill(t, random);
        fill_chunk(x, begin, course, planes, g, random);
        std::vector<bool> marks = common;
        if (random.below(16) == 0) marks[random.below(marks.size())].flip();
        if (random.below(16) == 0) marks.assign(marks.size(), false);
        for (std::size_t i = begin; i < std::min(begin + 2048, x.count); ++i)
          if (marks[i - begin]) x.set_value(i, fill);
        if (random.below(16) == 0) x.set_value(begin, draw_fill(t, random));
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_sums(arrays, g));
    ASSERT_NO_FATAL_FAILURE(expect_sums_of_sums(arrays, g));
  }
}

/// Sums of several exceptions as unlike as the type has them, which are operands themselves, in any place.
TEST_P(GpuEmulatedSums, OfSumsOfManyTerms) {
  const DType t = GetParam();
  Grid g = grid_of(t);
  g.bound = std::ldexp(g.step, -50);
  const int reach = t == DType::f64 ? 200 : t == DType::f16 ? 13 : 90;
  Random random(5);
  for (int turn = 0; turn < (sanitized ? 3 : 20); ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn));
    std::vector<Outcome> frames;
    Array x(t, 700);
    for (int j = 0; j < 7; ++j) {
      for (std::size_t i = 0; i < x.count; ++i) {
        const int e = static_cast<int>(random.below(static_cast<std::size_t>(2 * reach + 1))) - reach;
        x.set_value(i, random.below(3) != 0 ? std::ldexp(random.symmetric(), e) : 1);
      }
      frames.push_back(encoded(x, g));
    }
    for (std::size_t n = 2; n < 6; ++n) {
      const auto some = frames.begin() + static_cast<std::ptrdiff_t>(n);
      const Outcome sum = summed_in_turn(nullptr, x, {frames.begin(), some});
      const EmulatedOperand held{&sum.frame, g, static_cast<std::uint32_t>(n)};
      const EmulatedOperand one{&some->frame, g, 1}, other{&(some + 1)->frame, g, 1};
      const Outcome first = added(x, sum, *some), second = added(x, *some, sum);
      ASSERT_TRUE(emulated_sum(x, nullptr, {held, one}).frame == first.frame);
      ASSERT_TRUE(emulated_sum(x, nullptr, {one, held}).frame == second.frame);
      ASSERT_TRUE(emulated_sum(x, nullptr, {held, one, other}).frame == added(x, first, *(some + 1)).frame);
      ASSERT_TRUE(emulated_sum(x, nullptr, {other, one, held}).frame ==
                  added(x, added(x, *(some + 1), *some), sum).frame);
      ASSERT_TRUE(emulated_sum(x, &x, {held, one}).frame == added(x, encode_added(x, sum), *some).frame);
    }
  }
}

/// Positions that are marked, but not held, as no encoder writes them: the last run of marks ends elsewhere.
TEST_P(GpuEmulatedSums, OfPositionsThatAreNotHeld) {
  const DType t = GetParam();
  const Grid g = grid_of(t);
  Random random(4);
  for (int turn = 0; turn < (sanitized ? 25 : 250); ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn));
    const auto course = static_cast<Course>(random.below(courses - 1));
    const std::size_t block = random.below(3) == 0 ? 0 : random.below(32);
    const std::size_t at = random.below(2) == 0 ? 0 : random.below(60);
    const auto bit = static_cast<std::uint8_t>(1U << random.below(8));
    std::vector<Outcome> frames(2 + random.below(3));
    Array x(t, 2048);
    for (Outcome& f : frames) {
      fill_chunk(x, 0, course, 6, g, random);
      for (std::size_t i = at; i < at + 4; ++i) x.set_value(64 * block + i, 60000);
      // So that no other block has sparse bytes behind those of its marks.
      for (std::size_t i = 64 * block + 64; i < x.count; ++i) x.set_value(i, x.value(64 * block + 63));
      f = encoded(x, g);
      std::size_t last = f.frame.size() - 1;  // of the plane of marks, which comes before padding only
      while (f.frame[last] == 0) --last;
      if (f.frame[last] != bit) f.frame[last] ^= bit;
      patch_checksum(f.frame.data(), f.frame.size());
    }
    ASSERT_NO_FATAL_FAILURE(expect_sum(nullptr, x, frames, g));
  }
}

INSTANTIATE_TEST_SUITE_P(Floats, GpuEmulatedSums, testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

}  // namespace
}  // namespace laconic::test::emulated_sums_test
