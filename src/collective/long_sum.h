// An exact sum of doubles as one long integer, whatever they are and in whatever order they come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace laconic {

class LongSum {
 public:
  /// A finite one. Up to 2^29 of them.
  void add(double v);

  /// A number to more bits than any of our types has: (negative ? -1 : 1) * bits * 2^exponent. The highest of the bits
  /// is set, the lowest also where anything lies below it; so rounding this is as if the exact number were rounded.
  struct Number {
    bool negative = false;
    std::uint64_t bits = 0;  ///< all 0: the number is 0
    int exponent = 0;

    [[nodiscard]] double nearest() const;
    /// To 53 bits, the lowest set where anything lies below it. For what is far from the least doubles.
    [[nodiscard]] double odd() const;
  };
  /// The sum over n, at least 1. Once, at the end.
  Number over(int n);

 private:
  void carry();

  static constexpr int digit_bits = 32;
  static constexpr int lowest = -1074 - 2 * digit_bits;  ///< exponent of the unit: quotients go below the least double
  /// Lowest first. Each has room for what it should carry.
  std::array<std::int64_t, 70> digits_{};
  std::size_t first_ = 69, last_ = 0;  ///< beyond these, and one after the last for the sign, all are 0
};

}  // namespace laconic
