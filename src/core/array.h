// A typed view of a caller's contiguous memory. Owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace laconic {

/// Elements that an array can have. Of one that has no more, no number of bytes wraps.
constexpr std::size_t most_elements_of(DType valid) { return std::size_t{PTRDIFF_MAX} / size_of(valid); }

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
