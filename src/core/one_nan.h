// The NaN that sums, products and extremes of floats give.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/dtype.h"

namespace laconic {

/// Which NaN comes of several operands depends on their order, and on the processor: all become the same one.
template <typename Float>
Float one_nan(Float v) {
  return std::isnan(v) ? std::numeric_limits<Float>::quiet_NaN() : v;
}

/// The same of an element of a float type, by its bits.
struct OneNan {
  std::uint64_t magnitude;  ///< all bits but the sign
  std::uint64_t infinity;
  std::uint64_t nan;
  constexpr explicit OneNan(DType t) {
    const int bits = static_cast<int>(8 * size_of(t));
    const int mantissa = t == DType::f64 ? 52 : t == DType::f32 ? 23 : t == DType::f16 ? 10 : 7;
    magnitude = (std::uint64_t{1} << (bits - 1)) - 1;
    infinity = magnitude >> mantissa << mantissa;
    nan = infinity | std::uint64_t{1} << (mantissa - 1);
  }
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t element) const {
    return (element & magnitude) > infinity ? nan : element;
  }
};

}  // namespace laconic
