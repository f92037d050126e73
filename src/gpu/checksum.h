// The frame's CRC-32C by many warps at once. A checksum is a remainder of polynomials, so it is the sum of what the
// words contribute, each multiplied by the power of x that its distance from the end asks for; who adds what when does
// not matter. Source: RFC 3720 for the polynomial; the arrangement is ours.
#pragma once

#include "frame/layout.h"
#include "gpu/sections.h"
#include "gpu/tile.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// a * b modulo the polynomial; bit 31 is the coefficient of x^0.
constexpr
#if defined(__CUDACC__)
    __host__ __device__
#endif
        std::uint32_t
        multiply_mod(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r = 0;
  for (int i = 0; i < 32; ++i) {
    r ^= b & (0 - (a >> 31));
    a <<= 1;
    b = (b >> 1) ^ (0x82F63B78U & (0 - (b & 1)));
  }
  return r;
}

/// Entry k: x^(32 * 2^k), what a distance of 2^k words multiplies by.
struct WordPowers {
  std::uint32_t of[32];
};
constexpr WordPowers word_powers() {
  WordPowers p{};
  std::uint32_t v = 0x40000000U;  // x
  for (int k = 0; k < 5; ++k) v = multiply_mod(v, v);
  for (auto& to : p.of) {
    to = v;
    v = multiply_mod(v, v);
  }
  return p;
}

// So x^32 to the power of 2^31 - 1 is 1, and a number of words counts modulo that.
static_assert(word_powers().of[31] == word_powers().of[0]);

inline constexpr int checksum_rows = 64;                            ///< of 32 words, that a warp sums up at once
inline constexpr std::uint64_t checksum_span = 32 * checksum_rows;  ///< words

/// In shared memory: entry [j][b] is byte b at place j of a word, multiplied by x^1024, which is a row.
struct RowTable {
  std::uint32_t of[4][256];
};
LACONIC_GPU_FN void fill_row_table(const Warp& w, int k, const WordPowers& powers, RowTable& table) {
  w.each([&](int l) {
    for (int b = k * warp_lanes + l; b < 256; b += tile_warps * warp_lanes)
      for (int j = 0; j < 4; ++j) table.of[j][b] = multiply_mod(static_cast<std::uint32_t>(b) << (8 * j), powers.of[5]);
  });
}

/// x^(32 * words), all lanes alike.
LACONIC_GPU_FN std::uint32_t power_of_words(const Warp& w, const WordPowers& powers, std::uint64_t words) {
  words = (words & 0x7FFFFFFFU) + (words >> 31);
  PerLane<std::uint32_t> p;
  w.each([&](int l) { p[l] = (words >> l & 1) != 0 ? powers.of[l] : 0x80000000U; });
  LACONIC_GPU_UNROLL
  for (int o = 16; o > 0; o >>= 1) {
    const PerLane<std::uint32_t> other = w.gather(p, [&](int l) { return l ^ o; });
    w.each([&](int l) { p[l] = multiply_mod(p[l], other[l]); });
  }
  return w.from(p, 0);
}

/// The sum of multiples of the lanes' values.
LACONIC_GPU_FN std::uint32_t xor_of(const Warp& w, PerLane<std::uint32_t> v) {
  LACONIC_GPU_UNROLL
  for (int o = 16; o > 0; o >>= 1) {
    const PerLane<std::uint32_t> other = w.gather(v, [&](int l) { return l ^ o; });
    w.each([&](int l) { v[l] ^= other[l]; });
  }
  return w.from(v, 0);
}

/// What `words` words (at most checksum_span) contribute when `after` words follow.
LACONIC_GPU_FN std::uint32_t checksum_of_span(const Warp& w, const WordPowers& powers, const RowTable& table,
                                              const std::uint8_t* at, std::uint64_t words, std::uint64_t after) {
  const std::uint64_t rows = (words + 31) / 32;
  const std::uint64_t missing = 32 * rows - words;  // the first row lacks words at its beginning
  PerLane<std::uint32_t> sum;
  w.each([&](int l) {
    std::uint32_t s = 0;
    for (std::uint64_t r = 0; r < rows; ++r) {
      const std::uint64_t i = 32 * r + static_cast<std::uint64_t>(l);
      const std::uint32_t word = i < missing ? 0 : load32(at + 4 * (i - missing));
      s = table.of[0][s & 255] ^ table.of[1][s >> 8 & 255] ^ table.of[2][s >> 16 & 255] ^ table.of[3][s >> 24] ^ word;
    }
    // x^(32 (32 - l)) from its bits.
    const int distance = 32 - l;
    for (int k = 0; k < 6; ++k)
      if ((distance >> k & 1) != 0) s = multiply_mod(s, powers.of[k]);
    sum[l] = s;
  });
  return multiply_mod(xor_of(w, sum), power_of_words(w, powers, after));
}

/// What the header and the checksum's own start and end contribute, when `after` words follow the header.
LACONIC_GPU_FN std::uint32_t checksum_of_header(const Warp& w, const WordPowers& powers, const std::uint8_t* frame,
                                                std::uint64_t after) {
  constexpr std::uint32_t own = frame::at_crc / 4;
  constexpr std::uint32_t words = frame::header_bytes / 4;
  PerLane<std::uint32_t> sum;
  w.each([&](int l) {
    const auto i = static_cast<std::uint32_t>(l);
    if (i >= words || i == own) return;
    sum[l] = load32(frame + 4 * i) ^ (i == 0 ? ~0U : 0U);
    const std::uint32_t distance = words - i - (i < own ? 1 : 0);
    for (std::uint32_t k = 0; k < 4; ++k)
      if ((distance >> k & 1) != 0) sum[l] = multiply_mod(sum[l], powers.of[k]);
  });
  return ~multiply_mod(xor_of(w, sum), power_of_words(w, powers, after));
}

/// Adds what the spans that are a tile's, of `tiles`, contribute to *crc, zero at first. A frame whose header says more
/// bytes than `readable` contributes nothing.
LACONIC_GPU_FN void run_checksum(const Tile& tile, std::uint64_t number, std::uint64_t tiles, const WordPowers& powers,
                                 const std::uint8_t* frame, std::uint64_t readable, RowTable& table,
                                 std::uint32_t* crc) {
  tile.each_warp([&](const Warp& w, int k) { fill_row_table(w, k, powers, table); });
  const std::uint64_t bytes = load64(frame + frame::at_bytes);
  if (bytes > readable || bytes < frame::header_bytes || bytes % 4 != 0) return;
  const std::uint64_t words = (bytes - frame::header_bytes) / 4;
  tile.each_warp([&](const Warp& w, int k) {
    const std::uint64_t first = number * tile_warps + static_cast<std::uint64_t>(k);
    std::uint32_t sum = first == 0 ? checksum_of_header(w, powers, frame, words) : 0;
    for (std::uint64_t begin = first * checksum_span; begin < words; begin += tiles * tile_warps * checksum_span) {
      const std::uint64_t n = words - begin < checksum_span ? words - begin : checksum_span;
      sum ^= checksum_of_span(w, powers, table, frame + frame::header_bytes + 4 * begin, n, words - begin - n);
    }
    w.each([&](int l) {
      if (l == 0 && sum != 0) xor_shared(crc, sum);
    });
  });
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
