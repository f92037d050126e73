// One pass over the data: what a relative bound and a grid need to know about it.
#pragma once

#include <cstdint>

#include "core/array.h"

namespace laconic {

/// Exact, and independent of how an array is cut: merge(scan(a), scan(b)) == scan(a followed by b).
struct Range {
  double min = 0;                ///< smallest finite value; 0 when there is none
  double max = 0;                ///< largest finite value; 0 when there is none
  std::uint64_t count = 0;       ///< elements seen
  std::uint64_t non_finite = 0;  ///< NaN and infinities among them

  [[nodiscard]] bool empty() const { return count == non_finite; }
  /// max - min; infinity where that overflows (f64 only).
  [[nodiscard]] double width() const { return max - min; }
  [[nodiscard]] double max_abs() const { return max > -min ? max : -min; }

  friend bool operator==(const Range&, const Range&) = default;
};

/// Runs at memory speed (SIMD chosen at run time), on up to so many threads. Integers are reported as doubles, rounded
/// outward.
Range scan(ConstArray x, int threads = 1);
Range merge(const Range& a, const Range& b);

}  // namespace laconic
