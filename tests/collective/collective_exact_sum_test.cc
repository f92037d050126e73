#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "collective/exact_sum.h"
#include "collective/fields.h"
#include "collective/reference.h"
#include "collective/world.h"
#include "core/half.h"
#include "support/sample_data.h"
#include "support/sanitized.h"

namespace laconic::collective_exact_sum_test {
namespace {

using world::same_bytes;
using world::view;

template <typename T>
std::vector<T> sum_of(const std::vector<std::vector<T>>& operands, Op op = Op::sum) {
  std::vector<ConstArray> views;
  for (const auto& x : operands) views.push_back(view(x));
  std::vector<T> out(operands[0].size());
  sum_exactly(views, view(out), op);
  return out;
}

TEST(ExactSum, IsTheNearestWhateverTheOrder) {
  for (const char* kind : {"noise", "wild", "denormal", "offset"}) {
    std::vector<std::vector<float>> x;
    for (int r = 0; r < 6; ++r) x.push_back(testing_fields::make<float>(kind, 5001, r));
    const auto sum = sum_of(x);
    reference::expect_sum(sum, x, 0);
    std::reverse(x.begin(), x.end());
    EXPECT_TRUE(same_bytes(sum, sum_of(x))) << kind;
  }
}

TEST(ExactSum, CancellationAndRoundingThatPlainSumsGetWrong) {
  EXPECT_EQ(sum_of<double>({{1e300}, {1}, {-1e300}})[0], 1);
  EXPECT_EQ(sum_of<float>({{1e30F}, {1}, {-1e30F}})[0], 1);
  // A tie in f32 that something far below decides.
  EXPECT_EQ(sum_of<float>({{1}, {0x1p-24F}, {0x1p-100F}})[0], 1 + 0x1p-23F);
  EXPECT_EQ(sum_of<float>({{1}, {0x1p-24F}, {-0x1p-100F}})[0], 1);
  EXPECT_EQ(sum_of<float>({{1}, {0x1p-24F}})[0], 1);
  EXPECT_EQ(sum_of<double>({{1}, {0x1p-53}, {0x1p-1000}})[0], 1 + 0x1p-52);
  EXPECT_EQ(sum_of<double>({{1}, {0x1p-53}, {-0x1p-1000}})[0], 1);
}

TEST(ExactSum, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(sum_of<double>({{inf}, {1}})[0], inf);
  EXPECT_TRUE(std::isnan(sum_of<double>({{inf}, {-inf}})[0]));
  EXPECT_TRUE(std::isnan(sum_of<double>({{nan}, {inf}})[0]));
  EXPECT_EQ(sum_of<double>({{most}, {most}})[0], inf);
  EXPECT_EQ(sum_of<double>({{most}, {most}, {-most}})[0], most);
  EXPECT_EQ(sum_of<double>({{most}, {most}}, Op::average)[0], most);
  EXPECT_TRUE(std::signbit(sum_of<double>({{-0.0}, {-0.0}})[0]));
  EXPECT_TRUE(std::signbit(sum_of<double>({{-0.0}, {-0.0}}, Op::average)[0]));
  EXPECT_FALSE(std::signbit(sum_of<double>({{-0.0}, {0.0}})[0]));
}

TEST(ExactSum, Averages) {
  for (const int n : {2, 3, 7}) {
    std::vector<std::vector<float>> x;
    std::vector<std::vector<double>> y;
    for (int r = 0; r < n; ++r) {
      x.push_back(testing_fields::make<float>("wild", 3001, r));
      y.push_back(testing_fields::make<double>("noise", 3001, r));
    }
    reference::expect_sum(sum_of(x, Op::average), x, 0, n);
    reference::expect_sum(sum_of(y, Op::average), y, 0, n);
  }
}

TEST(ExactSum, HalfPrecisionIsRoundedOnce) {
  // 1 + 2^-11 is a tie in f16; what decides it lies beyond f32 when added to 2048 * 2^-11 one by one.
  const std::vector<std::uint16_t> one{f16_of_f32(1)}, half_ulp{f16_of_f32(0x1p-11F)}, tiny{f16_of_f32(0x1p-24F)};
  std::vector<std::uint16_t> out(1);
  const auto f16 = [](const std::vector<std::uint16_t>& v) { return ConstArray{v.data(), 1, DType::f16}; };
  sum_exactly({f16(one), f16(half_ulp)}, {out.data(), 1, DType::f16}, Op::sum);
  EXPECT_EQ(f32_of_f16(out[0]), 1);
  sum_exactly({f16(one), f16(half_ulp), f16(tiny)}, {out.data(), 1, DType::f16}, Op::sum);
  EXPECT_EQ(f32_of_f16(out[0]), 1 + 0x1p-10F);

  const std::vector<std::uint16_t> b_one{bf16_of_f32(1)}, b_half{bf16_of_f32(0x1p-8F)}, b_tiny{bf16_of_f32(0x1p-90F)};
  const auto bf16 = [](const std::vector<std::uint16_t>& v) { return ConstArray{v.data(), 1, DType::bf16}; };
  sum_exactly({bf16(b_one), bf16(b_half), bf16(b_tiny)}, {out.data(), 1, DType::bf16}, Op::sum);
  EXPECT_EQ(f32_of_bf16(out[0]), 1 + 0x1p-7F);
  sum_exactly({bf16(b_one), bf16(b_half)}, {out.data(), 1, DType::bf16}, Op::sum);
  EXPECT_EQ(f32_of_bf16(out[0]), 1);
}

template <typename T>
void expect_whole_averages(DType dtype) {
  using Limits = std::numeric_limits<T>;
  const T largest = Limits::max(), least = Limits::min();
  const auto made = [dtype](const std::vector<T>& x, Op op) {
    std::vector<ConstArray> operands;
    for (const T& v : x) operands.push_back({&v, 1, dtype});
    T out{};
    sum_exactly(operands, {&out, 1, dtype}, op);
    return out;
  };
  const auto average = [&](const std::vector<T>& x) { return made(x, Op::average); };
  EXPECT_EQ(made({largest, 1}, Op::sum), least) << "a sum wraps";
  EXPECT_EQ(average({largest, largest, largest}), largest);
  EXPECT_EQ(average({least, least, least, least, least}), least);
  EXPECT_EQ(average({largest, static_cast<T>(largest - 1)}), largest - 1);
  EXPECT_EQ(average({7, 0, 1}), 2);
  EXPECT_EQ(average({42}), 42);
  if (Limits::is_signed) {
    EXPECT_EQ(average({static_cast<T>(-7), 0, static_cast<T>(-1)}), static_cast<T>(-2)) << "toward zero";
    EXPECT_EQ(average({least, largest}), 0);
  }
}

TEST(ExactSum, SumsOfIntegersWrapAndTheirAveragesAreRoundedTowardZero) {
  expect_whole_averages<std::int32_t>(DType::i32);
  expect_whole_averages<std::int64_t>(DType::i64);
  expect_whole_averages<std::uint32_t>(DType::u32);
  expect_whole_averages<std::uint64_t>(DType::u64);
}

/// An integer of bits that carry later: the sign of an exact sum, computed in another way than the library does.
class ExactSign {
 public:
  void add(double v, long long times) {
    int exponent = 0;
    const auto mantissa = static_cast<long long>(std::ldexp(std::frexp(v, &exponent), 53));
    for (int i = 0; i < 53; ++i) {
      if (((std::abs(mantissa) >> i) & 1) != 0)
        bits_[static_cast<std::size_t>(exponent + 1100 + i)] += mantissa < 0 ? -times : times;
    }
  }
  [[nodiscard]] int get() const {
    long long carry = 0;
    bool any = false;
    for (const long long bit : bits_) {
      any = any || ((bit + carry) & 1) != 0;
      carry = (bit + carry) >> 1;
    }
    return carry < 0 ? -1 : carry > 0 || any ? 1 : 0;
  }

 private:
  std::array<long long, 2300> bits_{};
};

struct F32 {
  using Bits = std::uint32_t;
  static constexpr DType dtype = DType::f32;
  static constexpr Bits infinity = 0x7F800000;
  static constexpr double half_of_infinity = 0x1p127;
  static double value(Bits b) { return static_cast<double>(std::bit_cast<float>(b)); }
  static Bits from(double v) { return std::bit_cast<Bits>(static_cast<float>(v)); }
};
struct F64 {
  using Bits = std::uint64_t;
  static constexpr DType dtype = DType::f64;
  static constexpr Bits infinity = 0x7FF0000000000000;
  static constexpr double half_of_infinity = 0x1p1023;
  static double value(Bits b) { return std::bit_cast<double>(b); }
  static Bits from(double v) { return std::bit_cast<Bits>(v); }
};
struct BF16 {
  using Bits = std::uint16_t;
  static constexpr DType dtype = DType::bf16;
  static constexpr Bits infinity = 0x7F80;
  static constexpr double half_of_infinity = 0x1p127;
  static double value(Bits b) { return static_cast<double>(f32_of_bf16(b)); }
  static Bits from(double v) { return bf16_of_f32(static_cast<float>(v)); }
};

/// `got` is the one nearest to the average over n of the values' sum, of two the even one; n = 1: to the sum.
template <typename F>
void expect_nearest(typename F::Bits got, const std::vector<typename F::Bits>& values, int n, const std::string& what) {
  using Bits = typename F::Bits;
  constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  const bool negative = (got & sign) != 0;
  const auto magnitude = static_cast<Bits>(got & ~sign);
  // Twice the sum less n times two neighbours is how far the sum is from the middle between them.
  const auto side_of_middle = [&](Bits a, Bits b) {
    ExactSign distance;
    for (const Bits v : values) distance.add(F::value(v), negative ? -2 : 2);
    for (const Bits end : {a, b}) {
      const bool beyond = end == F::infinity;
      distance.add(beyond ? F::half_of_infinity : F::value(end), beyond ? -2 * n : -n);
    }
    return distance.get();
  };
  const auto next = static_cast<Bits>(magnitude + 1), before = static_cast<Bits>(magnitude - 1);
  const int even = (magnitude & 1) == 0 ? 1 : 0;
  EXPECT_TRUE(magnitude == F::infinity || side_of_middle(magnitude, next) < even) << what;
  EXPECT_TRUE(magnitude == 0 || side_of_middle(before, magnitude) > -even) << what;
}

/// In all orders at once: each is an element. Nothing where the values are too large for the type.
template <typename F>
void expect_the_same_in_all_orders(const std::vector<double>& values) {
  using Bits = typename F::Bits;
  if (!std::ranges::all_of(values, [](double v) { return std::isfinite(F::value(F::from(v))); })) return;
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::vector<Bits>> operands(values.size());
  std::string what;
  for (const double v : values) what += " " + std::to_string(F::from(v));
  do {
    for (std::size_t k = 0; k < order.size(); ++k) operands[k].push_back(F::from(values[order[k]]));
  } while (std::next_permutation(order.begin(), order.end()));
  std::vector<ConstArray> views;
  std::vector<Bits> first;
  for (const auto& x : operands) {
    views.push_back({x.data(), x.size(), F::dtype});
    first.push_back(x[0]);
  }
  for (const Op op : {Op::sum, Op::average}) {
    std::vector<Bits> out(operands[0].size());
    sum_exactly(views, {out.data(), out.size(), F::dtype}, op);
    EXPECT_EQ(std::ranges::count(out, out[0]), std::ssize(out)) << what;
    const int n = op == Op::sum ? 1 : static_cast<int>(values.size());
    expect_nearest<F>(out[0], first, n, what);
  }
}

TEST(ExactSum, IsTheNearestInEveryOrder) {
  const double most = std::numeric_limits<double>::max();
  const double odd = 0x1p-1022 + 0x1p-1074;
  const std::vector<std::vector<double>> hard{
      {0x1p90, 1, 0x1p-24, -0x1p90, 0x1p-80},
      {0x1p90, 1, 0x1p-24, -0x1p90, -0x1p-80, -0x1p60},
      {1.7e308, 1.7e308, -1.7e308, -1.7e308, 1e-310},
      {most, 0x1p970, -0x1p-1074},
      {most, 0x1p969, 0x1p969},
      {most, most, -most, 0x1p-1074, 0x1p-1074},
      {0x1p-1074, 0x1p-1074, 0x1p-1073, 0, 0},
      {0x1p-1022, -0x1p-1074, 0x1p-1073},
      {0x1p-126, 0x1p-149, 0x1p-149, 0x1p-149, -0x1p-126},
      {0x1.fffffep127, 0x1p102, 0x1p102, -0x1p-149},
      {1, 0x1p-53, 0x1p-106, -0x1p-159, 0x1p-1000},
      // Averages that are denormals, or nearly: two roundings would not give the nearest.
      {0x1p-1023, 0x1p-1023, 0x1p-1023 + 0x1p-1073},
      {odd, odd, odd, odd, odd, odd + 0x1.8p-1073},
  };
  for (const auto& values : hard) {
    expect_the_same_in_all_orders<F64>(values);
    expect_the_same_in_all_orders<F32>(values);
    expect_the_same_in_all_orders<BF16>(values);
  }
}

/// Their average lies beside the middle between two numbers of `precision` bits.
std::vector<double> average_near_tie(test::Random& random, int precision, double beside) {
  const std::size_t n = 3 + random.below(4);
  const std::uint64_t middle = (std::uint64_t{1} << precision) + (random.bits() >> (64 - precision)) / 2 * 2 + 1;
  const std::uint64_t sum = n * middle;
  std::vector<double> values{static_cast<double>(sum & ~std::uint64_t{15}), static_cast<double>(sum & 15U), beside};
  values.resize(n);
  return values;
}

TEST(ExactSum, AveragesAreTheNearestInEveryOrder) {
  test::Random random(8);
  const int sets = test::sanitized ? 200 : 4000;
  for (int set = 0; set < sets; ++set) {
    const double beside = set % 9 == 0 ? 0 : std::ldexp(set % 2 == 0 ? 1 : -1, -set % 121);
    expect_the_same_in_all_orders<F32>(average_near_tie(random, 24, beside));
    expect_the_same_in_all_orders<BF16>(average_near_tie(random, 8, beside));
    auto values = average_near_tie(random, 53, beside);
    for (double& v : values) v = std::ldexp(v, std::array{0, -960, 900}[random.below(3)]);  // -960: below what is fast
    expect_the_same_in_all_orders<F64>(values);
  }
}

// Few mantissa bits, exponents close to one another or far, and values that take each other away: ties and what
// decides them.
TEST(ExactSum, IsTheNearestInEveryOrderOfRandomHardValues) {
  test::Random random(7);
  const int sets = test::sanitized ? 150 : 1500;
  for (int set = 0; set < sets; ++set) {
    std::vector<double> values;
    const std::size_t count = 2 + random.below(set % 50 == 0 ? 5 : 4);
    const int spread = std::array{3, 30, 60, 120, 250}[random.below(5)];
    const int middle = std::array{0, 0, 0, -130, 110}[random.below(5)];
    while (values.size() < count) {
      if (!values.empty() && random.below(4) == 0) {
        values.push_back(-values[random.below(values.size())]);
        continue;
      }
      const auto mantissa = static_cast<double>(1 + random.below(std::array{1U, 8U, 1U << 24U}[random.below(3)]));
      const auto exponent = static_cast<int>(random.below(static_cast<std::size_t>(spread))) - spread / 2;
      values.push_back(std::ldexp(random.below(2) == 0 ? mantissa : -mantissa, middle + exponent));
    }
    expect_the_same_in_all_orders<F32>(values);
    expect_the_same_in_all_orders<BF16>(values);
    for (double& v : values) v = std::ldexp(v, std::array{0, -1000, 800}[random.below(3)]);
    expect_the_same_in_all_orders<F64>(values);
  }
}

}  // namespace
}  // namespace laconic::collective_exact_sum_test
