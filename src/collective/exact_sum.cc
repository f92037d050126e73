#include "collective/exact_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "collective/long_sum.h"
#include "core/half.h"
#include "core/two_sum.h"

namespace laconic {
namespace {

constexpr std::size_t tile = 1024;  // of doubles: three of them fit the first-level cache
using Tile = std::array<double, tile>;

template <typename T>
T load(const ConstArray& x, std::size_t i) {
  T v;
  std::memcpy(&v, static_cast<const std::uint8_t*>(x.data) + i * sizeof(T), sizeof(T));
  return v;
}

template <typename T>
void store(const MutArray& x, std::size_t i, T v) {
  std::memcpy(static_cast<std::uint8_t*>(x.data) + i * sizeof(T), &v, sizeof(T));
}

/// How a dtype goes to double (exactly) and back from a value that was rounded to odd in double (one rounding).
struct F64 {
  using Bits = double;
  static double widen(double v) { return v; }
  static double narrow(double v) { return v; }
};
struct F32 {
  using Bits = float;
  static double widen(float v) { return static_cast<double>(v); }
  static float narrow(double v) { return static_cast<float>(v); }
};
/// To f32 with the last bit as a sticky one, so that rounding further is as if from the exact value.
float sticky_f32(double v) {
  const auto f = static_cast<float>(v);
  if (!std::isfinite(f) || static_cast<double>(f) == v) return f;
  auto bits = std::bit_cast<std::uint32_t>(f);
  if (std::abs(static_cast<double>(f)) > std::abs(v)) --bits;  // toward zero first
  return std::bit_cast<float>(bits | 1U);
}
struct F16 {
  using Bits = std::uint16_t;
  static double widen(std::uint16_t v) { return static_cast<double>(f32_of_f16(v)); }
  static std::uint16_t narrow(double v) { return f16_of_f32(sticky_f32(v)); }
};
struct BF16 {
  using Bits = std::uint16_t;
  static double widen(std::uint16_t v) { return static_cast<double>(f32_of_bf16(v)); }
  static std::uint16_t narrow(double v) { return bf16_of_f32(sticky_f32(v)); }
};

/// high + low is exact where bad is 0: twice compensated, and what a third level would hold must be nothing.
struct Sums {
  Tile high, low, bad;
};

void accumulate(Sums& s, const Tile& x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const TwoDoubles sum = two_sum(s.high[i], x[i]);
    const TwoDoubles rest = two_sum(s.low[i], sum.low);
    s.high[i] = sum.high;
    s.low[i] = rest.high;
    s.bad[i] += std::abs(rest.low);
  }
}

/// high + low, rounded to odd: high is that rounded, and low only says on which side of it the value lies.
double round_to_odd(double high, double low) {
  if (low == 0 || (std::bit_cast<std::uint64_t>(high) & 1U) != 0) return high;
  const double infinity = std::numeric_limits<double>::infinity();
  return std::nextafter(high, low > 0 ? infinity : -infinity);
}

constexpr double untold = std::numeric_limits<double>::quiet_NaN();

/// The f64 nearest to (high + low) / n, or untold: near a tie, and where remainders may be no doubles.
double nearest_quotient(TwoDoubles sum, double n) {
  const double quotient = sum.high / n;
  if (quotient == 0) return quotient;
  const TwoDoubles rest = two_sum(std::fma(-quotient, n, sum.high), sum.low);
  const double correction = rest.high / n;
  const bool exact = rest.low == 0 && std::fma(-correction, n, rest.high) == 0;
  const double doubt = exact ? 0 : 0x1p-48;  // more than the correction's relative error
  const double one = quotient + correction * (1 - doubt), other = quotient + correction * (1 + doubt);
  return one == other && std::abs(quotient) > 0x1p-900 ? one : untold;
}

/// For what is rounded to so few bits that n times the middle between two such numbers is a double: high, its quotient
/// and the remainder then lie on the side of it where the sum does.
double odd_quotient(TwoDoubles sum, double n) {
  const double quotient = sum.high / n;
  return round_to_odd(quotient, std::fma(-quotient, n, sum.high) + sum.low);
}

/// (high + low) / divisor as what Format::narrow() takes, or untold.
template <typename Format>
double finish(double high, double low, int divisor) {
  constexpr bool is_double = std::is_same_v<Format, F64>;
  const TwoDoubles sum = low == 0 ? TwoDoubles{high, low} : two_sum(high, low);  // -0 stays -0
  if (divisor == 1) return is_double ? sum.high : round_to_odd(sum.high, sum.low);
  return is_double ? nearest_quotient(sum, divisor) : odd_quotient(sum, divisor);
}

/// The same of what two doubles cannot hold: NaN, infinities, overflow, wide spreads.
template <typename Format>
double slow(const std::vector<ConstArray>& operands, std::size_t i, int divisor) {
  LongSum sum;
  double special = 0;
  for (const ConstArray& x : operands) {
    const double v = Format::widen(load<typename Format::Bits>(x, i));
    if (std::isfinite(v)) {
      sum.add(v);
    } else {
      special += v;
    }
  }
  if (std::isnan(special)) return std::numeric_limits<double>::quiet_NaN();
  if (special != 0) return special;
  const LongSum::Number exact = sum.over(divisor);
  return std::is_same_v<Format, F64> ? exact.nearest() : exact.odd();
}

template <typename Format>
void sum_floats(const std::vector<ConstArray>& operands, MutArray out, int divisor) {
  using Bits = typename Format::Bits;
  Sums s;
  Tile x;
  for (std::size_t first = 0; first < out.count; first += tile) {
    const std::size_t count = std::min(tile, out.count - first);
    const auto widen = [&](const ConstArray& from, Tile& to) {
      for (std::size_t i = 0; i < count; ++i) to[i] = Format::widen(load<Bits>(from, first + i));
    };
    widen(operands[0], s.high);
    // Starting from the first operand, not from 0, keeps the sign of a zero. NaN - NaN marks what is not finite.
    std::fill_n(s.low.begin(), count, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      s.bad[i] = std::abs(s.high[i] - s.high[i]);  // NOLINT(misc-redundant-expression)
    }
    for (std::size_t k = 1; k < operands.size(); ++k) {
      widen(operands[k], x);
      accumulate(s, x, count);
    }
    for (std::size_t i = 0; i < count; ++i) {
      double sum = s.bad[i] == 0 ? finish<Format>(s.high[i], s.low[i], divisor) : untold;
      if (std::isnan(sum)) sum = slow<Format>(operands, first + i, divisor);
      store<Bits>(out, first + i, Format::narrow(sum));
    }
  }
}

/// Sum: of integers that wrap, or that hold the sum of as many operands as there can be.
template <typename Integer, typename Sum, bool divides>
void sum_integers(const std::vector<ConstArray>& operands, MutArray out) {
  const auto n = static_cast<Sum>(operands.size());
  for (std::size_t i = 0; i < out.count; ++i) {
    Sum sum = 0;
    for (const ConstArray& x : operands) sum += load<Integer>(x, i);
    store<Integer>(out, i, static_cast<Integer>(divides ? sum / n : sum));
  }
}

__extension__ using Int128 = __int128;

template <typename Integer, typename Wide>
void sum_or_average(const std::vector<ConstArray>& operands, MutArray out, Op op) {
  using Unsigned = std::make_unsigned_t<Integer>;
  if (op != Op::average) return sum_integers<Unsigned, Unsigned, false>(operands, out);
  sum_integers<Integer, Wide, true>(operands, out);
}

}  // namespace

void sum_exactly(const std::vector<ConstArray>& operands, MutArray out, Op op) {
  const int divisor = op == Op::average ? static_cast<int>(operands.size()) : 1;
  switch (out.dtype) {
    case DType::f32:
      return sum_floats<F32>(operands, out, divisor);
    case DType::f64:
      return sum_floats<F64>(operands, out, divisor);
    case DType::f16:
      return sum_floats<F16>(operands, out, divisor);
    case DType::bf16:
      return sum_floats<BF16>(operands, out, divisor);
    case DType::i32:
      return sum_or_average<std::int32_t, std::int64_t>(operands, out, op);
    case DType::u32:
      return sum_or_average<std::uint32_t, std::int64_t>(operands, out, op);
    case DType::i64:
      return sum_or_average<std::int64_t, Int128>(operands, out, op);
    case DType::u64:
      return sum_or_average<std::uint64_t, Int128>(operands, out, op);
  }
}

}  // namespace laconic
