// The steps of a warp that the codec tests cannot single out: look-back over tiles that are at different stages, and
// the pieces between planes and integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "gpu/fast_read.h"
#include "gpu/tile.h"
#include "support/sample_data.h"

namespace laconic::test::warp_steps_test {
namespace {

using namespace gpu::emulated;  // NOLINT(google-build-using-namespace)

TEST(LookBack, AddsThoseThatHaveOnlyTheirOwnBytes) {
  for (const std::uint64_t tile : {1U, 2U, 31U, 32U, 33U, 100U, 500U})
    for (const std::uint64_t complete : {0U, 1U, 30U, 31U, 32U, 63U, 99U}) {
      if (complete >= tile) continue;
      std::vector<std::uint64_t> states(tile + 1);
      std::uint64_t expected = 0;
      for (std::uint64_t t = 0; t < tile; ++t) {
        const std::uint64_t bytes = 1000 * t + (std::uint64_t{1} << 33);
        expected += bytes;
        // What lies before the last complete tile must not be looked at.
        states[t] = t < complete ? State::own | 7 : t == complete ? State::all | expected : State::own | bytes;
      }
      announce(Warp(), tile, 12, states.data());
      EXPECT_EQ(bytes_up_to(Warp(), tile, states.data()), expected + 12) << tile << " after " << complete;
      EXPECT_EQ(states[tile], State::all | (expected + 12));
    }
}

TEST(Planes, GoToIntegersAndBack) {
  Random random(3);
  alignas(16) std::uint8_t memory[Rows<std::int32_t>::bytes];
  alignas(8) std::uint8_t planes[PlaneStore::bytes];
  const Rows<std::int32_t> rows(memory);
  for (const int spread : {3, 100, 255, 30000, 65535}) {
    std::vector<std::int32_t> q(chunk_values);
    std::int32_t at = -70000;
    for (auto& v : q) v = at += static_cast<std::int32_t>(random.below(static_cast<std::size_t>(spread))) - spread / 2;
    for (int i = 0; i < chunk_values; ++i) rows[i] = q[static_cast<std::size_t>(i)];
    PerLane<Planes<1>> narrow;
    PerLane<Planes<2>> wide;
    EXPECT_EQ(planes_of_rows(Warp(), rows, true, q[0], narrow), spread <= 255);
    ASSERT_TRUE(planes_of_rows(Warp(), rows, true, q[0], wide));
    PlaneStore store(planes);
    store.put(Warp(), wide);
    store.trim(Warp());
    EXPECT_EQ(store.count, spread == 3 ? 2 : spread == 100 ? 7 : spread == 255 ? 8 : spread == 30000 ? 15 : 16);
    wide = {};
    store.get(Warp(), wide);
    rows_of_planes<false>(Warp(), wide, Predictor::first, q[0], rows);
    for (int i = 0; i < chunk_values; ++i) ASSERT_EQ(rows[i], q[static_cast<std::size_t>(i)]) << i;
  }
}

TEST(Planes, AddAsIntegersDo) {
  Random random(4);
  Planes<2> a{};
  Planes<2> b{};
  std::array<std::int32_t, 64> sum{};
  for (unsigned i = 0; i < 64; ++i) {
    const auto x = static_cast<std::int16_t>(random.bits());
    const auto y = static_cast<std::int16_t>(random.bits());
    sum[i] = static_cast<std::int16_t>(x + y);
    for (int r = 0; r < 16; ++r) {
      a.half[r][i / 32] |= static_cast<std::uint32_t>(x >> r & 1) << (i % 32);
      b.half[r][i / 32] |= static_cast<std::uint32_t>(y >> r & 1) << (i % 32);
    }
  }
  std::uint32_t carry[2] = {0, 0};
  for (int r = 0; r < 16; ++r)
    for (int h = 0; h < 2; ++h) add_bits(a.half[r][h], b.half[r][h], carry[h]);
  for (unsigned i = 0; i < 64; ++i)
    for (int r = 0; r < 16; ++r)
      ASSERT_EQ(a.half[r][i / 32] >> (i % 32) & 1, static_cast<std::uint32_t>(sum[i] >> r & 1)) << i << " " << r;
}

/// Bytes 1 to 8 where the mask has ones; else 0.
std::uint64_t bytes_of_mask(std::uint32_t mask) {
  std::uint64_t plane = 0;
  for (unsigned g = 0; g < 8; ++g) plane |= (mask >> g & 1) * (std::uint64_t{g} + 1) << (8 * g);
  return plane;
}

TEST(SparsePlanes, GoToBytesAndBack) {
  alignas(4) std::uint8_t chunk[32];
  for (std::uint32_t mask = 0; mask < 256; ++mask)
    for (std::uint32_t place = 0; place < 4; ++place) {
      const std::uint64_t plane = bytes_of_mask(mask);
      ASSERT_EQ(non_zero_bytes(plane), mask);
      ASSERT_EQ(non_zero_bytes(plane << 4), mask);
      ASSERT_EQ(non_zero_bytes(plane * 17), mask);
      std::fill(std::begin(chunk), std::end(chunk), std::uint8_t{0xA5});
      std::uint8_t* last = chunk + place;
      put_sparse({{static_cast<std::uint32_t>(plane), static_cast<std::uint32_t>(plane >> 32)}}, mask, last);
      std::uint32_t at = place + 1;
      std::uint32_t low = 0;
      std::uint32_t high = 0;
      get_sparse(chunk, mask, at, low, high);
      ASSERT_EQ(std::uint64_t{high} << 32 | low, plane) << mask << " at " << place;
      ASSERT_EQ(chunk + at, last + 1);
    }
}

TEST(SparsePlanes, AreCountedByTheirMasks) {
  Random random(5);
  alignas(4) std::uint8_t chunk[40];
  for (auto& mask : chunk) mask = static_cast<std::uint8_t>(random.bits());
  for (std::uint32_t place = 0; place < 8; ++place) {
    std::uint32_t bytes = 0;
    for (std::uint32_t n = 0; n <= 17; ++n) {  // sixteen planes and that of marks
      ASSERT_EQ(bytes_of_masks(chunk, place, n), bytes) << n << " from " << place << " on";
      bytes += static_cast<std::uint32_t>(std::popcount(chunk[place + n]));
    }
  }
}

TEST(Bits, AreCounted) {
  EXPECT_EQ(count_ones(0xF0F00001U), 9);
  EXPECT_EQ(count_ones(std::uint64_t{3} << 40 | 1), 3);
  EXPECT_EQ(trailing_zeros(0U), 32);
  EXPECT_EQ(trailing_zeros(std::uint64_t{1} << 40), 40);
  EXPECT_EQ(leading_zeros(1U), 31);
  EXPECT_EQ(leading_zeros(std::uint64_t{0}), 64);
  EXPECT_EQ(trailing_ones(std::uint64_t{0xFF}), 8);
  EXPECT_EQ(bit_width(std::uint64_t{1} << 40), 41);
  EXPECT_EQ(bit_width(0U), 0);
  for (int k = 1; k <= 16; ++k)
    EXPECT_EQ(slice::index_planes_for(k), static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(k - 1))));
  EXPECT_EQ(slice::index_planes_for(17), slice::Word::plain_codes);
}

/// nvcc makes nothing of the standard library's, without a word.
TEST(Bits, AreNotCountedByTheStandardLibraryOnTheDevice) {
  std::vector<std::filesystem::path> sources = {"src/codec/slice/chunk.h", "src/codec/slice/layout.h",
                                                "src/codec/slice/chunk_integers.h"};
  for (const auto& entry : std::filesystem::directory_iterator("src/gpu")) sources.push_back(entry.path());
  const std::regex counts(
      "std::(countr|countl|popcount|bit_width|bit_ceil|bit_floor|has_single_bit|rot[lr])|__builtin_");
  for (const auto& path : sources) {
    if (path.filename() == "warp.h" || path.extension() == ".txt") continue;
    std::ifstream in(path);
    ASSERT_TRUE(in) << path;
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, counts)) << path << ": " << found.str();
  }
}

TEST(LaneOrders, AreAllOfTheLanes) {
  for (const int stride : {1, 13, 31}) {
    Warp::order() = {5, stride};
    EXPECT_EQ(Warp().ballot([](int) { return true; }), ~0U);
  }
  Warp::order() = {};
}

}  // namespace
}  // namespace laconic::test::warp_steps_test
