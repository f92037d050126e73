// A typed view of a caller's contiguous memory. Owns nothing.
#pragma once

#include <cstddef>

#include "core/dtype.h"

namespace laconic {

/// `count` elements of `dtype` at `data` (any alignment; may be null when count is 0).
struct ConstArray {
  const void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;
  [[nodiscard]] std::size_t bytes() const { return count * size_of(dtype); }
};

struct MutArray {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;
  [[nodiscard]] std::size_t bytes() const { return count * size_of(dtype); }
  operator ConstArray() const { return {data, count, dtype}; }  // NOLINT(google-explicit-constructor)
};

}  // namespace laconic
