#include "collective/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace laconic {
namespace {

struct Precision {
  int digits;        ///< of the significand, the hidden one included
  int min_exponent;  ///< of the ulp of the smallest normal value
  double largest;
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {53, -1074, std::numeric_limits<double>::max()};
    case DType::f16:
      return {11, -24, 65504.0};
    case DType::bf16:
      return {8, -133, 0x1.fep127};
    default:
      return {24, -149, static_cast<double>(std::numeric_limits<float>::max())};
  }
}

Budget lossless(DType dtype, const char* fallback = nullptr) {
  Budget b;
  b.grid = make_grid(dtype, 0, 0);
  b.fallback = fallback;
  return b;
}

/// The absolute bound for the whole, or 0 with the reason why there is none.
struct Whole {
  double bound;
  const char* reason;
};
Whole whole_of(DType dtype, const Bound& bound, const Range& range) {
  if (bound.kind == BoundKind::lossless) return {0, nullptr};
  if (!is_float(dtype)) return {0, "integers are exact"};
  const double whole = bound.absolute_for(range.width());
  if (!std::isfinite(whole)) return {0, "range overflows"};
  return {whole, whole > 0 ? nullptr : "all values are equal"};
}

/// What is left of e for the grid after the roundings of decoded values; 0 when that is not worth having.
double after_roundings(double e, double roundings) {
  const double left = e - roundings;
  return left > e / 2 ? std::nextafter(left, 0.0) : 0;
}

}  // namespace

double ulp_of(DType dtype, double x) {
  const Precision p = precision_of(dtype);
  if (!(std::abs(x) <= p.largest)) return std::numeric_limits<double>::infinity();
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, x == 0 ? p.min_exponent : std::max(exponent - p.digits, p.min_exponent));
}

Budget budget_reduction(Op op, DType dtype, const Bound& bound, int ranks, const Range& range) {
  const auto [whole, none] = whole_of(dtype, bound, range);
  if (whole == 0) return lossless(dtype, none);
  const bool shared = op == Op::sum && bound.scope == BoundScope::result;
  const double e = shared ? whole / ranks : whole;

  // Operands are checked against their rounded values, while the sum is taken of unrounded ones: half an ulp an
  // operand. An average also divides a sum that has been rounded: another ulp and a half.
  const double ulp = ulp_of(dtype, range.max_abs());
  const double operand_bound = after_roundings(e, op == Op::average ? 2 * ulp : ulp / 2);
  if (operand_bound == 0) return lossless(dtype, "bound is finer than the values' own rounding");
  // The average of values whose sum overflows is no infinity.
  if (op == Op::average && range.max_abs() * ranks > precision_of(dtype).largest / 2) {
    return lossless(dtype, "sum would overflow");
  }

  Budget b;
  b.grid = make_grid(dtype, operand_bound, range.max_abs());
  if (b.grid.lossless()) return lossless(dtype, "bound is finer than the values' own rounding");
  if (!sum_fits(b.grid, static_cast<std::uint64_t>(ranks))) return lossless(dtype, "no grid holds the sum");
  b.route = Route::on_grid;
  b.operand_bound = operand_bound;
  b.result_bound = op == Op::average || shared ? whole : whole * ranks;
  return b;
}

Budget budget_movement(DType dtype, const Bound& bound, const Range& range) {
  const auto [whole, none] = whole_of(dtype, bound, range);
  if (whole == 0) return lossless(dtype, none);
  Budget b;
  b.grid = make_grid(dtype, whole, range.max_abs());
  if (b.grid.lossless()) return lossless(dtype, "bound is finer than the values' own rounding");
  b.route = Route::on_grid;
  b.operand_bound = whole;
  b.result_bound = whole;
  return b;
}

}  // namespace laconic
