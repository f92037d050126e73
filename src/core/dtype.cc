#include "core/dtype.h"

#include <array>
#include <string>

#include "core/error.h"

namespace laconic {
namespace {

struct DTypeRow {
  DType type;
  std::string_view name;
  std::string_view numpy_code;  ///< without the byte-order mark
  std::string_view numpy_name;
  std::string_view c_name;
};

// NumPy has no bfloat16 of its own; "bfloat16" is what ml_dtypes and PyTorch call it. "half" is CUDA's name.
constexpr std::array<DTypeRow, 8> dtype_rows = {{
    {DType::f32, "f32", "f4", "float32", "float"},
    {DType::f64, "f64", "f8", "float64", "double"},
    {DType::f16, "f16", "f2", "float16", "half"},
    {DType::bf16, "bf16", "", "bfloat16", ""},
    {DType::i32, "i32", "i4", "int32", "int"},
    {DType::i64, "i64", "i8", "int64", "long"},
    {DType::u32, "u32", "u4", "uint32", "unsigned"},
    {DType::u64, "u64", "u8", "uint64", "unsigned long"},
}};

bool matches(const DTypeRow& row, std::string_view text, std::string_view code) {
  return text == row.name || text == row.numpy_name || (!row.numpy_code.empty() && code == row.numpy_code) ||
         (!row.c_name.empty() && text == row.c_name);
}

}  // namespace

std::string_view name_of(DType t) {
  for (const DTypeRow& row : dtype_rows) {
    if (row.type == t) return row.name;
  }
  return "?";
}

DType parse_dtype(std::string_view text) {
  if (text.starts_with('>')) {
    throw Error(Code::unsupported,
                "dtype '" + std::string(text) + "' is big-endian; convert the data to little-endian");
  }
  const bool marked = text.starts_with('<') || text.starts_with('=');
  const std::string_view code = marked ? text.substr(1) : text;
  for (const DTypeRow& row : dtype_rows) {
    if (marked ? !code.empty() && code == row.numpy_code : matches(row, text, code)) return row.type;
  }
  throw Error(Code::invalid_argument, "dtype '" + std::string(text) +
                                          "' is unknown; want f32, f64, f16, bf16, i32, i64, u32 or u64 "
                                          "(NumPy's names and C's work too)");
}

}  // namespace laconic
