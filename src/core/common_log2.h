// A logarithm for decisions that ranks must come to alike.
#pragma once

#include <cmath>
#include <numbers>

namespace laconic {

/// log2(x) of x > 0, within a few units of the last place; exact for powers of two. Ranks on unlike
/// processors come to the same bits, which by std::log2() they need not: it is made of operations that IEEE 754 defines
/// to the last bit.
inline double common_log2(double x) {
  if (std::isinf(x)) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.75) {
    m *= 2;
    --exponent;
  }
  const double z = (m - 1) / (m + 1);  // |z| <= 1/5
  double sum = 0;                      // artanh(z) / z by its series
  for (int k = 25; k > 0; k -= 2) sum = sum * (z * z) + 1.0 / k;
  return exponent + 2 * z * sum * std::numbers::log2e;
}

}  // namespace laconic
