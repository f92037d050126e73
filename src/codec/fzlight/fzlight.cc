// fZ-light (SZp), the codec of the ZCCL collectives (J. Huang et al.; github.com/szcompressor/SZp), in the pipelined
// form that ZCCL gave it: chunks of 5120 values with an index of their sizes in front. Values become integers by
// truncation, in steps of the bound; each is predicted by the one before (1-D Lorenzo); blocks of 32 differences share
// a code length of one byte, for the largest of them; then come 32 signs and the magnitudes, whole bytes first and the
// bits that are left over shifted together.
//
// Ours: every value is checked with the decoder's arithmetic. A block with a value that fails (too large for the
// integers, NaN, infinite, rounded out of the bound) is stored as it is. And nothing is read or written out of bounds.
//
// A piece is the integer of its first value (4 bytes, f64: 8), and for each block a u8 code length c:
//   0        all differences are 0
//   1..      u32 signs, bit i for value i; c / 8 times 32 bytes: byte 0 of all magnitudes, byte 1, ...; 32 times c % 8
//            bits: the magnitudes' upper bits, value i from bit i * (c % 8) on
//   255      the elements follow as they are; the next block is predicted by the integer before this one
#include <array>
#include <bit>
#include <cmath>

#include "codec/float_check.h"
#include "codec/piecewise.h"
#include "codec/registry.h"
#include "codec/vectorised.h"

namespace laconic {
namespace {

constexpr std::size_t block_values = 32;
constexpr std::size_t piece_size = 5120;
constexpr int length_raw = 255;

template <class T>
struct Scale {
  T step;     ///< of a grid as others use it this is half the step: the bound, shaved
  T inverse;  ///< 1 / step
  T bound;    ///< for the check
  T limit;    ///< integers stay below it in magnitude, so that their differences fit
};

/// Gathers r < 8 bits from each of 8 bytes (whose upper bits are 0) into the low r bytes, and back.
LACONIC_INLINE std::uint64_t gathered(std::uint64_t x, int r) {
  x = (x & 0x00FF00FF00FF00FFU) | (x & 0xFF00FF00FF00FF00U) >> (8 - r);
  x = (x & 0x0000FFFF0000FFFFU) | (x & 0xFFFF0000FFFF0000U) >> (16 - 2 * r);
  return (x & 0x00000000FFFFFFFFU) | (x & 0xFFFFFFFF00000000U) >> (32 - 4 * r);
}
LACONIC_INLINE std::uint64_t spread(std::uint64_t x, int r) {
  const std::uint64_t one = (1U << r) - 1;
  const std::uint64_t two = (1U << 2 * r) - 1;
  const std::uint64_t four = (std::uint64_t{1} << 4 * r) - 1;
  x = (x & four) | (x >> (4 * r) & four) << 32;
  x = (x & (two | two << 32)) | (x & (two | two << 32) << (2 * r)) << (16 - 2 * r);
  const std::uint64_t ones = one | one << 16 | one << 32 | one << 48;
  return (x & ones) | (x & ones << r) << (8 - r);
}

/// The integers of a block; q[0] is the one before. False: a value is out of the bound.
template <class T>
LACONIC_INLINE bool quantise(const T* v, const Scale<T>& s, SignedOf<T>* q) {
  using S = SignedOf<T>;
  using U = UnsignedOf<T>;
  U bad = 0;
  for (std::size_t i = 0; i < block_values; ++i) {
    const T scaled = v[i] * s.inverse;
    const T size = scaled < 0 ? -scaled : scaled;
    const auto integer = static_cast<S>(size < s.limit ? scaled : T{0});
    const T difference = v[i] - static_cast<T>(integer) * s.step;
    const T error = difference < 0 ? -difference : difference;
    bad |= error <= s.bound ? U{0} : U{1};
    q[i + 1] = integer;
  }
  return bad == 0;
}

/// A block's differences as code length, signs and magnitudes. Returns the end.
template <class T>
LACONIC_INLINE std::uint8_t* put_differences(const SignedOf<T>* q, std::uint8_t* out) {
  using S = SignedOf<T>;
  using U = UnsignedOf<T>;
  std::array<U, block_values> magnitude;
  std::array<std::uint8_t, block_values> bytes;
  U any = 0;
  for (std::size_t i = 0; i < block_values; ++i) {
    const S d = q[i + 1] - q[i];
    const S sign = d >> (8 * sizeof(S) - 1);
    magnitude[i] = static_cast<U>((d ^ sign) - sign);
    bytes[i] = static_cast<std::uint8_t>(sign & 1);
    any |= magnitude[i];
  }
  const int length = static_cast<int>(std::bit_width(any));
  *out++ = static_cast<std::uint8_t>(length);
  if (length == 0) return out;
  for (std::size_t g = 0; g < block_values / 8; ++g)
    out[g] = static_cast<std::uint8_t>(gathered(load_as<std::uint64_t>(&bytes[8 * g]), 1));
  out += block_values / 8;
  const int whole = length / 8;
  for (int k = 0; k < whole; ++k, out += block_values)
    for (std::size_t i = 0; i < block_values; ++i) out[i] = static_cast<std::uint8_t>(magnitude[i] >> (8 * k));
  const int rest = length % 8;
  if (rest == 0) return out;
  for (std::size_t i = 0; i < block_values; ++i) bytes[i] = static_cast<std::uint8_t>(magnitude[i] >> (8 * whole));
  for (std::size_t g = 0; g < block_values / 8; ++g)
    store_as(out + g * static_cast<std::size_t>(rest), gathered(load_as<std::uint64_t>(&bytes[8 * g]), rest));
  return out + block_values / 8 * static_cast<std::size_t>(rest);
}

/// A block as what it is: differences, or the elements. q[0] is the integer before; if the block is stored as it is,
/// that becomes its last. Returns the end.
template <class T>
LACONIC_INLINE std::uint8_t* put_block(const std::uint8_t* x, std::size_t n, bool held, SignedOf<T>* q,
                                       std::uint8_t* out) {
  if (held) {
    std::uint8_t* const end = put_differences<T>(q, out);
    if (static_cast<std::size_t>(end - out) <= n * sizeof(T)) return end;
  }
  q[block_values] = q[0];
  *out = length_raw;
  std::memcpy(out + 1, x, n * sizeof(T));
  return out + 1 + n * sizeof(T);
}

template <class T>
LACONIC_INLINE std::size_t encode_piece(const std::uint8_t* x, std::size_t n, const Scale<T>& s, std::uint8_t* out) {
  using S = SignedOf<T>;
  // Several blocks are quantised before the first of them is coded: their integers have left the pipeline by then.
  constexpr std::size_t blocks = 8;
  constexpr std::size_t values = blocks * block_values;
  std::array<T, values> v;
  std::array<S, values + 1> q;
  std::array<bool, blocks> held;
  q[0] = 0;
  std::uint8_t* at = out + sizeof(S);
  for (std::size_t first = 0; first < n; first += values) {
    const std::size_t count = n - first < values ? n - first : values;
    const std::uint8_t* const from = x + first * sizeof(T);
    if (count == values) {
      std::memcpy(v.data(), from, sizeof v);
    } else {
      std::memcpy(v.data(), from, count * sizeof(T));
      for (std::size_t i = count; i < values; ++i) v[i] = v[count - 1];
    }
    for (std::size_t b = 0; b < blocks; ++b) held[b] = quantise(&v[b * block_values], s, &q[b * block_values]);
    if (first == 0) {
      q[0] = held[0] ? q[1] : S{0};
      store_as(out, q[0]);
    }
    for (std::size_t b = 0; b * block_values < count; ++b) {
      const std::size_t begin = b * block_values;
      const std::size_t size = count - begin < block_values ? count - begin : block_values;
      at = put_block<T>(from + begin * sizeof(T), size, held[b], &q[begin], at);
    }
    q[0] = q[values];
  }
  return static_cast<std::size_t>(at - out);
}

/// The integers of a block that is not stored as it is, from signs and magnitudes; q0 is the one before.
template <class T>
LACONIC_INLINE void get_integers(const std::uint8_t* in, int length, UnsignedOf<T> q0, SignedOf<T>* q) {
  using S = SignedOf<T>;
  using U = UnsignedOf<T>;
  std::array<U, block_values> magnitude{};
  std::array<std::uint8_t, block_values> bytes;
  std::array<std::uint8_t, block_values> signs;
  for (std::size_t g = 0; g < block_values / 8; ++g) store_as(&signs[8 * g], spread(in[g], 1));
  in += block_values / 8;
  const int whole = length / 8;
  for (int k = 0; k < whole; ++k, in += block_values)
    for (std::size_t i = 0; i < block_values; ++i) magnitude[i] |= static_cast<U>(in[i]) << (8 * k);
  const int rest = length % 8;
  if (rest != 0) {
    for (std::size_t g = 0; g < block_values / 8; ++g)
      store_as(&bytes[8 * g], spread(load_as<std::uint64_t>(in + g * static_cast<std::size_t>(rest)), rest));
    for (std::size_t i = 0; i < block_values; ++i) magnitude[i] |= static_cast<U>(bytes[i]) << (8 * whole);
  }
  for (std::size_t i = 0; i < block_values; ++i) {
    const U sign = U{0} - signs[i];
    magnitude[i] = (magnitude[i] ^ sign) - sign;
  }
  for (std::size_t i = 0; i < block_values; ++i) {
    q0 += magnitude[i];
    q[i] = static_cast<S>(q0);
  }
}

template <class T>
LACONIC_INLINE bool decode_piece(CodecBytes in, std::uint8_t* y, std::size_t n, const Scale<T>& s) {
  using S = SignedOf<T>;
  if (in.size() < sizeof(S)) return false;
  const std::uint8_t* at = in.data() + sizeof(S);
  const std::uint8_t* const end = in.data() + in.size();
  auto before = load_as<S>(in.data());
  std::array<S, block_values> q;
  std::array<T, block_values> v;
  for (std::size_t first = 0; first < n; first += block_values) {
    const std::size_t count = n - first < block_values ? n - first : block_values;
    std::uint8_t* to = y + first * sizeof(T);
    if (at >= end) return false;
    const int length = *at++;
    const auto left = static_cast<std::size_t>(end - at);
    if (length == length_raw) {
      if (left < count * sizeof(T)) return false;
      std::memcpy(to, at, count * sizeof(T));
      at += count * sizeof(T);
      continue;
    }
    if (length > static_cast<int>(8 * sizeof(S))) return false;
    if (length == 0) {
      v.fill(static_cast<T>(before) * s.step);
    } else {
      const std::size_t size = block_values / 8 * static_cast<std::size_t>(1 + length);
      if (left < size) return false;
      get_integers<T>(at, length, static_cast<UnsignedOf<T>>(before), q.data());
      at += size;
      before = q[block_values - 1];
      for (std::size_t i = 0; i < block_values; ++i) v[i] = static_cast<T>(q[i]) * s.step;
    }
    if (count == block_values) {
      std::memcpy(to, v.data(), sizeof v);
    } else {
      std::memcpy(to, v.data(), count * sizeof(T));
    }
  }
  return at == end;
}

template <class T>
class FzlightCoder final : public PieceCoder {
 public:
  explicit FzlightCoder(const Grid& grid) {
    const auto step = static_cast<T>(grid.step / 2);
    scale_ = {step, T{1} / step, checked_bound<T>(grid.bound), std::ldexp(T{1}, sizeof(T) == 8 ? 53 : 30)};
  }
  [[nodiscard]] std::size_t limit(std::size_t n) const override {
    constexpr std::size_t worst_block = 1 + block_values / 8 * (1 + 8 * sizeof(T));
    return sizeof(T) + (n + block_values - 1) / block_values * worst_block;
  }
  std::size_t encode(const std::uint8_t* x, std::size_t n, std::uint8_t* out) override {
    return encode_(x, n, scale_, out);
  }
  bool decode(CodecBytes in, std::uint8_t* y, std::size_t n) override { return decode_(in, y, n, scale_); }

 private:
  Scale<T> scale_;
  decltype(&encode_piece<T>) encode_ = variant<&encode_piece<T>>();
  decltype(&decode_piece<T>) decode_ = variant<&decode_piece<T>>();
};

/// Without a bound there is no step: all is stored as it is.
class RawCoder final : public PieceCoder {
 public:
  [[nodiscard]] std::size_t limit(std::size_t) const override { return 0; }
  std::size_t encode(const std::uint8_t*, std::size_t, std::uint8_t*) override { return 0; }
  bool decode(CodecBytes, std::uint8_t*, std::size_t) override { return false; }
};

class FzlightCodec final : public PiecewiseCodec {
 public:
  [[nodiscard]] CodecId id() const override { return CodecId::fzlight; }
  [[nodiscard]] std::string_view name() const override { return "fzlight"; }
  [[nodiscard]] Promise promise() const override { return Promise::bounded; }
  [[nodiscard]] bool takes(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }

 protected:
  [[nodiscard]] std::size_t piece_values(DType, Extents) const override { return piece_size; }
  [[nodiscard]] std::unique_ptr<PieceCoder> coder(const Grid& grid, Extents) const override {
    if (grid.lossless()) return std::make_unique<RawCoder>();
    if (grid.dtype == DType::f64) return std::make_unique<FzlightCoder<double>>(grid);
    return std::make_unique<FzlightCoder<float>>(grid);
  }
};

}  // namespace

const Codec& fzlight_codec() {
  static const FzlightCodec codec;
  return codec;
}

}  // namespace laconic
