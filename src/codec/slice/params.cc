#include <cmath>
#include <limits>

#include "codec/slice/kernels.h"

namespace laconic::slice {
namespace {

float round_down(double v) {
  auto f = static_cast<float>(v);
  if (f > v) f = std::nextafter(f, 0.0F);
  return f;
}

/// Params::proven. Of an x whose q is in the window |x * inverse - q| <= 1/2, for the sum with the window's middle is
/// rounded once, to an integer. So x differs from q * step by at most |q| * |1 / inverse - step| + 1 / (2 * inverse),
/// and q * step from what is decoded by half a unit in the last place. The error that a check computes is |x - decoded|
/// rounded, and rounding does not lead past a bound that is a number of the type. Where the window reaches beyond the
/// type (f32, steps from 2^106 on), the largest of its values are decoded to infinity, so nothing is proven.
template <class A>
std::int64_t proven_largest(const Grid& grid, A step, A inverse, A bound) {
  const double window = std::ldexp(1.0, grid.qbits);
  const double off = std::abs(std::fma(static_cast<double>(inverse), static_cast<double>(step), -1.0));
  const int top = std::ilogb(window * step);
  if (top >= std::numeric_limits<A>::max_exponent) return 0;
  const auto holds = [&](double largest, int exponent) {
    const double half_ulp = std::ldexp(0.5, exponent - (std::numeric_limits<A>::digits - 1));
    return ((largest * off + 0.5) / inverse + half_ulp) * (1 + 0x1p-40) <= bound;  // these operations err by less
  };
  if (holds(window, top)) return std::int64_t{1} << grid.qbits;
  const double below = std::floor(std::ldexp(1.0, top) / step);  // decoded with half the rounding
  return holds(below, top - 1) ? static_cast<std::int64_t>(below) : 0;
}

}  // namespace

Params params_for(const Grid& grid, std::uint32_t operands, std::uint32_t divisor) {
  Params p;
  p.grid = grid;
  p.operands = operands;
  p.divisor = divisor;
  p.shape.element_bytes = static_cast<int>(size_of(grid.dtype));
  p.shape.floating = is_float(grid.dtype);
  p.shape.exact_only = grid.lossless();
  p.shape.sum = operands > 1 && !grid.lossless();
  const double largest = std::ldexp(static_cast<double>(operands), grid.qbits);
  p.wide = needs_wide_integers(grid, operands);
  p.narrow_value = divisor == 1 && largest <= 16777216.0;
  if (!grid.lossless()) {
    p.step32 = static_cast<float>(grid.step);
    p.inverse32 = static_cast<float>(1.0 / grid.step);
    p.bound32 = round_down(grid.bound);
    p.inverse64 = 1.0 / grid.step;
    p.value_step = grid.step / divisor;
    if (grid.dtype == DType::f32) p.proven = proven_largest(grid, p.step32, p.inverse32, p.bound32);
    if (grid.dtype == DType::f64) p.proven = proven_largest(grid, grid.step, p.inverse64, grid.bound);
  }
  return p;
}

}  // namespace laconic::slice
