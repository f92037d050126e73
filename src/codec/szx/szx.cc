// SZx, after X. Yu et al., "Ultrafast error-bounded lossy compression for scientific datasets" (HPDC 2022), as the
// C-Coll collectives use it: blocks of 128 values. Where all lie within the bound of the mean of the smallest and the
// largest, that mean stands for the block. Otherwise the mean is subtracted, as many leading bits of the differences
// are kept as the exponents of the block's radius and of the bound ask for, and bytes that equal those of the value
// before are left out.
//
// Ours: every value is checked. A block that fails keeps all bits (leading bytes left out as before), or is stored as
// it is. And nothing is read or written out of bounds.
//
// A piece is one bit per block, set for those that are not constant; then for each block
//   constant   the mean
//   other      u8 bits kept; 255: all bits, no mean; 0: the elements follow as they are. Then the mean, two bits per
//              value: leading bytes that are the same as before (0..3), and the other bytes, first to last
#include <array>
#include <bit>

#include "codec/float_check.h"
#include "codec/piecewise.h"
#include "codec/registry.h"
#include "codec/vectorised.h"

namespace laconic {
namespace {

constexpr std::size_t block_values = 128;
constexpr std::size_t piece_blocks = 64;
constexpr std::uint8_t kept_raw = 0;
constexpr std::uint8_t kept_all = 255;

template <class T>
constexpr int bits_of = 8 * static_cast<int>(sizeof(T));
template <class T>
constexpr int exponent_bits = sizeof(T) == 8 ? 11 : 8;

/// The exponent as it is stored.
template <class T>
LACONIC_INLINE int exponent_of(T v) {
  const auto magnitude = std::bit_cast<UnsignedOf<T>>(v) << 1;
  return static_cast<int>(magnitude >> (bits_of<T> - exponent_bits<T>));
}

/// Bit patterns as integers in the order of the values, and back.
template <class S>
LACONIC_INLINE S ordered(S s) {
  return s ^ ((s >> (8 * sizeof(S) - 1)) & static_cast<S>(~std::make_unsigned_t<S>{0} >> 1));
}

template <class T>
struct Ends {
  T low, high;
};

/// The smallest and largest of a block; a NaN is one of them. As integers, because that makes vector instructions.
template <class T>
LACONIC_INLINE Ends<T> ends_of(const T* v) {
  using S = SignedOf<T>;
  constexpr std::size_t lanes = 16;
  std::array<S, lanes> low;
  std::array<S, lanes> high;
  for (std::size_t i = 0; i < lanes; ++i) low[i] = high[i] = ordered(std::bit_cast<S>(v[i]));
  for (std::size_t g = lanes; g < block_values; g += lanes)
    for (std::size_t i = 0; i < lanes; ++i) {
      const S o = ordered(std::bit_cast<S>(v[g + i]));
      low[i] = o < low[i] ? o : low[i];
      high[i] = o > high[i] ? o : high[i];
    }
  for (std::size_t i = 1; i < lanes; ++i) {
    low[0] = low[i] < low[0] ? low[i] : low[0];
    high[0] = high[i] > high[0] ? high[i] : high[0];
  }
  return {std::bit_cast<T>(ordered(low[0])), std::bit_cast<T>(ordered(high[0]))};
}

/// Whether every value comes back within the bound when so many bits of its difference to the mean are kept.
template <class T>
LACONIC_INLINE bool suffices(int kept, const T* v, T mean, T bound) {
  using U = UnsignedOf<T>;
  const U mask = ~U{0} << (bits_of<T> - kept);
  U bad = 0;
  for (std::size_t i = 0; i < block_values; ++i) {
    const T back = std::bit_cast<T>(std::bit_cast<U>(v[i] - mean) & mask) + mean;
    const T difference = v[i] - back;
    const T error = difference < 0 ? -difference : difference;
    bad |= error <= bound ? U{0} : U{1};
  }
  return bad == 0;
}

LACONIC_INLINE std::uint32_t reversed(std::uint32_t v) { return __builtin_bswap32(v); }
LACONIC_INLINE std::uint64_t reversed(std::uint64_t v) { return __builtin_bswap64(v); }

/// Writes the upper `width` bytes of n words, but for those that the word before has too. Returns the end.
template <class U>
LACONIC_INLINE std::uint8_t* put_words(const U* words, std::size_t n, int width, std::uint8_t* out) {
  std::uint8_t* at = out + (n + 3) / 4;
  const int most = width < 3 ? width : 3;
  U before = 0;
  for (std::size_t i = 0; i < n; i += 4) {
    unsigned leads = 0;
    for (std::size_t j = 0; j < 4 && i + j < n; ++j) {
      const U w = words[i + j];
      const int same = std::countl_zero(static_cast<U>(w ^ before)) / 8;
      const int lead = same < most ? same : most;
      leads |= static_cast<unsigned>(lead) << (2 * j);
      store_as<U>(at, reversed(w) >> (8 * lead));  // may write further than the word's bytes
      at += width - lead;
      before = w;
    }
    out[i / 4] = static_cast<std::uint8_t>(leads);
  }
  return at;
}

/// The other way: returns the end, or null where the bytes do not fit.
template <class U>
LACONIC_INLINE const std::uint8_t* get_words(const std::uint8_t* in, const std::uint8_t* end, std::size_t n, int width,
                                             U* words) {
  const std::size_t lead_bytes = (n + 3) / 4;
  if (static_cast<std::size_t>(end - in) < lead_bytes) return nullptr;
  const U upper = ~(width == sizeof(U) ? U{0} : ~U{0} >> (8 * width));
  const std::uint8_t* at = in + lead_bytes;
  U before = 0;
  for (std::size_t i = 0; i < n; i += 4) {
    unsigned leads = in[i / 4];
    if (width == 2 && (leads & leads >> 1 & 0x55U) != 0) return nullptr;
    for (std::size_t j = 0; j < 4 && i + j < n; ++j, leads >>= 2) {
      const int lead = static_cast<int>(leads & 3);
      const U fresh = reversed(load_as<U>(at)) >> (8 * lead);
      before = (before & ~(~U{0} >> (8 * lead))) | (fresh & upper);
      words[i + j] = before;
      at += width - lead;
    }
    if (at > end) return nullptr;  // by less than the slack
  }
  return at;
}

template <class T>
struct BlockIn {
  std::array<T, block_values> v;
  std::size_t n;
};

/// A block that is not constant. Returns the end.
template <class T>
LACONIC_INLINE std::uint8_t* put_block(const BlockIn<T>& b, Ends<T> ends, T mean, T bound, std::uint8_t* out) {
  using U = UnsignedOf<T>;
  const T below = mean - ends.low;
  const T above = ends.high - mean;
  int kept = 1 + exponent_bits<T> + exponent_of(below < above ? above : below) - exponent_of(bound);
  bool mean_serves = bound > 0 && kept > exponent_bits<T> && kept < bits_of<T>;
  // One bit more where the difference itself was rounded.
  if (mean_serves && !suffices(kept, b.v.data(), mean, bound)) {
    ++kept;
    mean_serves = kept < bits_of<T> && suffices(kept, b.v.data(), mean, bound);
  }
  std::array<U, block_values> words;
  std::uint8_t* at = out;
  int width = sizeof(T);
  if (mean_serves) {
    width = (kept + 7) / 8;
    const int shift = 8 * width - kept;
    for (std::size_t i = 0; i < block_values; ++i) words[i] = std::bit_cast<U>(b.v[i] - mean) >> shift;
    *at++ = static_cast<std::uint8_t>(kept);
    store_as(at, mean);
    at += sizeof(T);
  } else {
    for (std::size_t i = 0; i < block_values; ++i) words[i] = std::bit_cast<U>(b.v[i]);
    *at++ = kept_all;
  }
  // What lies below the kept bytes must not count as a difference, nor be written.
  const U upper = ~(width == sizeof(U) ? U{0} : ~U{0} >> (8 * width));
  for (std::size_t i = 0; i < block_values; ++i) words[i] &= upper;
  at = put_words(words.data(), b.n, width, at);
  if (static_cast<std::size_t>(at - out) <= 1 + b.n * sizeof(T)) return at;
  *out = kept_raw;
  std::memcpy(out + 1, b.v.data(), b.n * sizeof(T));
  return out + 1 + b.n * sizeof(T);
}

template <class T>
LACONIC_INLINE std::size_t encode_piece(const std::uint8_t* x, std::size_t n, T bound, std::uint8_t* out) {
  const std::size_t blocks = (n + block_values - 1) / block_values;
  std::memset(out, 0, (blocks + 7) / 8);
  std::uint8_t* at = out + (blocks + 7) / 8;
  BlockIn<T> b;
  for (std::size_t k = 0; k < blocks; ++k) {
    b.n = n - k * block_values;
    const std::uint8_t* from = x + k * block_values * sizeof(T);
    if (b.n >= block_values) {
      b.n = block_values;
      std::memcpy(b.v.data(), from, block_values * sizeof(T));
    } else {
      std::memcpy(b.v.data(), from, b.n * sizeof(T));
      for (std::size_t i = b.n; i < block_values; ++i) b.v[i] = b.v[b.n - 1];
    }
    const Ends<T> ends = ends_of(b.v.data());
    const bool equal = std::bit_cast<UnsignedOf<T>>(ends.low) == std::bit_cast<UnsignedOf<T>>(ends.high);
    const T mean = equal ? ends.low : T{0.5} * ends.low + T{0.5} * ends.high;
    if (equal || (bound > 0 && mean - ends.low <= bound && ends.high - mean <= bound)) {
      store_as(at, mean);
      at += sizeof(T);
    } else {
      out[k / 8] |= static_cast<std::uint8_t>(1U << (k % 8));
      at = put_block(b, ends, mean, bound, at);
    }
  }
  return static_cast<std::size_t>(at - out);
}

/// A block that is not constant: its values, or null.
template <class T>
LACONIC_INLINE const std::uint8_t* get_block(const std::uint8_t* in, const std::uint8_t* end, std::size_t n,
                                             std::uint8_t* y) {
  using U = UnsignedOf<T>;
  if (in == end) return nullptr;
  const int kept = *in++;
  const auto left = static_cast<std::size_t>(end - in);
  if (kept == kept_raw) {
    if (left < n * sizeof(T)) return nullptr;
    std::memcpy(y, in, n * sizeof(T));
    return in + n * sizeof(T);
  }
  std::array<U, block_values> words;
  if (kept == kept_all) {
    in = get_words(in, end, n, static_cast<int>(sizeof(T)), words.data());
    if (in != nullptr) std::memcpy(y, words.data(), n * sizeof(T));
    return in;
  }
  if (kept <= exponent_bits<T> || kept >= bits_of<T> || left < sizeof(T)) return nullptr;
  const T mean = load_as<T>(in);
  const int width = (kept + 7) / 8;
  in = get_words(in + sizeof(T), end, n, width, words.data());
  if (in == nullptr) return nullptr;
  const int shift = 8 * width - kept;
  std::array<T, block_values> v;
  for (std::size_t i = 0; i < n; ++i) v[i] = std::bit_cast<T>(words[i] << shift) + mean;
  std::memcpy(y, v.data(), n * sizeof(T));
  return in;
}

template <class T>
LACONIC_INLINE bool decode_piece(CodecBytes in, std::uint8_t* y, std::size_t n) {
  const std::size_t blocks = (n + block_values - 1) / block_values;
  const std::size_t head = (blocks + 7) / 8;
  if (in.size() < head) return false;
  const std::uint8_t* at = in.data() + head;
  const std::uint8_t* const end = in.data() + in.size();
  for (std::size_t k = 0; k < blocks; ++k) {
    const std::size_t first = k * block_values;
    const std::size_t count = n - first < block_values ? n - first : block_values;
    std::uint8_t* to = y + first * sizeof(T);
    if ((in[k / 8] >> (k % 8) & 1) != 0) {
      at = get_block<T>(at, end, count, to);
      if (at == nullptr) return false;
    } else {
      if (static_cast<std::size_t>(end - at) < sizeof(T)) return false;
      const T mean = load_as<T>(at);
      at += sizeof(T);
      for (std::size_t i = 0; i < count; ++i) store_as(to + i * sizeof(T), mean);
    }
  }
  return at == end;
}

template <class T>
class SzxCoder final : public PieceCoder {
 public:
  explicit SzxCoder(const Grid& grid) : bound_(grid.lossless() ? T{0} : checked_bound<T>(grid.bound)) {}
  [[nodiscard]] std::size_t limit(std::size_t n) const override {
    constexpr std::size_t worst_block = 1 + sizeof(T) + block_values / 4 + block_values * sizeof(T);
    return (n + block_values - 1) / block_values * (worst_block + 1);
  }
  std::size_t encode(const std::uint8_t* x, std::size_t n, std::uint8_t* out) override {
    return encode_(x, n, bound_, out);
  }
  bool decode(CodecBytes in, std::uint8_t* y, std::size_t n) override { return decode_(in, y, n); }

 private:
  T bound_;
  decltype(&encode_piece<T>) encode_ = variant<&encode_piece<T>>();
  decltype(&decode_piece<T>) decode_ = variant<&decode_piece<T>>();
};

class SzxCodec final : public PiecewiseCodec {
 public:
  [[nodiscard]] CodecId id() const override { return CodecId::szx; }
  [[nodiscard]] std::string_view name() const override { return "szx"; }
  [[nodiscard]] Promise promise() const override { return Promise::bounded; }
  [[nodiscard]] bool takes(DType dtype) const override { return dtype == DType::f32 || dtype == DType::f64; }

 protected:
  [[nodiscard]] std::size_t piece_values(DType, Extents) const override { return piece_blocks * block_values; }
  [[nodiscard]] std::unique_ptr<PieceCoder> coder(const Grid& grid, Extents) const override {
    if (grid.dtype == DType::f64) return std::make_unique<SzxCoder<double>>(grid);
    return std::make_unique<SzxCoder<float>>(grid);
  }
};

}  // namespace

const Codec& szx_codec() {
  static const SzxCodec codec;
  return codec;
}

}  // namespace laconic
