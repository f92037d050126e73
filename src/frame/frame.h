// The self-describing unit that travels or is stored: header, a codec's payload, CRC-32C.
// docs/format.md describes every bit. Everything here is thread safe; nothing keeps state between calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "codec/codec.h"
#include "codec/grid.h"
#include "core/array.h"
#include "core/op.h"
#include "frame/layout.h"

namespace laconic::frame {

using Bytes = CodecBytes;
using MutBytes = CodecMutBytes;

/// Values in a chunk, the unit of random access and pipelining (the last one of a frame may be shorter).
inline constexpr std::size_t chunk_values = 2048;

struct Header {
  Grid grid;  ///< of a rate codec: see rate_grid()
  CodecId codec = CodecId::slice;
  std::uint64_t count = 0;        ///< elements
  std::uint32_t operands = 1;     ///< how many arrays were summed into this frame
  std::uint64_t frame_bytes = 0;  ///< whole frame, header included

  [[nodiscard]] std::uint64_t chunks() const { return (count + chunk_values - 1) / chunk_values; }
};

/// Most bytes that encoding `count` elements can take: at most 1.02 * raw + 64.
std::size_t capacity(DType dtype, std::size_t count, const Codec& codec = slice_codec());

/// Most bytes of a sum of frames: elements that no grid integer can hold travel as exact expansions. There is room for
/// such of two terms each; `chunk_bytes`: for more, see slice::sum_chunk_bytes().
std::size_t sum_capacity(DType dtype, std::size_t count, std::size_t chunk_bytes = 0);

/// Encodes x on grid (grid.dtype must equal x.dtype) into out (at least capacity bytes, else Error(too_small)).
/// Returns the frame's bytes. The bytes do not depend on the SIMD target or on threads.
std::size_t encode(ConstArray x, const Grid& grid, MutBytes out, int threads = 1);

/// The same by another codec. Its frame's grid is grid_for(codec, grid); where that is a ratio's (rate_grid()) and the
/// codec keeps bounds, the finest whose payload keeps the ratio; where none does, what beyond_ratio_of() says. Throws
/// Error(unsupported) for a dtype or grid that it does not take, a ratio that cannot be kept, and where the codec was
/// not built in.
std::size_t encode(const Codec& codec, ConstArray x, const Grid& grid, MutBytes out, int threads = 1,
                   Extents extents = {});

/// encode() by a linear codec (Error(unsupported) for another), and to y (as x is, x itself or apart from it) what
/// decode() makes of the frame, `whole_bytes` as there: the numbers are at hand. After an Error y holds anything.
std::size_t encode_decode(const Codec& codec, ConstArray x, const Grid& grid, MutBytes out, MutArray y, int threads = 1,
                          std::size_t whole_bytes = 0);

/// Reads the first header_bytes only (magic, version, plausibility). Throws Error(corrupt).
Header peek(Bytes head);

/// Validates the whole frame: header, sizes, table, checksum. Throws Error(corrupt) that says what is wrong.
Header check(Bytes frame, int threads = 1);

/// Decodes a whole frame into out (out.dtype and out.count must match the header: Error(invalid_argument)). Validates
/// first. divisor > 1 gives the average of a sum: value = round(q * (step / divisor)); for linear codecs only.
/// whole_bytes: where `out` is a part of something larger that is decoded in one go, how large that is; so elements are
/// written past the caches where all of them would drive out each other.
void decode(Bytes frame, MutArray out, int threads = 1, std::uint32_t divisor = 1, std::size_t whole_bytes = 0);

/// Random access: decodes chunks [first, first + n) of a frame into out, whose count must be the values in them.
/// `verified` skips check(): for a caller that has already called it on these very bytes.
void decode_chunks(Bytes frame, std::uint64_t first, std::uint64_t n, MutArray out, bool verified = false,
                   std::uint32_t divisor = 1);

/// out = x + frames[0] + frames[1] + ... on the grid, in one pass and without going through floating point: this is the
/// step of a reduction, which meets the local operand (none: frames alone) and one or more received ones. At least two
/// terms; the bytes are those of adding one after another. Same codec, points, count and dtype required
/// (Error(mismatch); of x: Error(invalid_argument)), and a codec that is linear (Error(unsupported)). out must hold
/// sum_capacity and overlap no operand; after an Error it holds anything. Returns the frame's bytes.
std::size_t sum(std::optional<ConstArray> x, std::span<const Bytes> frames, MutBytes out, int threads = 1);

/// out = a + b.
std::size_t add(Bytes a, Bytes b, MutBytes out, int threads = 1);

/// out = encode(x) + b. The grid is b's.
std::size_t encode_add(ConstArray x, Bytes b, MutBytes out, int threads = 1);

/// out = the least or the greatest (op: min or max) of x and the frames, element by element as take_extreme() has it,
/// encoded on `grid`: one term at least. x is put on the grid first, as a sum with zeros puts it there, so that no
/// element depends on those beside it; values on the grid encode without further error. All must lie on the points of
/// `grid`, with the same count, by a linear codec; Errors as of sum(). out: capacity bytes, overlapping no operand.
std::size_t extreme(Op op, const Grid& grid, std::optional<ConstArray> x, std::span<const Bytes> frames, MutBytes out,
                    int threads = 1);

}  // namespace laconic::frame
