// The slice stream's vocabulary: chunk word, block codes, extension entries. docs/format.md explains each field.
//
// A chunk is 2048 consecutive values in 32 blocks of 64. Its bytes, all little endian, begin and end 4-byte aligned:
//
//   word      u32   kind, predictor, shape of the codes, and the chain start ("base") where it fits 19 bits
//   base      i32 or i64, the frame's integer; only with Word::long_base
//   fill      u32 bitmap of the blocks that have fill positions, then the fill value; only with Word::has_fill
//   codes     one byte a block: 32 bytes; or, with p < 5 index planes, p words (bit b of word j = bit j of block b's
//             index), the dictionary of distinct codes, and zeros up to a multiple of 4
//   entries   u32 for every block whose code is code_extended, in block order
//   dense     the low d planes of each block, 8 bytes each, bit i = value i
//   masks     one byte per sparse plane: bit g = byte g of the plane is not zero
//   bytes     those bytes, then zeros up to a multiple of 4
//   exact     what the extended blocks store exactly, each padded to a multiple of 4
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace laconic::slice {

static_assert(std::endian::native == std::endian::little, "the kernels store little-endian words directly");

inline constexpr int block_values = 64;
inline constexpr int chunk_blocks = 32;
inline constexpr int chunk_values = block_values * chunk_blocks;

/// Bytes of the largest chunk that a frame's table can tell of, in units of 4.
inline constexpr std::size_t largest_chunk = std::size_t{4} * 65535;

enum class Kind : std::uint32_t {
  coded = 0,
  constant = 1,  ///< every q equals the base: nothing follows
  raw = 2,       ///< the elements themselves, only as many as the chunk has, padded to a multiple of 4 bytes
  fill = 3,      ///< every element is the fill value, which follows
};

/// What is subtracted before the residuals are coded. All are linear, so residuals of the same predictor add.
enum class Predictor : std::uint32_t {
  none = 0,    ///< q[i] - base
  first = 1,   ///< q[i] - q[i-1], q[-1] = base
  second = 2,  ///< the first difference of the first difference (which starts at 0)
               // 3 is kept for a two-dimensional predictor with a row length
};

/// What the sum of two chunks is coded with: residuals of one predictor are differences of the one below's, so that
/// both have residuals of the higher one.
constexpr Predictor higher(Predictor a, Predictor b) { return a < b ? b : a; }
/// For that: what a constant chunk's word says of a predictor does not count.
constexpr Predictor predictor_if(bool coded, Predictor p) { return coded ? p : Predictor::none; }

/// The first word of a chunk: bits 0-1 kind, 2-3 predictor, 4 long base, 5 has fill, 6-8 index planes,
/// 9-12 dictionary size - 1, 13-31 signed base.
struct Word {
  Kind kind = Kind::coded;
  Predictor predictor = Predictor::none;
  bool long_base = false;
  bool has_fill = false;
  std::uint32_t index_planes = 0;  ///< 0..4, or plain_codes
  std::uint32_t dictionary = 1;    ///< distinct codes, 1..16; 1 where there is no dictionary
  std::int32_t base = 0;

  static constexpr std::uint32_t plain_codes = 5;
  static constexpr bool fits(std::int64_t base) { return base >= -(1 << 18) && base < (1 << 18); }
  [[nodiscard]] constexpr std::uint32_t pack() const {
    return static_cast<std::uint32_t>(kind) | static_cast<std::uint32_t>(predictor) << 2 |
           static_cast<std::uint32_t>(long_base) << 4 | static_cast<std::uint32_t>(has_fill) << 5 | index_planes << 6 |
           (dictionary - 1) << 9 | static_cast<std::uint32_t>(base) << 13;
  }
  static constexpr Word unpack(std::uint32_t w) {
    return {
        static_cast<Kind>(w & 3), static_cast<Predictor>(w >> 2 & 3), (w >> 4 & 1) != 0, (w >> 5 & 1) != 0, w >> 6 & 7,
        (w >> 9 & 15) + 1,        static_cast<std::int32_t>(w) >> 13};
  }
  /// Whether this is a word that version 1 writes in a coded chunk.
  [[nodiscard]] constexpr bool valid_codes() const {
    return static_cast<std::uint32_t>(predictor) < 3 && index_planes <= plain_codes &&
           (index_planes == plain_codes ? dictionary == 1 : dictionary <= 1U << index_planes);
  }
};

/// Index planes for k distinct codes: the fewest that can tell them apart; plain codes beyond 16.
constexpr std::uint32_t index_planes_for(int k) {
  return k > 16 ? Word::plain_codes : k > 8 ? 4 : k > 4 ? 3 : k > 2 ? 2 : k > 1 ? 1 : 0;  // devices run this, too
}

/// A block's code: w = code & 31 planes of zigzag residuals, of which the top s = code >> 5 are sparse (7 means all w).
/// A block in the fill bitmap has one more sparse plane after those: its marks, see mark_plane().
inline constexpr std::uint8_t code_extended = 31;  ///< an entry says the rest
inline constexpr int max_code_width = 30;

constexpr std::uint8_t make_code(int w, int d) {
  return static_cast<std::uint8_t>(w | (d == 0 && w > 6 ? 7 : w - d) << 5);
}
constexpr int sparse_of(std::uint8_t code) { return code >> 5 == 7 ? code & 31 : code >> 5; }

/// What an extended block holds beside its planes. listed and terms have one more sparse plane, their marks.
enum class Extra : std::uint32_t {
  wide = 0,      ///< residual planes only, more than a code can say
  listed = 1,    ///< the marked positions' elements, in order
  terms = 2,     ///< sums only: the marked positions' exact expansions (u8 counts padded to 4, then f64 terms)
  lossless = 3,  ///< no marks: planes are zigzag deltas of order-mapped bit patterns; exact = the first element
  raw = 4,       ///< no marks, no planes: exact = 64 elements
};

/// An extension entry: bits 0-6 w, 7-13 d, 14-16 extra, 17-31 size of the exact part in units of 4 bytes.
struct Entry {
  int w = 0;
  int d = 0;
  Extra extra = Extra::wide;
  std::uint32_t exact_units = 0;

  [[nodiscard]] constexpr std::uint32_t pack() const {
    return static_cast<std::uint32_t>(w) | static_cast<std::uint32_t>(d) << 7 |
           static_cast<std::uint32_t>(extra) << 14 | exact_units << 17;
  }
  static constexpr Entry unpack(std::uint32_t e) {
    return {static_cast<int>(e & 127), static_cast<int>(e >> 7 & 127), static_cast<Extra>(e >> 14 & 7), e >> 17};
  }
  [[nodiscard]] constexpr bool marked() const { return extra == Extra::listed || extra == Extra::terms; }
  [[nodiscard]] constexpr int sparse() const { return w - d + (marked() ? 1 : 0); }
};

/// How many of w planes are stored densely, when `run` planes from the bottom have at least 7 non-zero bytes of 8:
/// those, unless that leaves more sparse planes than a code can count (6): then 0 or w - 6.
constexpr int dense_planes_after(int w, int run) { return w - run <= 6 ? run : 2 * run < w ? 0 : w - 6; }
/// The same, given nz(r) = non-zero bytes of plane r.
template <class NonZero>
constexpr int dense_planes(int w, NonZero nz) {
  int run = 0;
  while (run < w && nz(run) >= 7) ++run;
  return dense_planes_after(w, run);
}

/// Blocks that stand for the chunk when its predictor is chosen: four for the mean, k = 0..3, of which the first and
/// the third also for the cost (a group of eight values takes about as many bytes as its widest residual has bits).
constexpr int sampled_block(int k) { return 4 + 8 * k; }

/// More exceptions than this, and a block of an operand is stored losslessly as a whole.
inline constexpr int max_listed = 16;

/// Marks are coded as a plane of their transitions, which has few non-zero bytes (coast lines are long runs).
constexpr std::uint64_t mark_plane(std::uint64_t marks) { return marks ^ marks << 1; }
constexpr std::uint64_t marks_of(std::uint64_t plane) {
  for (int s = 1; s < 64; s *= 2) plane ^= plane << s;
  return plane;
}

constexpr std::size_t pad4(std::size_t n) { return (n + 3) & ~std::size_t{3}; }

template <class T>
inline T load(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void store(void* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace laconic::slice
