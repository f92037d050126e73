// The grid: which real numbers an error-bounded stream can say. Streams on the same grid can be added as integers.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace laconic {

/// value = q * step, rounded once to the dtype. step == 0 means lossless (the integers are order-mapped bit patterns).
struct Grid {
  DType dtype = DType::f32;
  double step = 0;   ///< representable in the arithmetic type (f32 for f32/f16/bf16, f64 for f64)
  double bound = 0;  ///< promised |x - q * step| per operand, checked for every value while encoding
  int qbits = 0;     ///< -2^qbits <= q < 2^qbits for an operand; a sum of n stays within n * 2^qbits

  [[nodiscard]] bool lossless() const { return step == 0; }
  /// Two streams can be added when their values lie on the same grid points.
  [[nodiscard]] bool same_points(const Grid& o) const { return dtype == o.dtype && step == o.step; }
};

/// The widest grid that keeps `bound` for values up to `max_abs` (pass infinity when unknown: the step is then shaved
/// by 1/64 instead of by the rounding of max_abs). bound == 0, an integer dtype, or a bound too small for the dtype's
/// arithmetic give the lossless grid. Throws Error(invalid_argument) for a negative or NaN bound.
Grid make_grid(DType dtype, double bound, double max_abs);

/// Powers of two that the steps of a float type's grids lie between: steps, their inverses and all differences are
/// normal numbers then.
struct StepExponents {
  int least, most;
};
constexpr StepExponents step_exponents(DType dtype) {
  return dtype == DType::f64 ? StepExponents{-900, 900} : StepExponents{-110, 120};
}

/// True when the sum of `operands` streams on this grid stays within the integers that `add` and decoding can hold.
bool sum_fits(const Grid& grid, std::uint64_t operands);

/// Whether such a sum needs 64-bit integers; for one operand: whether encoding does.
bool needs_wide_integers(const Grid& grid, std::uint64_t operands);

}  // namespace laconic
