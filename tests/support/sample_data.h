// Arrays of every dtype in the shapes that a codec meets: fields, noise, exceptions of all sorts. The same kind, dtype,
// count and seed always give the same bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/array.h"
#include "core/half.h"

namespace laconic::test {

enum class Kind {
  smooth,
  noise,
  offset_noise,  // a large offset, little noise
  constant,
  zeros,
  negative_zeros,
  denormals,
  fill_runs,  // one huge value in runs, as land in ocean fields
  several_fills,
  sparse_outliers,
  nan_and_infinity,
  all_nan,
  random_bits,
  huge,  // near the largest finite value: x / step overflows
  ramp,
  quadratic,
  mixed,  // blocks of different kinds side by side
};
inline constexpr std::array all_kinds = {
    Kind::smooth,           Kind::noise,     Kind::offset_noise, Kind::constant,      Kind::zeros,
    Kind::negative_zeros,   Kind::denormals, Kind::fill_runs,    Kind::several_fills, Kind::sparse_outliers,
    Kind::nan_and_infinity, Kind::all_nan,   Kind::random_bits,  Kind::huge,          Kind::ramp,
    Kind::quadratic,        Kind::mixed};

inline std::string_view name_of(Kind k) {
  constexpr std::array<std::string_view, all_kinds.size()> names = {
      "smooth",           "noise",     "offset noise", "constant",      "zeros",
      "negative zeros",   "denormals", "fill runs",    "several fills", "sparse outliers",
      "NaN and infinity", "all NaN",   "random bits",  "huge",          "ramp",
      "quadratic",        "mixed"};
  return names[static_cast<std::size_t>(k)];
}

inline constexpr std::array all_dtypes = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                          DType::i32, DType::i64, DType::u32, DType::u64};

/// splitmix64
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  double symmetric() { return 2 * uniform() - 1; }

 private:
  std::uint64_t state_;
};

/// Owned elements; `offset` bytes before them make them unaligned.
struct Array {
  DType dtype = DType::f32;
  std::size_t count = 0;
  std::size_t offset = 0;
  std::vector<std::uint8_t> bytes;

  Array(DType t, std::size_t n, std::size_t off = 0)
      : dtype(t), count(n), offset(off), bytes(n * size_of(t) + off + 8) {}
  [[nodiscard]] const std::uint8_t* data() const { return bytes.data() + offset; }
  std::uint8_t* data() { return bytes.data() + offset; }
  [[nodiscard]] ConstArray view() const { return {data(), count, dtype}; }
  MutArray view() { return {data(), count, dtype}; }
  [[nodiscard]] std::size_t size_bytes() const { return count * size_of(dtype); }

  [[nodiscard]] std::uint64_t bits(std::size_t i) const {
    std::uint64_t b = 0;
    std::memcpy(&b, data() + i * size_of(dtype), size_of(dtype));
    return b;
  }
  void set_bits(std::size_t i, std::uint64_t b) { std::memcpy(data() + i * size_of(dtype), &b, size_of(dtype)); }
  /// The value of a floating element.
  [[nodiscard]] double value(std::size_t i) const {
    const std::uint64_t b = bits(i);
    switch (dtype) {
      case DType::f64:
        return std::bit_cast<double>(b);
      case DType::f16:
        return f32_of_f16(static_cast<std::uint16_t>(b));
      case DType::bf16:
        return f32_of_bf16(static_cast<std::uint16_t>(b));
      default:
        return std::bit_cast<float>(static_cast<std::uint32_t>(b));
    }
  }
  /// Stores the nearest element; integers are in units of 1/1000.
  void set_value(std::size_t i, double v) {
    switch (dtype) {
      case DType::f64:
        return set_bits(i, std::bit_cast<std::uint64_t>(v));
      case DType::f32:
        return set_bits(i, std::bit_cast<std::uint32_t>(static_cast<float>(v)));
      case DType::f16:
        return set_bits(i, f16_of_f32(static_cast<float>(v)));
      case DType::bf16:
        return set_bits(i, bf16_of_f32(static_cast<float>(v)));
      default:
        set_bits(i, static_cast<std::uint64_t>(std::llround(std::clamp(v, -1e15, 1e15) * 1000)));
    }
  }
  friend bool operator==(const Array& a, const Array& b) {
    return a.dtype == b.dtype && a.count == b.count &&
           (a.count == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
  }
};

/// Exponent and fraction bits of a float dtype.
struct FloatLayout {
  int exponent;
  int fraction;
};
inline FloatLayout layout_of(DType t) {
  switch (t) {
    case DType::f64:
      return {11, 52};
    case DType::f16:
      return {5, 10};
    case DType::bf16:
      return {8, 7};
    default:
      return {8, 23};
  }
}
inline double largest_of(DType t) {
  switch (t) {
    case DType::f64:
      return 1.7e308;
    case DType::f16:
      return 65504;
    default:
      return 3.3e38;
  }
}

/// One of the NaN and infinities of a float dtype.
inline std::uint64_t special_bits(DType t, Random& random) {
  const FloatLayout l = layout_of(t);
  const std::uint64_t infinity = ((std::uint64_t{1} << l.exponent) - 1) << l.fraction;
  const std::uint64_t sign = (random.bits() & 1) << (l.exponent + l.fraction);
  switch (random.below(4)) {
    case 0:
      return infinity | sign;
    case 1:
      return infinity | sign | std::uint64_t{1} << (l.fraction - 1);
    default:
      return infinity | sign | 1 | (random.bits() & ((std::uint64_t{1} << l.fraction) - 1));
  }
}

inline void fill_element(Array& a, std::size_t i, Kind kind, Random& random) {
  const auto x = static_cast<double>(i);
  const double big = std::min(1e30, largest_of(a.dtype) / 2);
  const double field = std::sin(x * 0.01) + 0.2 * std::cos(x * 0.13);
  const std::size_t place = i % 5000;
  const bool is_special = is_float(a.dtype);
  switch (kind) {
    case Kind::smooth:
      return a.set_value(i, field);
    case Kind::noise:
      return a.set_value(i, random.symmetric());
    case Kind::offset_noise:
      return a.set_value(i, 273 + 0.5 * random.symmetric());
    case Kind::constant:
      return a.set_value(i, 0.7);
    case Kind::zeros:
      return a.set_value(i, 0);
    case Kind::negative_zeros:
      if (!is_special) return a.set_value(i, 0);
      return a.set_value(i, random.below(3) != 0 ? -0.0 : 0.0);
    case Kind::denormals:
      if (!is_special) return a.set_bits(i, random.bits() & 15);
      return a.set_bits(i, random.bits() & ((std::uint64_t{1} << (layout_of(a.dtype).fraction - 1)) - 1));
    case Kind::fill_runs:
      return a.set_value(i, place / 37 % 3 == 0 || (place > 2048 && place < 4300) ? big : field);
    case Kind::several_fills:
      return a.set_value(i, place % 200 < 5 ? -big : place % 131 < 4 ? big / 2 : place / 64 % 7 == 0 ? big : field);
    case Kind::sparse_outliers:
      return a.set_value(i, random.below(300) == 0 ? 1e4 * random.symmetric() : field);
    case Kind::nan_and_infinity:
      if (!is_special || random.below(20) != 0) return a.set_value(i, field);
      return a.set_bits(i, special_bits(a.dtype, random));
    case Kind::all_nan:
      if (!is_special) return a.set_bits(i, ~std::uint64_t{0});
      return a.set_value(i, std::numeric_limits<double>::quiet_NaN());
    case Kind::random_bits:
      return a.set_bits(i, random.bits());
    case Kind::huge:
      if (!is_special) return a.set_bits(i, random.bits() | std::uint64_t{7} << (8 * size_of(a.dtype) - 4));
      return a.set_value(i, largest_of(a.dtype) * (0.5 + 0.5 * random.uniform()) * (random.below(2) == 0 ? 1 : -1));
    case Kind::ramp:
      return a.set_value(i, 0.003 * x - 2);
    case Kind::quadratic:
      return a.set_value(i, 1e-7 * (x - 300) * (x - 300));
    case Kind::mixed:
      break;
  }
  const std::size_t which = i / 64 * 7 % (all_kinds.size() - 1);
  fill_element(a, i, all_kinds[which], random);
}

inline Array sample(DType dtype, Kind kind, std::size_t count, std::uint64_t seed = 1, std::size_t offset = 0) {
  Array a(dtype, count, offset);
  Random random(seed * 1000003 + static_cast<std::uint64_t>(kind));
  // Another seed is another field, not only other noise.
  const std::size_t shift = (seed - 1) * 97;
  Array shifted(dtype, count + shift);
  for (std::size_t i = 0; i < count + shift; ++i) fill_element(shifted, i, kind, random);
  if (count > 0) std::memcpy(a.data(), shifted.data() + shift * size_of(dtype), a.size_bytes());
  return a;
}

}  // namespace laconic::test
