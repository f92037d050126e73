// Exact sums of doubles, for the elements of a sum that no grid integer can hold. Source: Shewchuk, "Adaptive Precision
// Floating-Point Arithmetic", 1997 (grow-expansion); the rounding fix at the end is ours.
#pragma once

#include <vector>

namespace laconic::slice {

/// A sum held as non-overlapping doubles in increasing order of magnitude, zeros left out. Infinities and NaN collapse
/// it to one component with IEEE meaning. Exact while no partial sum overflows a double (then it becomes an infinity).
class Expansion {
 public:
  Expansion() = default;
  explicit Expansion(double v) { add(v); }

  void add(double v);
  void add(const Expansion& other);
  /// Adds a * b exactly (their product must neither overflow nor fall below 2^-960).
  void add_product(double a, double b);

  /// The exact value rounded once (to nearest, ties to even).
  [[nodiscard]] double to_double() const;
  [[nodiscard]] float to_float() const;
  /// The value rounded to odd in double: rounding it again to 51 bits or fewer is as if the exact value were rounded.
  [[nodiscard]] double to_odd() const;

  [[nodiscard]] const std::vector<double>& terms() const { return terms_; }
  friend bool operator==(const Expansion&, const Expansion&) = default;

 private:
  std::vector<double> terms_;
};

}  // namespace laconic::slice
