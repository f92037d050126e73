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
  }
  return p;
}

}  // namespace laconic::slice
