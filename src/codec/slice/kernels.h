// What a SIMD target offers: seven operations on one chunk. The reference is their definition; every other set writes
// the same bytes and reads the same values, and hands what it has no fast way for to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/grid.h"
#include "codec/slice/chunk.h"

namespace laconic::slice {

/// A frame's grid with the constants that its chunks are coded with. Plain data; made once per call by params_for().
struct Params {
  Grid grid;
  std::uint32_t operands = 1;
  std::uint32_t divisor = 1;  ///< decoding only
  ChunkShape shape;
  bool wide = false;  ///< the integer has 64 bits: 8-byte elements whose q may reach 2^31
  /// Decoding: the array is too large for the caches; it is written past them where that helps.
  bool stream = false;
  bool narrow_value =
      true;  ///< f32, f16, bf16: every |q| <= 2^24 and no divisor: float(q) * step is exact to one rounding
  /// Encoding f32 or f64: arithmetic shows that an element whose q is found in the window and is no larger than this
  /// decodes within the bound. That it is so is then all that is left to check of it. 0: each one's error is computed.
  std::int64_t proven = 0;
  float step32 = 0;
  float inverse32 = 0;  ///< 1 / step, rounded
  float bound32 = 0;    ///< the bound, rounded down
  double inverse64 = 0;
  double value_step = 0;  ///< step / divisor

  /// Whether that goes for all of the window: what is larger is an exception.
  [[nodiscard]] bool all_proven() const { return proven == std::int64_t{1} << grid.qbits; }
  /// Of the proven integers the highest; the lowest is -proven. The window has one more below 0 than above.
  [[nodiscard]] std::int64_t highest_proven() const { return all_proven() ? proven - 1 : proven; }
};

Params params_for(const Grid& grid, std::uint32_t operands, std::uint32_t divisor = 1);

/// Where a chunk's bytes lie; `readable` counts the bytes after its start that may be read though they are not its own.
struct ChunkBytes {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  std::size_t readable = 0;
};

/// Results of sums that are no sizes.
inline constexpr std::size_t chunk_corrupt = 0;
inline constexpr std::size_t chunk_too_large = ~std::size_t{0};
inline constexpr std::size_t chunk_unfused = chunk_too_large - 1;  ///< of `sum`: add one after another

/// Most that `sum` adds at once, local elements and chunks.
inline constexpr int most_terms = 8;

/// What an operand frame brings to one chunk of a sum.
struct Term {
  const Params* params = nullptr;
  ChunkBytes bytes;
};

/// Kernels may write up to this many bytes past the size they return.
inline constexpr std::size_t write_slack = 128;
/// With fewer readable bytes than this past a chunk's end, fast kernels fall back to the reference.
inline constexpr std::size_t read_slack = 128;

struct Kernels {
  /// Encodes count (1..2048) elements. out has chunk_capacity + write_slack bytes. Returns the chunk's bytes.
  std::size_t (*encode)(const Params& p, const void* x, int count, std::uint8_t* out);
  /// Decodes into y. False: no valid chunk (y is unspecified).
  bool (*decode)(const Params& p, ChunkBytes in, int count, void* y);
  /// encode(), and to y what decode() makes of that. y is x, or apart from it.
  std::size_t (*encode_decode)(const Params& p, const void* x, int count, std::uint8_t* out, void* y);
  /// What a sum of x and zeros is decoded to, where the grid has a step: its points, also for elements that encode()
  /// would store exactly for their neighbours' sake; else the elements, all NaN the same one. y is apart from x, and
  /// has room for a whole chunk.
  void (*on_grid)(const Params& p, const void* x, int count, void* y);
  /// out = a + b; p describes the result, pa and pb the operands. Returns bytes, chunk_corrupt or chunk_too_large.
  std::size_t (*add)(const Params& p, const Params& pa, ChunkBytes a, const Params& pb, ChunkBytes b, int count,
                     std::uint8_t* out, std::size_t capacity);
  /// out = encode(x) + b, as add.
  std::size_t (*encode_add)(const Params& p, const Params& px, const void* x, const Params& pb, ChunkBytes b, int count,
                            std::uint8_t* out, std::size_t capacity);
  /// out = x + terms[0] + terms[1] + ..., the bytes that encode_add and add would write one after another; px and x may
  /// be null: terms alone then. At most most_terms in all. As add, or chunk_unfused for what it leaves to those.
  std::size_t (*sum)(const Params& p, const Params* px, const void* x, std::span<const Term> terms, int count,
                     std::uint8_t* out, std::size_t capacity);
  bool sums_fetch = false;  ///< sums prefetch what follows their operands by themselves
  bool room_fetch = false;  ///< and where a next chunk of more than fetched_at_once would be written
};
/// Few lines can be on their way at a time: what is longer is fetched little by little.
inline constexpr std::size_t fetched_at_once = 512;

const Kernels& reference_kernels();

/// An element of a floating-point type, by its bits.
double element_value(DType t, std::uint64_t bits);

/// The element, by its bits, that the exact sum of n stored terms (f64, any alignment) is decoded to.
std::uint64_t element_of_sum(const Params& p, const std::uint8_t* terms, int n);

/// Whether an element of an operand frame, by its bits, would be a grid point where it is not stored exactly.
bool is_on_grid(const Params& p, std::uint64_t element);

}  // namespace laconic::slice
