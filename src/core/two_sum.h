// The sum of two doubles with its rounding error. Source: Dekker, "A floating-point technique for extending the
// available precision", 1971 (Fast2Sum). Knuth's sum, which does not ask which one is larger, goes through infinity
// where that is the largest double.
#pragma once

#include <cmath>

namespace laconic {

struct TwoDoubles {
  double high, low;
};

/// high + low == a + b exactly, whichever is the larger; high is the sum rounded, and may not overflow.
inline TwoDoubles two_sum(double a, double b) {
  const double sum = a + b;
  const bool ordered = std::fabs(a) >= std::fabs(b);
  return {sum, (ordered ? b : a) - (sum - (ordered ? a : b))};
}

}  // namespace laconic
