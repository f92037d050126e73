// The NaN that sums and products of floats give.
#pragma once

#include <cmath>
#include <limits>

namespace laconic {

/// Which NaN comes of several operands depends on their order, and on the processor: all become the same one.
template <typename Float>
Float one_nan(Float v) {
  return std::isnan(v) ? std::numeric_limits<Float>::quiet_NaN() : v;
}

}  // namespace laconic
