// Damaged streams, emulated: the device refuses what the CPU refuses, makes the same of what passes, and reads and
// writes nothing out of bounds (which the sanitizers see, since every buffer is a heap block of its own).
#include <gtest/gtest.h>

#include "gpu/emulated.h"
#include "support/patched_crc.h"
#include "support/sanitized.h"

namespace laconic::test::emulated_hostile_test {
namespace {

constexpr auto too_many_terms = static_cast<std::uint32_t>(gpu::Fault::too_many_terms);

/// Some bits of the table or the chunks are others; sometimes whole bytes.
std::vector<std::uint8_t> damaged(const std::vector<std::uint8_t>& frame, Random& random) {
  constexpr std::size_t header = frame::header_bytes;
  std::vector<std::uint8_t> d = frame;
  // Most of what can go wrong is decided in the first bytes of a chunk.
  const std::size_t reach = random.below(2) == 0 ? d.size() - header : std::min<std::size_t>(d.size() - header, 120);
  const std::size_t flips = 1 + random.below(2) * random.below(4);
  for (std::size_t i = 0; i < flips; ++i) {
    const std::size_t at = header + random.below(reach);
    d[at] = random.below(8) == 0 ? static_cast<std::uint8_t>(random.bits())
                                 : static_cast<std::uint8_t>(d[at] ^ 1U << random.below(8));
  }
  patch_checksum(d.data(), d.size());
  return d;
}

struct Tally {
  int taken = 0;
  int refused = 0;
};

void expect_same_elements(const Array& like, const std::vector<std::uint8_t>& frame, const Grid& g,
                          std::uint32_t operands, Tally& tally) {
  Array expected(like.dtype, like.count);
  bool refused = false;
  try {
    frame::decode(frame, expected.view());
  } catch (const Error&) {
    refused = true;
  }
  (refused ? tally.refused : tally.taken) += 1;
  Array got(like.dtype, like.count);
  const std::uint32_t faults = emulated_decode(frame, g, operands, 1, got);
  if (faults == too_many_terms) return;  // exact sums longer than the device takes
  ASSERT_EQ(refused, faults != 0);
  if (!refused) {
    ASSERT_TRUE(expected == got);
  }
}

void expect_same_sum(const Array& x, const std::vector<std::uint8_t>& frame, const std::vector<std::uint8_t>& other,
                     const Grid& g, std::uint32_t operands) {
  const Outcome sum = added(x, {Code::ok, frame}, {Code::ok, other});
  const Emulated got = emulated_sum(x, nullptr, {{&frame, g, operands}, {&other, g, 1}});
  if (got.faults == too_many_terms) return;
  ASSERT_EQ(sum.code != Code::ok, got.faults != 0);
  ASSERT_TRUE(sum.frame == got.frame) << "sum";
  const Outcome fused = encode_added(x, {Code::ok, frame});
  const Emulated got_fused = emulated_sum(x, &x, {{&frame, g, operands}});
  if (got_fused.faults == too_many_terms) return;
  ASSERT_EQ(fused.code != Code::ok, got_fused.faults != 0);
  ASSERT_TRUE(fused.frame == got_fused.frame) << "elements + frame";
}

class GpuHostile : public testing::TestWithParam<DType> {};

TEST_P(GpuHostile, StreamsAreReadAsOnTheCpu) {
  const DType t = GetParam();
  Random random(7);
  Tally tally;
  const double far = t == DType::f64 ? 1e-11 : 1e-2;  // integers of 64 bits, too
  for (const double bound : {1e-2, far, 0.0})
    for (const Kind kind : {Kind::smooth, Kind::quadratic, Kind::noise, Kind::fill_runs, Kind::sparse_outliers,
                            Kind::mixed, Kind::random_bits})
      for (const std::size_t count : {std::size_t{300}, std::size_t{2048}, std::size_t{4500}}) {
        const Grid g = make_grid(t, bound, 1.3);
        SCOPED_TRACE(describe(t, g, kind, count));
        const Array x = sample(t, kind, count);
        const Outcome one = encoded(x, g);
        for (int i = 0; i < (sanitized ? 6 : 12); ++i) {
          const std::vector<std::uint8_t> hostile = damaged(one.frame, random);
          ASSERT_NO_FATAL_FAILURE(expect_same_elements(x, hostile, g, 1, tally)) << "damage " << i;
          if (g.lossless() || i % 3 != 0) continue;
          ASSERT_NO_FATAL_FAILURE(expect_same_sum(x, hostile, one.frame, g, 1)) << "damage " << i;
        }
        if (g.lossless()) continue;
        const Outcome two = added(x, one, one);
        for (int i = 0; i < (sanitized ? 4 : 8); ++i) {
          const std::vector<std::uint8_t> hostile = damaged(two.frame, random);
          ASSERT_NO_FATAL_FAILURE(expect_same_elements(x, hostile, g, 2, tally)) << "damage " << i << " to a sum";
          if (i % 3 != 0) continue;
          ASSERT_NO_FATAL_FAILURE(expect_same_sum(x, hostile, one.frame, g, 2)) << "damage " << i << " to a sum";
        }
      }
  EXPECT_GT(tally.taken, 50);
  EXPECT_GT(tally.refused, 50);
}

/// The header is compared with what was announced.
TEST_P(GpuHostile, OtherFramesAreRefused) {
  const DType t = GetParam();
  const Grid g = make_grid(t, 1e-2, 1.3);
  const Array x = sample(t, Kind::smooth, 3000);
  const Outcome f = encoded(x, g);
  Array y(t, 3000);
  EXPECT_EQ(emulated_decode(f.frame, g, 1, 1, y), 0U);
  EXPECT_NE(emulated_decode(f.frame, make_grid(t, 2e-2, 1.3), 1, 1, y), 0U);
  EXPECT_NE(emulated_decode(f.frame, g, 2, 1, y), 0U);
  Array longer(t, 3001);
  EXPECT_NE(emulated_decode(f.frame, g, 1, 1, longer), 0U);
  for (const std::size_t n : {f.frame.size() - 4, frame::header_bytes + 4, frame::header_bytes}) {
    const std::vector<std::uint8_t> shorter(f.frame.begin(), f.frame.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_NE(emulated_decode(shorter, g, 1, 1, y), 0U) << n << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Floats, GpuHostile, testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

/// A chunk of few bytes: its first block has residuals of up to `planes` bits, and all have steps of `slope`.
Array short_chunk(const Grid& g, int slope, int planes, Random& random) {
  Array x(g.dtype, 2048);
  double at = 0;
  for (std::size_t i = 0; i < x.count; ++i) {
    if (i > 0 && i < 64) at += std::floor(std::ldexp(random.symmetric(), planes - 1));
    x.set_value(i, (at + slope * static_cast<double>(i)) * g.step);
  }
  return x;
}

/// Each bit of such chunks in turn is another one; among them those by which a chain does not start at its base.
TEST(GpuHostileChunk, IsReadAsOnTheCpuWhicheverBitIsDamaged) {
  const Grid g = make_grid(DType::f32, 1e-5, 1.3);
  Random random(11);
  Tally tally;
  for (const int slope : {0, 3})  // the predictor is first, or second
    for (const int planes : {4, 11}) {
      SCOPED_TRACE("slope " + std::to_string(slope) + ", " + std::to_string(planes) + " planes");
      const Array x = short_chunk(g, slope, planes, random);
      const Outcome one = encoded(x, g);
      for (std::size_t bit = 8 * frame::header_bytes; bit < 8 * one.frame.size(); bit += sanitized ? 5 : 1) {
        std::vector<std::uint8_t> hostile = one.frame;
        hostile[bit / 8] = static_cast<std::uint8_t>(hostile[bit / 8] ^ 1U << bit % 8);
        patch_checksum(hostile.data(), hostile.size());
        ASSERT_NO_FATAL_FAILURE(expect_same_elements(x, hostile, g, 1, tally)) << "bit " << bit;
        ASSERT_NO_FATAL_FAILURE(expect_same_sum(x, hostile, one.frame, g, 1)) << "bit " << bit;
      }
    }
  EXPECT_GT(tally.taken, 50);
  EXPECT_GT(tally.refused, 50);
}

}  // namespace
}  // namespace laconic::test::emulated_hostile_test
