#include "codec/grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/shortest.h"

namespace laconic {
namespace {

/// What the grid must know of a float type and of the arithmetic that its values are computed in.
struct Arithmetic {
  int digits;        ///< significant bits of the element
  int min_exponent;  ///< exponent of the last place of the smallest elements
  int max_qbits;     ///< integers below 2^max_qbits are found by adding 1.5 * 2^(digits - 1) of the arithmetic type
};

Arithmetic arithmetic_of(DType t) {
  switch (t) {
    case DType::f64:
      return {53, -1074, 50};
    case DType::f16:
      return {11, -24, 22};
    case DType::bf16:
      return {8, -133, 22};
    default:
      return {24, -149, 22};
  }
}

/// A step just below `target` whose rounded reciprocal is most nearly exact, so that x * inverse picks the nearest q
/// also where q is large. `A` is the arithmetic type.
template <class A>
double step_with_good_inverse(double target) {
  auto candidate = static_cast<A>(target);
  if (static_cast<double>(candidate) > target) candidate = std::nextafter(candidate, A{0});
  A best = candidate;
  A least = std::numeric_limits<A>::max();
  for (int i = 0; i < 64; ++i) {
    const auto inverse = static_cast<A>(1.0 / static_cast<double>(candidate));
    const A error = std::abs(std::fma(inverse, candidate, A{-1}));
    if (error < least) {
      least = error;
      best = candidate;
    }
    candidate = std::nextafter(candidate, A{0});
  }
  return static_cast<double>(best);
}

/// Half a unit in the last place of elements of magnitude up to `v`.
double half_ulp(const Arithmetic& a, double v) {
  const int exponent = v > 0 ? std::ilogb(v) : -5000;
  return std::ldexp(0.5, std::max(exponent - (a.digits - 1), a.min_exponent));
}

}  // namespace

Grid make_grid(DType dtype, double bound, double max_abs) {
  if (!(bound >= 0) || std::isinf(bound))
    throw Error(Code::invalid_argument, "bound: " + shortest(bound) + " is not a finite number >= 0");
  if (std::isnan(max_abs) || max_abs < 0)
    throw Error(Code::invalid_argument, "max_abs: " + shortest(max_abs) + " is not a magnitude");
  const Grid lossless{.dtype = dtype};
  if (bound == 0 || !is_float(dtype)) return lossless;

  const Arithmetic a = arithmetic_of(dtype);
  const StepExponents steps = step_exponents(dtype);
  const bool known = std::isfinite(max_abs);
  // Rounding q * step to the element moves it by half an ulp, but never further than the element x itself lies from it.
  const double rounding = known ? half_ulp(a, max_abs + bound) : 0;
  const double margin = known ? 0x1p-12 : 1.0 / 64;
  const double target = std::min(2 * std::max(bound - rounding, bound / 2) * (1 - margin), std::ldexp(1.0, steps.most));
  if (!(target >= std::ldexp(1.0, steps.least))) return lossless;

  Grid g{.dtype = dtype, .step = 0, .bound = bound, .qbits = a.max_qbits};
  g.step = dtype == DType::f64 ? step_with_good_inverse<double>(target) : step_with_good_inverse<float>(target);
  if (known) {
    const double largest_q = max_abs / g.step + 1;
    while (g.qbits > 1 && largest_q < std::ldexp(0.5, g.qbits)) --g.qbits;
  } else if (dtype == DType::f64) {
    g.qbits = 30;  // 32-bit integers serve nearly all data; larger values are stored exactly
  }
  return g;
}

bool sum_fits(const Grid& grid, std::uint64_t operands) {
  if (grid.lossless()) return !is_float(grid.dtype);
  const double largest = std::ldexp(static_cast<double>(operands), grid.qbits);
  return grid.dtype == DType::f64 ? largest <= 0x1p53 : largest < 0x1p31;
}

bool needs_wide_integers(const Grid& grid, std::uint64_t operands) {
  if (size_of(grid.dtype) != 8) return false;
  return grid.lossless() || std::ldexp(static_cast<double>(operands), grid.qbits) >= 0x1p31;
}

}  // namespace laconic
