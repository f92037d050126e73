// The kernels' source, emulated, writes the CPU codec's bytes and reads its values: all float dtypes, bounds, kinds of
// data and awkward counts, in several orders of a step's lanes.
#include "gpu/emulated.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "support/patched_crc.h"
#include "support/sanitized.h"

namespace laconic::test::emulated_test {
namespace {

constexpr std::array float_dtypes = {DType::f32, DType::f64, DType::f16, DType::bf16};
constexpr std::array<std::size_t, 11> counts = {0, 1, 2, 31, 63, 64, 65, 2047, 2048, 2049, 5000};

/// Also a grid so loose that whole chunks are constant, and one whose integers need more than 16 planes.
std::vector<Grid> all_grids_of(DType t) {
  std::vector<Grid> g = grids_of(t);
  g.push_back(make_grid(t, 0.3, 1.3));
  g.push_back(make_grid(t, 2e-7, 1.3));
  return g;
}
std::vector<Grid> stepped_grids_of(DType t) {
  std::vector<Grid> g = all_grids_of(t);
  std::erase_if(g, [](const Grid& one) { return one.lossless(); });
  return g;
}

void expect_same_frame(const std::vector<std::uint8_t>& expected, const Emulated& got) {
  ASSERT_EQ(got.faults, 0U);
  ASSERT_EQ(expected.size(), got.frame.size());
  const auto differ = std::mismatch(expected.begin(), expected.end(), got.frame.begin());
  ASSERT_TRUE(differ.first == expected.end()) << "at byte " << (differ.first - expected.begin());
}

class GpuEmulated : public testing::TestWithParam<DType> {};

TEST_P(GpuEmulated, EncodesAndDecodesAsTheCpu) {
  const DType t = GetParam();
  for (const Grid& g : all_grids_of(t))
    for (const Kind kind : all_kinds)
      for (const std::size_t count : counts) {
        SCOPED_TRACE(describe(t, g, kind, count));
        const LaneOrder order(static_cast<int>(count), count % 3 == 0 ? 31 : 13);
        const Array x = sample(t, kind, count);
        const Outcome expected = encoded(x, g);
        ASSERT_NO_FATAL_FAILURE(expect_same_frame(expected.frame, emulated_encode(x, g)));
        for (const std::uint32_t divisor : {1U, 3U}) {
          if (divisor != 1 && g.lossless()) continue;
          Array y(t, count);
          ASSERT_EQ(emulated_decode(expected.frame, g, 1, divisor, y), 0U);
          ASSERT_TRUE(decoded(x, expected, 1, divisor) == y) << "divisor " << divisor;
        }
      }
}

/// Blocks whose planes are all sparse, with more bytes than a byte counts.
TEST(GpuEmulatedBlocks, OfManySparseBytes) {
  const Grid g = make_grid(DType::f64, 1e-14, 1.3);
  ASSERT_TRUE(slice::params_for(g, 1).wide);
  Random random(5);
  Array x(DType::f64, 4096);
  for (std::size_t i = 0; i < x.count; ++i) x.set_value(i, i % 64 < 24 ? 0.5 : random.symmetric());
  const Outcome expected = encoded(x, g);
  ASSERT_NO_FATAL_FAILURE(expect_same_frame(expected.frame, emulated_encode(x, g)));
  Array y(x.dtype, x.count);
  ASSERT_EQ(emulated_decode(expected.frame, g, 1, 1, y), 0U);
  ASSERT_TRUE(decoded(x, expected) == y);
}

TEST_P(GpuEmulated, EncodesToSlots) {
  const DType t = GetParam();
  constexpr std::size_t count = 3 * 2048 + 100;
  for (const Grid& g : all_grids_of(t))
    for (const Kind kind : {Kind::smooth, Kind::noise, Kind::fill_runs, Kind::random_bits, Kind::mixed}) {
      SCOPED_TRACE(describe(t, g, kind, count));
      const Array x = sample(t, kind, count);
      const EmulatedSlots slots = emulated_encode_slots(x, g);
      ASSERT_EQ(slots.faults, 0U);
      const Outcome expected = encoded(x, g);
      std::size_t at = frame::header_bytes + slice::table_bytes(count);
      for (std::size_t c = 0; c < slice::chunks_of(count); ++c) {
        const std::size_t n = 4 * std::size_t{slots.sizes[c]};
        ASSERT_LE(at + n, expected.frame.size());
        ASSERT_EQ(std::memcmp(&expected.frame[at], &slots.slots[c * slots.slot_bytes], n), 0) << "chunk " << c;
        at += n;
      }
      ASSERT_EQ(at, expected.frame.size());
      Array y(t, count);
      ASSERT_EQ(emulated_decode_slots(slots, g, y), 0U);
      ASSERT_TRUE(decoded(x, expected) == y);
    }
}

/// One element of a chunk is the last integer of the grid, or the first one beyond.
TEST_P(GpuEmulated, EncodesTheEndsOfTheGridAsTheCpu) {
  const DType t = GetParam();
  for (const double tighter : {1.0, 0.999}) {  // all integers are proven, or few
    Grid g = make_grid(t, 1e-2, std::numeric_limits<double>::infinity());
    g.qbits = 6;
    g.bound *= tighter;
    for (const double q : {-65.0, -64.0, 63.0, 64.0}) {
      SCOPED_TRACE(q);
      Array x(t, 2048);
      x.set_value(1000, q * g.step);
      ASSERT_NO_FATAL_FAILURE(expect_same_frame(encoded(x, g).frame, emulated_encode(x, g)));
    }
  }
}

/// A tile has eight chunks.
TEST_P(GpuEmulated, PlacesTheChunksOfSeveralTiles) {
  const DType t = GetParam();
  constexpr std::size_t count = 17 * 2048 + 100;
  const Grid g = make_grid(t, t == DType::bf16 ? 2e-2 : 1e-2, 1.3);
  for (const Kind kind : {Kind::smooth, Kind::mixed}) {
    SCOPED_TRACE(describe(t, g, kind, count));
    const Array x = sample(t, kind, count);
    const Outcome a = encoded(x, g);
    ASSERT_NO_FATAL_FAILURE(expect_same_frame(a.frame, emulated_encode(x, g)));
    ASSERT_NO_FATAL_FAILURE(
        expect_same_frame(added(x, a, a).frame, emulated_sum(x, nullptr, {{&a.frame, g, 1}, {&a.frame, g, 1}})));
  }
}

/// Everything that can be added to two arrays' frames.
void compare_sums(const Array& x, const Array& y, const Grid& g) {
  const Outcome a = encoded(x, g);
  const Outcome b = encoded(y, g);
  const Outcome sum = added(x, a, b);
  ASSERT_EQ(sum.code, Code::ok);
  {
    SCOPED_TRACE("add");
    ASSERT_NO_FATAL_FAILURE(
        expect_same_frame(sum.frame, emulated_sum(x, nullptr, {{&a.frame, g, 1}, {&b.frame, g, 1}})));
  }
  for (const std::uint32_t divisor : {1U, 2U}) {
    Array back(x.dtype, x.count);
    ASSERT_EQ(emulated_decode(sum.frame, g, 2, divisor, back), 0U);
    ASSERT_TRUE(decoded(x, sum, 1, divisor) == back) << "decode of a sum, divisor " << divisor;
  }
  const Outcome fused = encode_added(y, a);
  {
    SCOPED_TRACE("elements + frame");
    ASSERT_NO_FATAL_FAILURE(expect_same_frame(fused.frame, emulated_sum(x, &y, {{&a.frame, g, 1}})));
  }
  if (!sum_fits(g, 5)) return;
  {
    SCOPED_TRACE("elements + sum");
    ASSERT_NO_FATAL_FAILURE(expect_same_frame(encode_added(y, sum).frame, emulated_sum(x, &y, {{&sum.frame, g, 2}})));
  }
  {
    SCOPED_TRACE("four streams, one of them a sum");
    const Outcome four = added(x, added(x, added(x, a, b), fused), a);
    ASSERT_NO_FATAL_FAILURE(expect_same_frame(
        four.frame,
        emulated_sum(x, nullptr, {{&a.frame, g, 1}, {&b.frame, g, 1}, {&fused.frame, g, 2}, {&a.frame, g, 1}})));
  }
  {
    SCOPED_TRACE("elements and two streams");
    const Outcome three = added(x, encode_added(x, b), a);
    ASSERT_NO_FATAL_FAILURE(expect_same_frame(three.frame, emulated_sum(x, &x, {{&b.frame, g, 1}, {&a.frame, g, 1}})));
  }
}

TEST_P(GpuEmulated, AddsAsTheCpu) {
  const DType t = GetParam();
  std::size_t turn = 0;  // every kind meets every grid, with two of the counts; under sanitizers mostly with one
  for (const Grid& g : stepped_grids_of(t))
    for (const Kind kind : all_kinds)
      for (const std::size_t count : {counts[turn++ % counts.size()], std::size_t{4096}}) {
        if (sanitized && count == 4096 && turn % 4 != 0) continue;
        SCOPED_TRACE(describe(t, g, kind, count));
        const LaneOrder order(static_cast<int>(count), 31);
        ASSERT_NO_FATAL_FAILURE(compare_sums(sample(t, kind, count), sample(t, kind, count, 2), g));
      }
}

TEST_P(GpuEmulated, AddsUnlikeArraysAsTheCpu) {
  const DType t = GetParam();
  constexpr std::size_t count = 2048 + 300;
  std::size_t apart = 1;  // of the kinds that meet; another with every grid
  for (const Grid& g : stepped_grids_of(t)) {
    for (std::size_t k = sanitized ? apart % 3 : 0; k < all_kinds.size(); k += sanitized ? 3 : 1) {
      const Kind b = all_kinds[(k + apart) % all_kinds.size()];
      SCOPED_TRACE(describe(t, g, all_kinds[k], count) + " + " + std::string(name_of(b)));
      ASSERT_NO_FATAL_FAILURE(compare_sums(sample(t, all_kinds[k], count), sample(t, b, count), g));
    }
    apart += 4;
  }
}

/// Two chunks for which each predictor is the best one, a constant, and what makes the sums with the first three
/// constant.
std::vector<Array> arrays_by_predictor(DType t) {
  constexpr std::size_t count = 4096;
  std::vector<Array> a(7, Array(t, count));
  Random random(7);
  double walk = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(i % 512) / 256 - 1;
    walk = std::clamp(walk + 0.02 * random.symmetric(), -0.9, 0.9);
    const double noise = 0.3 * random.symmetric();
    const double curve = 0.9 * at * at;
    const double values[] = {noise, walk, curve, 0.25, -noise, -walk, -curve};
    for (std::size_t k = 0; k < a.size(); ++k) a[k].set_value(i, values[k]);
  }
  return a;
}

TEST_P(GpuEmulated, AddsChunksOfAllPredictorsAsTheCpu) {
  const DType t = GetParam();
  const std::vector<Array> a = arrays_by_predictor(t);
  for (const double bound : {1e-2, 1e-3}) {  // residuals of up to 8 planes, and of more
    const Grid g = make_grid(t, t == DType::bf16 ? 2e-2 : bound, 1);
    if (!sum_fits(g, 4)) continue;
    std::vector<Outcome> of;
    for (const Array& x : a) of.push_back(encoded(x, g));
    for (std::size_t k = 0; k < 125; k += sanitized ? 3 : 1) {  // any two meet among every third, too
      const std::size_t i = k % 5;
      const std::size_t j = k / 5 % 5;
      const std::size_t l = k / 25;
      SCOPED_TRACE(std::to_string(i) + " + " + std::to_string(j) + " + " + std::to_string(l));
      const LaneOrder order(static_cast<int>(k), 13);
      const Outcome three = added(a[0], added(a[0], of[i], of[j]), of[l]);
      ASSERT_NO_FATAL_FAILURE(expect_same_frame(
          three.frame,
          emulated_sum(a[0], nullptr, {{&of[i].frame, g, 1}, {&of[j].frame, g, 1}, {&of[l].frame, g, 1}})));
      const std::size_t m = 4 + k % 3;  // a constant has lost its predictor
      ASSERT_NO_FATAL_FAILURE(expect_same_frame(
          added(a[0], added(a[0], of[m], of[m - 4]), of[l]).frame,
          emulated_sum(a[0], nullptr, {{&of[m].frame, g, 1}, {&of[m - 4].frame, g, 1}, {&of[l].frame, g, 1}})));
      const Outcome local = added(a[0], encode_added(a[i], of[j]), of[l]);
      ASSERT_NO_FATAL_FAILURE(
          expect_same_frame(local.frame, emulated_sum(a[0], &a[i], {{&of[j].frame, g, 1}, {&of[l].frame, g, 1}})));
    }
  }
}

TEST_P(GpuEmulated, AddsAnArrayThatIsAllFillAsTheCpu) {
  const DType t = GetParam();
  const Grid g = make_grid(t, t == DType::bf16 ? 2e-2 : 1e-2, 1);
  ASSERT_NO_FATAL_FAILURE(compare_sums(white_noise(t, 4096), all_fill(t, 4096), g));
}

// Parts of one row and of many blocks of 32, whole ones and not.
TEST(GpuChecksum, IsThatOfAnyNumberOfBytes) {
  Random random(5);
  for (const std::size_t words : {0, 1, 31, 32, 33, 255, 256, 257, 1024, 1025, 5000, 8192, 8193, 30011, 65536, 65537}) {
    std::vector<std::uint8_t> frame(frame::header_bytes + 4 * words);
    for (auto& byte : frame) byte = static_cast<std::uint8_t>(random.below(256));
    const std::uint64_t bytes = frame.size();
    std::memcpy(&frame[frame::at_bytes], &bytes, sizeof bytes);
    const std::uint32_t expected = frame_checksum(frame.data(), frame.size());
    for (const std::uint64_t tiles : {1, 2, 7}) {
      const LaneOrder order(static_cast<int>(words % 32), 5);
      EXPECT_EQ(emulated_checksum(frame.data(), frame.size(), tiles), expected) << words << " words, " << tiles;
    }
    EXPECT_EQ(emulated_checksum(frame.data(), frame.size() - 1, 1), 0U) << words;
  }
}

INSTANTIATE_TEST_SUITE_P(Floats, GpuEmulated, testing::ValuesIn(float_dtypes),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

}  // namespace
}  // namespace laconic::test::emulated_test
