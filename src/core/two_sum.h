// The sum of two doubles with its rounding error. Source: Knuth, "The Art of Computer Programming", volume 2.
#pragma once

namespace laconic {

struct TwoDoubles {
  double high, low;
};

/// high + low == a + b exactly, whichever is the larger; high is the sum rounded. Nothing may overflow.
inline TwoDoubles two_sum(double a, double b) {
  const double sum = a + b;
  const double t = sum - a;
  return {sum, (a - (sum - t)) + (b - t)};
}

}  // namespace laconic
