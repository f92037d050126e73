// Sums that results are held against: to about twice the digits of long double, so that what is correctly rounded is
// never found on the other side of the middle between two values.
#pragma once

#include <cmath>

#include "core/two_sum.h"

namespace laconic::app {

class ExactSum {
 public:
  ExactSum() = default;
  explicit ExactSum(long double v) : high_(v) {}

  void add(long double v) {
    const auto [sum, rest] = two_sum(high_, v);
    high_ = sum;
    low_ += rest;
  }
  void divide(int n) {
    const long double quotient = high_ / static_cast<long double>(n);
    low_ = (std::fma(-quotient, static_cast<long double>(n), high_) + low_) / static_cast<long double>(n);
    high_ = quotient;
  }

  /// Rounded; NaN and infinities as IEEE has them.
  [[nodiscard]] long double value() const { return std::isfinite(high_) ? high_ + low_ : high_; }
  /// got minus the sum, which is finite.
  [[nodiscard]] long double error_of(long double got) const { return (got - high_) - low_; }

 private:
  long double high_ = 0, low_ = 0;
};

}  // namespace laconic::app
