// The sum of two numbers with its rounding error. Source: Dekker, "A floating-point technique for extending the
// available precision", 1971 (Fast2Sum). Knuth's sum, which does not ask which one is larger, goes through infinity
// where that is the largest number.
#pragma once

#include <cmath>
#include <concepts>

namespace laconic {

template <std::floating_point T>
struct TwoParts {
  T high, low;
};
using TwoDoubles = TwoParts<double>;

/// high + low == a + b exactly, whichever is the larger; high is the sum rounded, and may not overflow.
template <std::floating_point T>
TwoParts<T> two_sum(T a, T b) {
  const T sum = a + b;
  const bool ordered = std::fabs(a) >= std::fabs(b);
  return {sum, (ordered ? b : a) - (sum - (ordered ? a : b))};
}

}  // namespace laconic
