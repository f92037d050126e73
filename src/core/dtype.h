// Element types that Laconic understands, and their sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace laconic {

/// The numeric values are part of the frame format (docs/format.md) and of the C API: never renumber.
enum class DType : std::uint8_t {
  f32 = 1,
  f64 = 2,
  f16 = 3,
  bf16 = 4,
  i32 = 5,
  i64 = 6,
  u32 = 7,
  u64 = 8,
};

/// Bytes of one element; 0 for a value that is no DType.
constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return 8;
  }
  return 0;
}

constexpr bool is_float(DType t) { return t >= DType::f32 && t <= DType::bf16; }
constexpr bool is_valid(DType t) { return size_of(t) != 0; }

/// "f32", "f64", "f16", "bf16", "i32", "i64", "u32", "u64"; "?" for a value that is no DType.
std::string_view name_of(DType t);

/// Accepts the names above, NumPy's ("float32", "<f4", ...) and C's ("float", "double"). Throws
/// Error(invalid_argument).
DType parse_dtype(std::string_view text);

}  // namespace laconic
