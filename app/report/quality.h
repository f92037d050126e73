// How far a reconstruction is from the original: the figures that every report of the command prints.
#pragma once

#include <cstdint>
#include <optional>

#include "core/array.h"
#include "core/range.h"

namespace laconic::app {

/// Accumulates over pieces of an array. NaN and infinities must come back exactly and the fill value within the bound:
/// one that does not is a violation. Neither enters the errors or the range.
struct Quality {
  double max_error = 0;          ///< over finite values, in double
  long double sum_squares = 0;   ///< of the errors of finite values; those of f64 may be beyond a double
  std::uint64_t compared = 0;    ///< finite values
  std::uint64_t violations = 0;  ///< outside the bound, or NaN or infinite and changed
  double min = 0;                ///< of the finite original values
  double max = 0;

  [[nodiscard]] double range() const { return max - min; }
  /// Peak signal to noise ratio in dB with the range as peak; infinity for an exact copy.
  [[nodiscard]] double psnr() const;
  /// Root mean square error over the range; 0 for constant data that came back exactly.
  [[nodiscard]] double nrmse() const;
  [[nodiscard]] double rmse() const;
};

/// Adds the comparison of two pieces of the same dtype and count. `bound` is absolute; 0 demands equal bits.
void compare(Quality& q, ConstArray original, ConstArray decoded, double bound, std::optional<double> fill);

/// Range of the finite values of x that are not the fill value.
Range scan_without(ConstArray x, std::optional<double> fill);

/// How many elements are this value.
std::uint64_t occurrences(ConstArray x, double value);

/// v as the nearest value of the dtype: 1e20 itself is no f32, -9999 no f16.
double rounded_to(DType dtype, double v);

/// Element i as a double.
double value_at(ConstArray x, std::size_t i);

}  // namespace laconic::app
