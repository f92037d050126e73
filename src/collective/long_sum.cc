#include "collective/long_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace laconic {
namespace {

constexpr std::uint64_t digit_mask = 0xFFFFFFFF;

}  // namespace

void LongSum::add(double v) {
  const auto image = std::bit_cast<std::uint64_t>(v);
  const auto exponent = static_cast<unsigned>(image >> 52) & 0x7FFU;
  const std::uint64_t hidden = exponent != 0 ? std::uint64_t{1} << 52 : 0;
  const std::uint64_t mantissa = (image & ((std::uint64_t{1} << 52) - 1)) | hidden;
  const unsigned at = 2 * digit_bits + std::max(exponent, 1U) - 1;
  const std::uint64_t low = (mantissa & digit_mask) << (at % digit_bits);
  const std::uint64_t high = (mantissa >> digit_bits) << (at % digit_bits);
  const std::uint64_t parts[] = {low & digit_mask, (low >> digit_bits) + (high & digit_mask), high >> digit_bits};
  std::size_t digit = at / digit_bits;
  first_ = std::min(first_, digit);
  for (const std::uint64_t part : parts) {
    const auto its = static_cast<std::int64_t>(part);
    digits_[digit++] += std::signbit(v) ? -its : its;
  }
  last_ = std::max(last_, digit);
}

/// Afterwards all digits but the last are 0 to 2^32 - 1.
void LongSum::carry() {
  for (std::size_t i = first_; i < last_; ++i) {
    digits_[i + 1] += digits_[i] >> digit_bits;
    digits_[i] &= digit_mask;
  }
}

LongSum::Number LongSum::over(int n) {
  carry();
  const bool negative = digits_[last_] < 0;
  if (negative) {
    for (std::size_t i = first_; i <= last_; ++i) digits_[i] = -digits_[i];
    carry();
  }
  const auto divisor = static_cast<std::uint64_t>(n);
  std::uint64_t quotient[3] = {};  // highest first, from the first that is not 0
  std::uint64_t rest = 0;
  int at = static_cast<int>(last_), found = 0, first = 0;
  for (; at >= 0 && found < 3; --at) {
    rest = rest << digit_bits | static_cast<std::uint64_t>(digits_[static_cast<std::size_t>(at)]);
    const std::uint64_t digit = rest / divisor;
    rest %= divisor;
    if (found == 0) first = at;
    if (digit != 0 || found != 0) quotient[found++] = digit;
  }
  if (found == 0) return {};
  const int shift = std::countl_zero(static_cast<std::uint32_t>(quotient[0]));
  const std::uint64_t bits = (quotient[0] << digit_bits | quotient[1]) << shift | quotient[2] >> (digit_bits - shift);
  bool below = rest != 0 || (quotient[2] << shift & digit_mask) != 0;
  for (; at >= 0 && !below; --at) below = digits_[static_cast<std::size_t>(at)] != 0;
  return {negative, bits | (below ? 1U : 0U), lowest + digit_bits * (first - 1) - shift};
}

double LongSum::Number::nearest() const {
  using Limits = std::numeric_limits<double>;
  const int lost = std::max(0, Limits::min_exponent - (exponent + 64));  // bits that a denormal has not
  const int dropped = 64 - Limits::digits + lost;
  if (dropped > 64) return negative ? -0.0 : 0.0;
  constexpr std::uint64_t half = std::uint64_t{1} << 63;
  const std::uint64_t rest = bits << (64 - dropped);
  std::uint64_t kept = dropped == 64 ? 0 : bits >> dropped;
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  const double magnitude = std::ldexp(static_cast<double>(kept), exponent + dropped);
  return negative ? -magnitude : magnitude;
}

double LongSum::Number::odd() const {
  constexpr int dropped = 64 - std::numeric_limits<double>::digits;
  const std::uint64_t kept = bits >> dropped | (bits << (64 - dropped) != 0 ? 1U : 0U);
  const double magnitude = std::ldexp(static_cast<double>(kept), exponent + dropped);
  return negative ? -magnitude : magnitude;
}

}  // namespace laconic
