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

/// Multiplication by a constant: entry i is its product with bit i.
struct Multiplier {
  std::uint32_t of[32];
};
/// What the kernel is passed.
struct ChecksumPowers {
  WordPowers words;
  Multiplier by[6];  ///< entry k multiplies by words.of[k]
};
constexpr ChecksumPowers checksum_powers() {
  ChecksumPowers p{word_powers(), {}};
  for (int k = 0; k < 6; ++k)
    for (int i = 0; i < 32; ++i) p.by[k].of[i] = multiply_mod(std::uint32_t{1} << i, p.words.of[k]);
  return p;
}

/// v, of `bits` bits, times the constant; its lowest one stands for bit `first`.
template <int bits = 32>
LACONIC_GPU_FN std::uint32_t multiply_by(const Multiplier& m, std::uint32_t v, int first = 0) {
  std::uint32_t r = 0;
  LACONIC_GPU_UNROLL
  for (int i = 0; i < bits; ++i) r ^= m.of[first + i] & (0 - (v >> i & 1));
  return r;
}

inline constexpr std::uint64_t row_words = warp_lanes;

/// In shared memory: entry [j][b] is byte b at place j of a word, multiplied by x^1024, which is a row.
struct RowTable {
  std::uint32_t of[4][256];

  LACONIC_GPU_FN void fill(const Warp& w, int k, const ChecksumPowers& powers) {
    w.each([&](int l) {
      for (int b = k * warp_lanes + l; b < 256; b += tile_warps * warp_lanes)
        for (int j = 0; j < 4; ++j) of[j][b] = multiply_by<8>(powers.by[5], static_cast<std::uint32_t>(b), 8 * j);
    });
  }
  [[nodiscard]] LACONIC_GPU_FN std::uint32_t multiplied(std::uint32_t s) const {
    return of[0][s & 255] ^ of[1][s >> 8 & 255] ^ of[2][s >> 16 & 255] ^ of[3][s >> 24];
  }
};

/// 32 rows that leave the remainder that all rows so far leave. P(x^1024) is P(x)^1024, since coefficients are 0 and 1;
/// so it is a multiple of P, and rows may be reduced by it: word for word, without a table. A lane's part of it; entry
/// j is what is multiplied by x^(1024 j).
class RowRemainder {
 public:
  static constexpr int rows = 32;

  /// next(i): the next words, i < 32; the first ones.
  template <class F>
  LACONIC_GPU_FN void begin(F next) {
    LACONIC_GPU_UNROLL
    for (int i = 0; i < rows; ++i) of_[rows - 1 - i] = next(i);
  }
  /// The next 32.
  template <class F>
  LACONIC_GPU_FN void add(F next) {
    LACONIC_GPU_UNROLL
    for (int group = 0; group < rows; group += ahead) {
      std::uint32_t word[ahead];
      LACONIC_GPU_UNROLL
      for (int i = 0; i < ahead; ++i) word[i] = next(group + i);
      LACONIC_GPU_UNROLL
      for (int i = 0; i < ahead; ++i) step(group + i, word[i]);
    }
  }
  [[nodiscard]] LACONIC_GPU_FN std::uint32_t finish(const RowTable& table) const {
    std::uint32_t s = 0;
    LACONIC_GPU_UNROLL
    for (int j = rows - 1; j >= 0; --j) s = table.multiplied(s) ^ of_[j];
    return s;
  }

 private:
  static constexpr int ahead = 16;  // loads under way at once

  /// Everything moves up by one: after i steps entry j is at place j - i, so that nothing has to be moved.
  LACONIC_GPU_FN void step(int i, std::uint32_t word) {
    const std::uint32_t top = of_[31 - i];
    of_[31 - i] = top ^ word;
    LACONIC_GPU_UNROLL
    for (int j = 1; j < 32; ++j)
      if ((0x1EDC6F41U >> j & 1) != 0) of_[(j - i - 1) & 31] ^= top;
  }

  std::uint32_t of_[rows];
};

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

/// What `words` words contribute when `after` words follow.
LACONIC_GPU_FN std::uint32_t checksum_of_span(const Warp& w, const ChecksumPowers& powers, const RowTable& table,
                                              const std::uint8_t* at, std::uint64_t words, std::uint64_t after) {
  constexpr std::uint64_t block = RowRemainder::rows * row_words;
  const std::uint64_t blocks = (words + block - 1) / block;
  const std::uint64_t missing = blocks * block - words;  // the first block lacks words at its beginning
  PerLane<std::uint32_t> sum;
  w.each([&](int l) {
    const auto lane = static_cast<std::uint64_t>(l);
    RowRemainder r;
    r.begin([&](int i) {
      const std::uint64_t k = static_cast<std::uint64_t>(i) * row_words + lane;
      return k < missing ? 0 : load32(at + 4 * (k - missing));
    });
    const std::uint8_t* next = at + 4 * (block + lane - missing);
    LACONIC_GPU_KEEP_LOOP
    for (std::uint64_t n = 1; n < blocks; ++n, next += 4 * block)
      r.add([&](int i) { return load32(next + 4 * row_words * static_cast<std::uint64_t>(i)); });
    std::uint32_t s = r.finish(table);
    // The words of a row that follow the lane's.
    LACONIC_GPU_UNROLL
    for (int k = 0; k < 5; ++k)
      if ((~l >> k & 1) != 0) s = multiply_by(powers.by[k], s);
    sum[l] = s;
  });
  return multiply_mod(xor_of(w, sum), power_of_words(w, powers.words, after + 1));
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

/// Words of a warp's part at least: fewer cost as much.
inline constexpr std::uint64_t least_checksum_span = 8 * row_words;

/// Words of which a warp's part begins at a multiple: all warps of `tiles` have parts of one length.
LACONIC_GPU_FN std::uint64_t checksum_span(std::uint64_t words, std::uint64_t tiles) {
  const std::uint64_t warps = tiles * tile_warps;
  const std::uint64_t even = ((words + warps - 1) / warps + row_words - 1) / row_words * row_words;
  return even < least_checksum_span ? least_checksum_span : even;
}

/// Adds what a tile's part, of `tiles`, contributes to *crc, zero at first. A frame whose header says more bytes than
/// `readable` contributes nothing.
LACONIC_GPU_FN void run_checksum(const Tile& tile, std::uint64_t number, std::uint64_t tiles,
                                 const ChecksumPowers& powers, const std::uint8_t* frame, std::uint64_t readable,
                                 RowTable& table, std::uint32_t* crc) {
  const std::uint64_t bytes = load64(frame + frame::at_bytes);
  if (bytes > readable || bytes < frame::header_bytes || bytes % 4 != 0) return;
  const std::uint64_t words = (bytes - frame::header_bytes) / 4;
  const std::uint64_t span = checksum_span(words, tiles);
  const bool has_part = number * tile_warps * span < words;
  // Mostly a tile without a part: of a short frame the header takes as long as one.
  const bool has_header = number + 1 == tiles;
  if (has_part) tile.each_warp([&](const Warp& w, int k) { table.fill(w, k, powers); });
  if (!has_part && !has_header) return;
  tile.each_warp([&](const Warp& w, int k) {
    const std::uint64_t first = number * tile_warps + static_cast<std::uint64_t>(k);
    const std::uint64_t begin = first * span;
    std::uint32_t sum = has_header && k == tile_warps - 1 ? checksum_of_header(w, powers.words, frame, words) : 0;
    if (begin < words) {
      const std::uint64_t n = words - begin < span ? words - begin : span;
      sum ^= checksum_of_span(w, powers, table, frame + frame::header_bytes + 4 * begin, n, words - begin - n);
    }
    w.each([&](int l) {
      if (l == 0 && sum != 0) xor_shared(crc, sum);
    });
  });
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
