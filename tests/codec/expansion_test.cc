// Exact sums of doubles against wide integers.
#include "codec/slice/expansion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/sample_data.h"

namespace laconic::slice::expansion_test {
namespace {

using test::Random;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
using Wide = __int128;
#pragma GCC diagnostic pop

/// Numbers m * 2^e with 0 <= e <= 60 and |m| < 2^50: their sums fit 128 bits.
struct Number {
  long long m;
  int e;
  [[nodiscard]] double value() const { return std::ldexp(static_cast<double>(m), e); }
  [[nodiscard]] Wide wide() const { return static_cast<Wide>(m) * (static_cast<Wide>(1) << e); }
};

std::vector<Number> numbers(Random& random, std::size_t n) {
  std::vector<Number> v;
  for (std::size_t i = 0; i < n; ++i)
    v.push_back({static_cast<long long>(random.bits() >> (14 + random.below(50))) * (random.below(2) == 0 ? 1 : -1),
                 static_cast<int>(random.below(61))});
  return v;
}

Wide wide_of(const Expansion& e) {
  Wide sum = 0;
  for (const double t : e.terms()) {
    int exponent = 0;
    const double fraction = std::frexp(t, &exponent);
    const auto m = static_cast<long long>(std::ldexp(fraction, 53));
    sum += exponent >= 53 ? static_cast<Wide>(m) * (static_cast<Wide>(1) << (exponent - 53))
                          : static_cast<Wide>(m / (1LL << (53 - exponent)));
  }
  return sum;
}

TEST(Expansion, HoldsTheLargestDoubleAndOneThatRoundsBesideIt) {
  const double most = -std::numeric_limits<double>::max(), other = 0x1.f2617d67cd51bp+1022;
  for (const bool first : {true, false}) {
    Expansion e;
    e.add(first ? most : other);
    e.add(first ? other : most);
    EXPECT_EQ(e.to_double(), most + other) << first;
    e.add(-other);  // what was rounded away is still there
    EXPECT_EQ(e.to_double(), most) << first;
  }
}

TEST(Expansion, HoldsSumsExactly) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    Expansion e;
    Wide want = 0;
    for (const Number& n : numbers(random, 1 + random.below(12))) {
      e.add(n.value());
      want += n.wide();
    }
    ASSERT_TRUE(wide_of(e) == want);
    // Conversion of a wide integer rounds once, to nearest, ties to even.
    ASSERT_EQ(e.to_double(), static_cast<double>(want));
    ASSERT_EQ(e.to_float(), static_cast<float>(want));
    for (std::size_t i = 1; i < e.terms().size(); ++i) ASSERT_LT(std::abs(e.terms()[i - 1]), std::abs(e.terms()[i]));
  }
}

TEST(Expansion, BreaksTiesByWhatFollows) {
  // 2^53 + 1 lies between two doubles; a grain above or below decides.
  for (const double grain : {0.0, 0x1p-40, -0x1p-40}) {
    Expansion e(0x1p53);
    e.add(1);
    e.add(grain);
    EXPECT_EQ(e.to_double(), grain > 0 ? 0x1p53 + 2 : 0x1p53);
  }
  // 2^24 + 1 between two floats.
  for (const double grain : {0.0, 0x1p-60, -0x1p-60}) {
    Expansion e(0x1p24);
    e.add(1);
    e.add(grain);
    EXPECT_EQ(e.to_float(), grain > 0 ? 0x1p24F + 2 : 0x1p24F);
  }
}

TEST(Expansion, DecodesAlikeInAnyOrder) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> v;
    for (int i = 0; i < 6; ++i) v.push_back(std::ldexp(random.symmetric(), static_cast<int>(random.below(200)) - 100));
    const auto sum = [&] {
      Expansion e;
      for (const double x : v) e.add(x);
      return e.to_double();
    };
    const double first = sum();
    for (int k = 0; k < 10; ++k) {
      std::swap(v[random.below(6)], v[random.below(6)]);
      ASSERT_EQ(first, sum());
    }
  }
}

TEST(Expansion, AddsProductsExactly) {
  Random random(3);
  for (int round = 0; round < 1000; ++round) {
    const auto a = static_cast<long long>(random.bits() >> 12);
    const auto b = static_cast<long long>(random.bits() >> 12) * (random.below(2) == 0 ? 1 : -1);
    Expansion e;
    e.add_product(static_cast<double>(a), static_cast<double>(b));
    ASSERT_TRUE(wide_of(e) == static_cast<Wide>(a) * b);
  }
}

TEST(Expansion, CancelsToNothing) {
  Expansion e;
  for (const double v : {1e30, 3.0, -1e-20, -1e30, 1e-20, -3.0}) e.add(v);
  EXPECT_TRUE(e.terms().empty());
  EXPECT_EQ(e.to_double(), 0);
  EXPECT_FALSE(std::signbit(e.to_double()));
}

TEST(Expansion, TakesInfinitiesAsIeeeDoes) {
  const double infinity = std::numeric_limits<double>::infinity();
  Expansion e(1.5);
  e.add(infinity);
  EXPECT_EQ(e.to_double(), infinity);
  e.add(-1e300);
  EXPECT_EQ(e.to_float(), std::numeric_limits<float>::infinity());
  e.add(-infinity);
  EXPECT_TRUE(std::isnan(e.to_double()));
  e.add(1);
  EXPECT_TRUE(std::isnan(e.to_float()));
  EXPECT_EQ(e.terms().size(), 1U);
}

TEST(Expansion, OddRoundingMarksWhatIsInexact) {
  Expansion e(1.0);
  EXPECT_EQ(e.to_odd(), 1.0);
  e.add(0x1p-80);
  EXPECT_EQ(e.to_odd(), std::nextafter(1.0, 2.0));
  e.add(-0x1p-79);
  EXPECT_EQ(e.to_odd(), std::nextafter(1.0, 0.0));
}

}  // namespace
}  // namespace laconic::slice::expansion_test
