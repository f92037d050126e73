// What arrays are made of: part of laconic.hpp.
#pragma once

#include <laconic/laconic.h>

#include <bit>
#include <cstdint>
#include <type_traits>
#ifdef __STDCPP_BFLOAT16_T__
#include <stdfloat>
#endif

namespace laconic {
inline namespace public_v1 {

/// IEEE 754's binary16. To float exactly; from float to the nearest, ties to even, and a NaN stays one.
struct f16 {
  std::uint16_t bits;

  f16() = default;
  constexpr explicit f16(float x) : bits(nearest(x)) {}
  constexpr operator float() const {  // NOLINT(google-explicit-constructor): nothing is lost
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fU;
    const std::uint32_t fraction = bits & 0x3ffU;
    if (exponent == 0) return (sign != 0 ? -0x1p-24F : 0x1p-24F) * static_cast<float>(fraction);
    const std::uint32_t scale = exponent == 0x1fU ? 0xffU : exponent + 112;
    return std::bit_cast<float>(sign | (scale << 23) | (fraction << 13));
  }

 private:
  static constexpr std::uint16_t nearest(float x) {
    const auto all = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = (all >> 16) & 0x8000U, magnitude = all & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
    if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // 65520 and more
    const std::uint32_t exponent = magnitude >> 23;
    const std::uint32_t subnormal = exponent < 113 ? 113 - exponent : 0;  // places fewer than a normal number has
    if (subnormal > 11) return static_cast<std::uint16_t>(sign);
    const std::uint32_t dropped = 13 + subnormal;
    const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
    // Half of the last kept place, one less when that place is even: the carry into it is the rounding.
    const std::uint32_t rounded = significand + (1U << (dropped - 1)) - 1 + ((significand >> dropped) & 1U);
    return static_cast<std::uint16_t>(sign | (((exponent + subnormal - 113) << 10) + (rounded >> dropped)));
  }
};

/// The upper half of a float. Conversions as f16's.
struct bf16 {
  std::uint16_t bits;

  bf16() = default;
  constexpr explicit bf16(float x) : bits(nearest(std::bit_cast<std::uint32_t>(x))) {}
  constexpr operator float() const {  // NOLINT(google-explicit-constructor): nothing is lost
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  static constexpr std::uint16_t nearest(std::uint32_t x) {
    if ((x & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((x >> 16) | 0x40U);
    return static_cast<std::uint16_t>((x + 0x7fffU + ((x >> 16) & 1U)) >> 16);
  }
};

namespace detail {
template <typename T, typename... Others>
inline constexpr bool is_one_of = (std::is_same_v<T, Others> || ...);

/// All integers of 32 and 64 bits: long and long long are different types, even where both have 64.
template <typename T>
constexpr laconic_dtype integer_dtype() {
  if (is_one_of<T, int, long, long long>) return sizeof(T) == 4 ? LACONIC_I32 : LACONIC_I64;
  if (is_one_of<T, unsigned, unsigned long, unsigned long long>) return sizeof(T) == 4 ? LACONIC_U32 : LACONIC_U64;
  return laconic_dtype{};
}
}  // namespace detail

/// What an element of type T is; 0: none. To be specialised for types of other libraries that have the same bytes.
template <typename T>
inline constexpr laconic_dtype dtype_v = detail::integer_dtype<T>();
template <>
inline constexpr laconic_dtype dtype_v<float> = LACONIC_F32;
template <>
inline constexpr laconic_dtype dtype_v<double> = LACONIC_F64;
template <>
inline constexpr laconic_dtype dtype_v<f16> = LACONIC_F16;
template <>
inline constexpr laconic_dtype dtype_v<bf16> = LACONIC_BF16;
// The compiler's own, of which C++23's std::float16_t and std::bfloat16_t are other names.
#ifdef __FLT16_MANT_DIG__
template <>
inline constexpr laconic_dtype dtype_v<_Float16> = LACONIC_F16;
#endif
#ifdef __STDCPP_BFLOAT16_T__
template <>
inline constexpr laconic_dtype dtype_v<std::bfloat16_t> = LACONIC_BF16;
#elif defined(__BFLT16_MANT_DIG__)
template <>
inline constexpr laconic_dtype dtype_v<__bf16> = LACONIC_BF16;
#endif

template <typename T>
concept Element = dtype_v<T> != laconic_dtype{};

template <Element T>
constexpr laconic_dtype dtype_of() {
  return dtype_v<T>;
}

}  // namespace public_v1
}  // namespace laconic
