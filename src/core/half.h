// 16-bit floats <-> f32, in plain integer arithmetic: the definition that every faster conversion must agree with.
// Widening is exact. Narrowing rounds to nearest, ties to even; what is too large becomes infinity, what is NaN stays a
// NaN of the same sign whose payload keeps its upper bits and is made quiet.
#pragma once

#include <bit>
#include <cstdint>

namespace laconic {

constexpr float f32_of_bf16(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }

/// Of a NaN alone.
constexpr std::uint16_t bf16_of_nan(float x) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(x) >> 16) | 0x40U);
}

constexpr std::uint16_t bf16_of_f32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return bf16_of_nan(x);
  // Half of the last kept place, one less when that place is even: the carry into it is the rounding.
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

constexpr float f32_of_f16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1fU;
  const std::uint32_t fraction = h & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  // Zero or subnormal: fraction * 2^-24, exact in f32.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

/// Of a NaN alone.
constexpr std::uint16_t f16_of_nan(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) | 0x7e00U | ((bits >> 13) & 0x3ffU));
}

constexpr std::uint16_t f16_of_f32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return f16_of_nan(x);
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // 65520 and more
  if (magnitude >= 0x38800000U) {                                                   // 2^-14 and more: normal
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
  }
  if (magnitude < 0x33000000U) return sign;  // less than half of the smallest subnormal
  // Subnormal: shift the full significand to units of 2^-24 and round.
  const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
  const std::uint32_t shift = 126 - (magnitude >> 23);
  const std::uint32_t kept = significand >> shift;
  const std::uint32_t rest = significand & ((1U << shift) - 1);
  const std::uint32_t half = 1U << (shift - 1);
  const std::uint32_t up = (rest > half || (rest == half && (kept & 1U) != 0)) ? 1 : 0;
  return static_cast<std::uint16_t>(sign | (kept + up));
}

}  // namespace laconic
