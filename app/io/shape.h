// What an array is: element type and extents. Shared by every file format of the command.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/codec.h"
#include "core/dtype.h"

namespace laconic::app {

using Dims = std::vector<std::uint64_t>;

/// Most extents that a file may declare (NumPy's own limit).
inline constexpr std::size_t max_dims = 64;

struct Shape {
  DType dtype = DType::f32;
  Dims dims;  ///< slowest first; empty: a single value

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// Elements of an array with these extents. Throws Failure(bad_data) when the bytes would exceed 2^63.
std::uint64_t count_of(const Shape& shape, const std::string& file);

/// "12x200x400" (also "12,200,400") to extents. Throws Failure(usage) that shows the text.
Dims parse_dims(std::string_view text);
/// "12x200x400"; "scalar" for no extents.
std::string to_string(const Dims& dims);

/// The two fastest axes, for codecs that look across rows.
Extents extents_of(const Dims& dims);

}  // namespace laconic::app
