// What arrays are made of: part of laconic.hpp.
#pragma once

#include <laconic/laconic.h>

#include <cstdint>

namespace laconic {
inline namespace public_v1 {

/// What an element of type T is; 0: none. Arrays of f16 and bf16, which C++20 has no types for, take the C calls.
template <typename T>
inline constexpr laconic_dtype dtype_v = laconic_dtype{};
template <>
inline constexpr laconic_dtype dtype_v<float> = LACONIC_F32;
template <>
inline constexpr laconic_dtype dtype_v<double> = LACONIC_F64;
template <>
inline constexpr laconic_dtype dtype_v<std::int32_t> = LACONIC_I32;
template <>
inline constexpr laconic_dtype dtype_v<std::int64_t> = LACONIC_I64;
template <>
inline constexpr laconic_dtype dtype_v<std::uint32_t> = LACONIC_U32;
template <>
inline constexpr laconic_dtype dtype_v<std::uint64_t> = LACONIC_U64;
template <typename T>
concept Element = dtype_v<T> != laconic_dtype{};

template <Element T>
constexpr laconic_dtype dtype_of() {
  return dtype_v<T>;
}

}  // namespace public_v1
}  // namespace laconic
