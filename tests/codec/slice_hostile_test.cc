// Frames that no encoder writes, with a right checksum: residuals under marks and behind the last value, grid points
// listed as fill values. Every target refuses them, or makes the same of them as the reference.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "codec/slice/layout.h"
#include "codec/slice/slice.h"
#include "codec/slice_cases.h"
#include "frame/layout.h"
#include "support/patched_crc.h"
#include "support/sanitized.h"

namespace laconic::test::slice_hostile_test {
namespace {

using slice::Target;

/// One bit of the chunks or of their sizes is another, sometimes a few are.
Outcome damaged(const Outcome& f, Random& random) {
  constexpr std::size_t header = frame::header_bytes;
  Outcome d = f;
  const std::size_t flips = 1 + random.below(2) * random.below(4);
  for (std::size_t i = 0; i < flips; ++i) {
    const std::size_t at = header + random.below(d.frame.size() - header);
    d.frame[at] = static_cast<std::uint8_t>(d.frame[at] ^ 1U << random.below(8));
  }
  patch_checksum(d.frame.data(), d.frame.size());
  return d;
}

struct Results {
  Outcome values, sum, longer_sum, fused, of_many, fused_of_many;
  friend bool operator==(const Results&, const Results&) = default;
};

/// What a frame decodes to, or the code of the error instead of it.
Outcome values_of(const Array& like, const Outcome& f) {
  Outcome o;
  try {
    const Array y = decoded(like, f);
    o.frame.assign(y.data(), y.data() + y.size_bytes());
  } catch (const Error& e) {
    o.code = e.code();
  }
  return o;
}

Results run(const Array& x, const Outcome& hostile, const Outcome& other) {
  const Outcome values = values_of(x, hostile);
  const Outcome sum = added(x, hostile, other);
  const Outcome fused = encode_added(x, hostile);
  const std::vector<Outcome> terms = {other, hostile, other};
  const Outcome of_many = summed(nullptr, x, terms);
  const Outcome fused_of_many = summed(&x, x, terms);
  if (sum.code != Code::ok) return {values, sum, {}, fused, of_many, fused_of_many};
  return {values, sum, added(x, sum, hostile), fused, of_many, fused_of_many};
}

/// How many of the frames were taken.
int compare_with_reference(const Array& x, const Outcome& frame, const Outcome& other, std::uint64_t seed, int tries) {
  Random random(seed);
  int taken = 0;
  for (int i = 0; i < tries; ++i) {
    const Outcome hostile = damaged(frame, random);
    const auto on = [&](Target target) {
      const OnTarget guard(target);
      return run(x, hostile, other);
    };
    const Results expected = on(Target::scalar);
    taken += expected.sum.code == Code::ok ? 1 : 0;
    for (const Target target : fast_targets()) {
      EXPECT_TRUE(expected == on(target)) << slice::name_of(target) << ", damage " << i;
      if (testing::Test::HasFailure()) return taken;
    }
  }
  return taken;
}

constexpr int many_tries = sanitized ? 10 : 150;
constexpr int few_tries = sanitized ? 4 : 40;

class SliceHostile : public testing::TestWithParam<DType> {};

void sum_hostile_frames(DType t, const Grid& g, int tries) {
  for (const Kind kind : {Kind::fill_runs, Kind::smooth, Kind::quadratic, Kind::noise, Kind::mixed})
    for (const std::size_t count : {std::size_t{300}, std::size_t{2048}}) {
      SCOPED_TRACE(describe(t, g, kind, count));
      const Array x = sample(t, kind, count);
      const Outcome one = encoded(x, g);
      const Outcome two = added(x, one, one);
      int taken = compare_with_reference(x, one, one, 1, tries);
      taken += compare_with_reference(x, two, one, 2, tries);
      EXPECT_GT(taken, tries / 20) << "nothing was tested";
      if (testing::Test::HasFailure()) return;
    }
}

TEST_P(SliceHostile, FramesSumAsOnTheReference) {
  sum_hostile_frames(GetParam(), make_grid(GetParam(), 1e-2, 1.3), many_tries);
}

INSTANTIATE_TEST_SUITE_P(Floats, SliceHostile, testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

/// Integers of 64 bits: in all frames, or in sums alone.
TEST(SliceHostileWide, FramesSumAsOnTheReference) {
  sum_hostile_frames(DType::i64, make_grid(DType::i64, 0, 0), few_tries);
  sum_hostile_frames(DType::f64, make_grid(DType::f64, 1e-12, 1.3), few_tries);
  sum_hostile_frames(DType::f64, make_grid(DType::f64, 1.0 / (1 << 30), 1.3), few_tries);
}

/// In sums there is one NaN and one zero, whatever is stored.
TEST(SliceHostileSums, FillValuesOfSumsAreAsAddingLeavesThem) {
  for (const DType t : {DType::f32, DType::f64})
    for (const double bound : {1e-2, t == DType::f64 ? 1e-12 : 1e-4}) {
      Array x(t, 2048);
      for (std::size_t i = 0; i < x.count; ++i) x.set_bits(i, t == DType::f64 ? 0x7FF0ULL << 48 : 0x7F80ULL << 16);
      const Outcome one = encoded(x, make_grid(t, bound, 1.3));
      Outcome two = added(x, one, one);
      ASSERT_EQ(two.frame.size(), frame::header_bytes + 4 + 12) << "a single fill chunk";
      for (const std::uint64_t stored : {0x8000ULL << 48, 0xFFF8ULL << 48 | 1, 0x7FF0ULL << 48 | 1}) {
        std::memcpy(two.frame.data() + two.frame.size() - 8, &stored, 8);
        patch_checksum(two.frame.data(), two.frame.size());
        const auto on = [&](Target target) {
          const OnTarget guard(target);
          return std::pair{values_of(x, two), values_of(x, added(x, two, two))};
        };
        const auto expected = on(Target::scalar);
        ASSERT_EQ(expected.first.code, Code::ok);
        for (const Target target : fast_targets()) EXPECT_EQ(expected, on(target)) << slice::name_of(target);
      }
    }
}

/// A sum of one element that is an exception of so many terms. Each has 53 bits and begins seven above the one before,
/// so adding them leaves nearly as many.
Outcome sum_of_terms(const Outcome& like, std::uint8_t terms, int lowest, Random& random) {
  slice::Word word{.index_planes = 1, .dictionary = 2};
  const slice::Entry entry{.extra = slice::Extra::terms, .exact_units = 1U + 2U * terms};
  // An index of block 0, the dictionary, the entry, the plane of marks, and the count of terms.
  const std::array<std::uint32_t, 6> chunk = {word.pack(), 1, slice::code_extended << 8, entry.pack(), 0x0301, terms};
  Outcome f = like;
  const std::size_t bytes = sizeof chunk + std::size_t{8} * terms;
  const std::size_t at = frame::header_bytes + slice::table_bytes(1);
  f.frame.resize(at + bytes);
  slice::store(f.frame.data() + frame::at_bytes, std::uint64_t{f.frame.size()});
  slice::store(f.frame.data() + frame::header_bytes, static_cast<std::uint16_t>(bytes / 4));
  std::memcpy(f.frame.data() + at, chunk.data(), sizeof chunk);
  for (int i = 0; i < terms; ++i) {
    const std::uint64_t bits = random.bits() >> 11 | std::uint64_t{1} << 52 | 1;
    const double term = std::ldexp(static_cast<double>(bits), lowest + 7 * i);
    slice::store(f.frame.data() + at + sizeof chunk + 8 * i, term);
  }
  patch_checksum(f.frame.data(), f.frame.size());
  return f;
}

/// A byte counts the terms of an exception.
TEST(SliceHostileSums, OfMoreTermsThanAByteCountsAreRefused) {
  Array x(DType::f64, 1);
  const Outcome one = encoded(x, make_grid(DType::f64, 1e-2, 1.3));
  const Outcome two = added(x, one, one);
  Random random(1);
  const Outcome a = sum_of_terms(two, 255, -900, random);
  const Outcome b = sum_of_terms(two, 255, -898, random);
  const Outcome few = sum_of_terms(two, 20, -900, random);
  std::vector<Target> targets = fast_targets();
  targets.push_back(Target::scalar);
  for (const Target target : targets) {
    const OnTarget guard(target);
    ASSERT_EQ(values_of(x, a).code, Code::ok) << slice::name_of(target);
    EXPECT_EQ(added(x, a, b).code, Code::too_small) << slice::name_of(target);
    EXPECT_EQ(summed(nullptr, x, {a, b, few}).code, Code::too_small) << slice::name_of(target);
    EXPECT_EQ(values_of(x, added(x, a, few)).code, Code::ok) << slice::name_of(target);
  }
}

}  // namespace
}  // namespace laconic::test::slice_hostile_test
