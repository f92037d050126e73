// A codec: how an array becomes bytes and back. The frame puts a header and a checksum around them and finds the codec
// by the number in the header; nothing above the frame knows how values are coded. What a codec writes depends on the
// values and the grid alone, never on SIMD target or threads. Everything here is thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "codec/grid.h"
#include "codec/witness.h"
#include "core/array.h"
#include "core/bound.h"
#include "core/op.h"
#include "core/range.h"

namespace laconic {

/// The numeric values are part of the frame format (docs/format.md): never renumber.
enum class CodecId : std::uint8_t {
  slice = 1,
  szx = 2,
  fzlight = 3,
  zfp = 4,
  zfp_rate = 5,
  lz4 = 6,
  lz4hc = 7,
  zstd = 8,
};

/// What a codec says of the elements that come back.
enum class Promise : std::uint8_t {
  bounded,   ///< each within the grid's bound, exact where the grid is lossless
  lossless,  ///< every bit, whatever the bound
  rate,      ///< the bytes of a block; the error is what it is (NaN and infinities come back, beside)
};

/// What the header knows about a payload.
struct Coded {
  Grid grid;
  std::size_t count = 0;        ///< elements of the whole payload
  std::uint32_t operands = 1;   ///< arrays that were summed into it; more than 1 for linear codecs only
  std::uint32_t divisor = 1;    ///< decoding: values are divided by it; not 1 for linear codecs only
  std::size_t whole_bytes = 0;  ///< decoding: of what the elements are a part of; see frame::decode()
  /// Sums may show it an operand as they use it, and what they write once it is final, but for a table at its
  /// beginning. What is not shown is up to the caller.
  Witness* witness = nullptr;
};

/// Lengths of an array's two fastest axes, for codecs that look across rows. 0: unknown, or one axis only.
struct Extents {
  std::size_t fast = 0;
  std::size_t middle = 0;
};

using CodecBytes = std::span<const std::uint8_t>;
using CodecMutBytes = std::span<std::uint8_t>;

/// The rates of a codec with Promise::rate, in bits per value: the lowest, and from there on all multiples of `unit`.
struct Rates {
  double least = 0, unit = 0;
};

/// Elements that are a sum's first term, and the grid that they are brought to. Null: there are none.
struct LocalTerm {
  Coded coded;
  const void* x = nullptr;
};
/// A payload that is a term of a sum.
struct CodedTerm {
  Coded coded;
  CodecBytes payload;
};

/// What linear codecs can besides: sums of compressed arrays without going through floating point, their extremes, and
/// encoding that reads at once what it writes.
class LinearCodec {
 public:
  virtual ~LinearCodec() = default;
  /// Most bytes that sum() writes, as slice.h has it.
  [[nodiscard]] virtual std::size_t sum_capacity(DType dtype, std::size_t count, std::size_t chunk_bytes) const = 0;
  /// Codec::encode(), and to y what Codec::decode() makes of that, in less time. y is x, or apart from it;
  /// `whole_bytes` as Coded's. After an Error y holds anything.
  virtual std::size_t encode_decode(ConstArray x, const Grid& grid, CodecMutBytes out, MutArray y, int threads,
                                    std::size_t whole_bytes, Witness* witness) const = 0;
  /// out = local + terms[0] + terms[1] + ..., at least two in all: the bytes that adding them one after another would
  /// give, in this order. Error(too_small) when out cannot hold it, Error(corrupt) for a damaged term.
  virtual std::size_t sum(const Coded& result, const LocalTerm& local, std::span<const CodedTerm> terms,
                          CodecMutBytes out, int threads) const = 0;
  /// out = the least or the greatest (op) of x and what the terms decode to, element by element; x may be null where
  /// there are terms. An element of x counts as what a sum of x and zeros is decoded to, whatever is beside it. Writes
  /// at most Codec::capacity(); errors as of sum().
  virtual std::size_t extreme(Op op, const Coded& result, const void* x, std::span<const CodedTerm> terms,
                              CodecMutBytes out, int threads) const = 0;
};

class Codec {
 public:
  virtual ~Codec() = default;

  [[nodiscard]] virtual CodecId id() const = 0;
  /// As on the command line: "slice", "szx", ...
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Promise promise() const = 0;
  [[nodiscard]] virtual bool takes(DType dtype) const = 0;
  /// False: known, but its library was not there when Laconic was built. Encoding and decoding then throw
  /// Error(unsupported) that names the package.
  [[nodiscard]] virtual bool available() const { return true; }
  /// What a codec with Promise::rate, that was built in, has for arrays with such extents.
  [[nodiscard]] virtual Rates rates(DType, Extents) const { return {}; }
  /// Null for codecs whose streams do not add.
  [[nodiscard]] virtual const LinearCodec* linear() const { return nullptr; }

  /// Most bytes that encode() writes: with a frame's header at most 1.02 * raw + 64.
  [[nodiscard]] virtual std::size_t capacity(DType dtype, std::size_t count) const = 0;
  /// Most elements that a payload of so many bytes can stand for: more is a lie.
  [[nodiscard]] virtual std::uint64_t most_elements(std::uint64_t payload_bytes) const = 0;
  /// Returns the payload's bytes; Error(too_small) when out cannot hold it. `grid` as grid_for() gave it. May show what
  /// it writes, as sums do; the witness may be null.
  virtual std::size_t encode(ConstArray x, const Grid& grid, Extents extents, CodecMutBytes out, int threads,
                             Witness* witness) const = 0;
  /// Throws Error(corrupt) when the payload's parts do not fit together. (Decoding finds out the rest.)
  virtual void check(const Coded& coded, CodecBytes payload) const = 0;
  /// Decodes elements [first, first + y.count) to y. first is a multiple of 2048. Reads only the payload and writes
  /// only y, whatever the payload holds; Error(corrupt) when that is nothing that this codec wrote.
  virtual void decode(const Coded& coded, CodecBytes payload, std::size_t first, MutArray y, int threads) const = 0;
};

const Codec& slice_codec();

/// All that there are, by number, those that were not built in too.
std::span<const Codec* const> all_codecs();

/// Null for a number that is none.
const Codec* find_codec(CodecId id);

/// Throws Error(invalid_argument) that lists the names.
const Codec& find_codec(std::string_view name);

/// Throws Error(unsupported) that says which codecs would do where this one does not take the dtype.
void require_dtype(const Codec& codec, DType dtype);

/// The grid that a codec is given for data on `grid`: a lossless codec's is lossless. For a rate codec `grid` must be
/// one of rate_grid(), for a lossless one it must not, else Error(unsupported). A rate codec's has the highest of its
/// rates() that keeps the ratio; Error(unsupported) where none does. One that keeps bounds may have such a grid too:
/// its frames are then on the finest that keeps the ratio (rate_control.h).
Grid grid_for(const Codec& codec, const Grid& grid, Extents extents = {});

/// What becomes of data that no bound brings to a ratio.
enum class BeyondRatio { refused, lossless };

/// A ratio in place of a bound: step holds the bits per value, qbits what is beyond, and the bound is infinite.
Grid rate_grid(DType dtype, double ratio, BeyondRatio beyond = BeyondRatio::refused);
/// Of one of these.
inline BeyondRatio beyond_ratio_of(const Grid& rate) {
  return rate.qbits == 0 ? BeyondRatio::refused : BeyondRatio::lossless;
}

/// From what a user asks for to what a codec is given, for values of this range. Throws Error(unsupported) for a bound
/// that the codec has no use for, saying which kind would do.
Grid grid_for(const Codec& codec, DType dtype, const Bound& bound, const Range& range, Extents extents = {});

}  // namespace laconic
