// The header of NumPy's .npy files: versions 1 to 3 read, version 1 written. Little-endian and C order only (along one
// axis, Fortran's is the same).
#pragma once

#include <cstdint>
#include <vector>

#include "io/file.h"
#include "io/shape.h"

namespace laconic::app {

struct NpyHeader {
  Shape shape;
  std::uint64_t data_offset = 0;
};

/// True when the file begins with NumPy's magic bytes.
bool is_npy(const InputFile& file);

/// Throws Failure(bad_data) for a damaged header, and for what is not supported (big endian, Fortran order, other
/// types) with how to convert it.
NpyHeader read_npy_header(const InputFile& file);

/// Throws Failure(usage) for bf16, which .npy cannot express.
std::vector<std::uint8_t> make_npy_header(const Shape& shape);

}  // namespace laconic::app
