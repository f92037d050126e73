// The checksum in pieces and in another order is the checksum of the whole; it is CRC-32C.
#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "frame/checksum.h"

namespace laconic::frame::frame_checksum_test {
namespace {

std::vector<std::uint8_t> noise(std::size_t n) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> bytes(n);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  return bytes;
}

TEST(FrameChecksum, IsCastagnolis) {
  // RFC 3720, B.4: 32 bytes of zeros, and of 0, 1, ... 31.
  std::vector<std::uint8_t> bytes(32);
  EXPECT_EQ(~crc_update(crc_start, bytes), 0x8A9136AAU);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  EXPECT_EQ(~crc_update(crc_start, bytes), 0x46DD794EU);
}

TEST(FrameChecksum, PiecesGiveTheWhole) {
  const std::vector<std::uint8_t> bytes = noise(10007);
  const std::span<const std::uint8_t> all(bytes);
  const std::uint32_t whole = crc_update(crc_start, all);
  for (const std::size_t cut : {0, 1, 7, 64, 5000, 10006, 10007})
    EXPECT_EQ(crc_update(crc_update(crc_start, all.first(cut)), all.subspan(cut)), whole) << cut;
}

TEST(FrameChecksum, ThePartThatComesFirstMayBeLookedAtLast) {
  const std::vector<std::uint8_t> bytes = noise(10007);
  const std::span<const std::uint8_t> all(bytes);
  const std::uint32_t whole = crc_update(crc_start, all);
  for (const std::size_t cut : {0, 1, 7, 64, 5000, 10006, 10007}) {
    const std::uint32_t second = crc_update(0, all.subspan(cut));
    EXPECT_EQ(crc_join(crc_update(crc_start, all.first(cut)), second, all.size() - cut), whole) << cut;
  }
}

/// Adds a part in pieces.
void add(CrcRuns& runs, std::span<const std::uint8_t> part, std::size_t piece) {
  for (std::size_t i = 0; i < part.size(); i += piece) runs.add(part.subspan(i, std::min(piece, part.size() - i)));
}

// Threads come by their own parts, not at once by all of them.
TEST(FrameChecksum, RunsOfSeveralThreadsMakeTheWhole) {
  const std::vector<std::uint8_t> bytes = noise(50021);
  const auto all = std::span(bytes);
  CrcRuns runs;
  {
    const std::jthread first([&] { add(runs, all.subspan(100, 14900), 777); });
    const std::jthread second([&] { add(runs, all.subspan(15000, 10000), 1001); });  // goes on where the first one ends
    const std::jthread third([&] { add(runs, all.subspan(30000, 11000), 512); });
  }
  EXPECT_EQ(runs.update(crc_start, all), crc_update(crc_start, all));
  EXPECT_EQ(CrcRuns().update(crc_start, all), crc_update(crc_start, all));
}

TEST(FrameChecksum, PiecesOfThreadsThatTakeTurnsMakeTheWhole) {
  const std::vector<std::uint8_t> bytes = noise(300007);
  const auto all = std::span(bytes);
  CrcRuns runs;
  std::atomic<std::size_t> dealt = 0;
  const auto work = [&] {
    constexpr std::size_t batch = 1000;
    for (std::size_t i = 0; (i = batch * dealt++) < all.size();)
      add(runs, all.subspan(i, std::min(batch, all.size() - i)), 300);
  };
  {
    const std::jthread first(work);
    const std::jthread second(work);
    const std::jthread third(work);
  }
  EXPECT_EQ(runs.update(crc_start, all), crc_update(crc_start, all));
}

// From the end to the beginning, and then what had been left out.
TEST(FrameChecksum, PiecesInAnyOrderMakeTheWhole) {
  const std::vector<std::uint8_t> bytes = noise(10007);
  const auto all = std::span(bytes);
  CrcRuns runs;
  for (std::size_t i = 10; i-- > 0;)
    if (i != 3 && i != 6) runs.add(all.subspan(1000 * i, 1000));
  EXPECT_EQ(runs.update(crc_start, all), crc_update(crc_start, all));
  runs.add(all.subspan(3000, 1000));
  runs.add(all.subspan(6000, 1000));
  EXPECT_EQ(runs.update(crc_start, all), crc_update(crc_start, all));
}

#if defined(__x86_64__)
/// Whether the processor says which registers are in use.
bool tells_registers_in_use() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_OSXSAVE) != 0 &&
         __get_cpuid_count(0xd, 1, &a, &b, &c, &d) != 0 && (a & 4U) != 0;
}

__attribute__((target("xsave"))) bool upper_halves_in_use() {
  constexpr unsigned ymm = 1U << 2U, zmm = 1U << 6U;
  return (_xgetbv(1) & (ymm | zmm)) != 0;
}

TEST(FrameChecksum, LeavesNoUpperHalfOfARegisterInUse) {
  if (!tells_registers_in_use())
    GTEST_SKIP() << "this processor does not tell which registers are in use (XGETBV with ECX = 1)";
  const std::vector<std::uint8_t> bytes = noise(10007);
  std::uint32_t crc = crc_start;
  for (const std::size_t n : {10U, 100U, 256U, 10007U}) {
    crc = crc_update(crc, std::span(bytes).first(n));
    EXPECT_FALSE(upper_halves_in_use()) << n << " bytes";
  }
  EXPECT_NE(crc, crc_start);
}
#endif

}  // namespace
}  // namespace laconic::frame::frame_checksum_test
