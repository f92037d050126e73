#include "core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace laconic::half_test {
namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// What f16 stands for, written from IEEE 754 rather than from bit tricks.
double value_of_f16(std::uint16_t h) {
  const int exponent = (h >> 10) & 0x1f;
  const int fraction = h & 0x3ff;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24)
                                         : std::ldexp(1024 + fraction, exponent - 25);  // not for infinities, NaN
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_finite_f16(std::uint16_t h) { return (h & 0x7c00) != 0x7c00; }

TEST(Half, EveryF16Widens) {
  for (int i = 0; i < 0x10000; ++i) {
    const auto h = static_cast<std::uint16_t>(i);
    const float x = f32_of_f16(h);
    if (is_finite_f16(h)) {
      ASSERT_EQ(static_cast<double>(x), value_of_f16(h)) << i;
      ASSERT_EQ(std::signbit(x), (h & 0x8000) != 0) << i;
    } else {
      ASSERT_EQ(std::isnan(x), (h & 0x3ff) != 0) << i;
      ASSERT_EQ(std::isinf(x), (h & 0x3ff) == 0) << i;
    }
  }
}

TEST(Half, EveryF16RoundTrips) {
  for (int i = 0; i < 0x10000; ++i) {
    const auto h = static_cast<std::uint16_t>(i);
    const bool nan = !is_finite_f16(h) && (h & 0x3ff) != 0;
    ASSERT_EQ(f16_of_f32(f32_of_f16(h)), nan ? h | 0x200 : h) << i;
  }
}

TEST(Half, EveryBf16RoundTrips) {
  for (int i = 0; i < 0x10000; ++i) {
    const auto h = static_cast<std::uint16_t>(i);
    const bool nan = (h & 0x7f80) == 0x7f80 && (h & 0x7f) != 0;
    ASSERT_EQ(bf16_of_f32(f32_of_bf16(h)), nan ? h | 0x40 : h) << i;
  }
}

/// Between every two neighbours: just below, at, and just above the middle (ties to even).
template <typename Widen, typename Narrow>
void check_middles(std::uint16_t largest, Widen widen, Narrow narrow) {
  for (std::uint16_t h = 0; h < largest; ++h) {
    const auto next = static_cast<std::uint16_t>(h + 1);
    const auto middle = static_cast<float>((static_cast<double>(widen(h)) + static_cast<double>(widen(next))) / 2);
    const std::uint16_t even = (h & 1) == 0 ? h : next;
    const auto sign = static_cast<std::uint16_t>(0x8000);
    ASSERT_EQ(narrow(middle), even) << h;
    ASSERT_EQ(narrow(-middle), even | sign) << h;
    ASSERT_EQ(narrow(std::nextafter(middle, 0.0F)), h);
    ASSERT_EQ(narrow(std::nextafter(middle, INFINITY)), next);
  }
}

TEST(Half, F16RoundsToNearestEven) { check_middles(0x7bff, f32_of_f16, f16_of_f32); }
TEST(Half, Bf16RoundsToNearestEven) { check_middles(0x7f7f, f32_of_bf16, bf16_of_f32); }

TEST(Half, OverflowBecomesInfinityFromTheMiddleOn) {
  EXPECT_EQ(f16_of_f32(65504.0F), 0x7bff);
  EXPECT_EQ(f16_of_f32(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(f16_of_f32(65520.0F), 0x7c00);
  EXPECT_EQ(f16_of_f32(-1e30F), 0xfc00);
  EXPECT_EQ(bf16_of_f32(std::bit_cast<float>(0x7f7f7fffU)), 0x7f7f);
  EXPECT_EQ(bf16_of_f32(std::bit_cast<float>(0x7f7f8000U)), 0x7f80);
}

TEST(Half, UnderflowBecomesSignedZero) {
  EXPECT_EQ(f16_of_f32(0x1p-25F), 0x0000);  // tie with zero, which is even
  EXPECT_EQ(f16_of_f32(std::nextafter(0x1p-25F, 1.0F)), 0x0001);
  EXPECT_EQ(f16_of_f32(-0x1p-30F), 0x8000);
  EXPECT_EQ(f16_of_f32(-0.0F), 0x8000);
  EXPECT_EQ(f16_of_f32(std::bit_cast<float>(1U)), 0x0000);
}

TEST(Half, NanStaysNan) {
  for (std::uint32_t payload : {1U, 0x1000U, 0x3fffffU, 0x400000U, 0x7fffffU}) {
    for (std::uint32_t sign : {0U, 0x80000000U}) {
      const auto x = std::bit_cast<float>(sign | 0x7f800000U | payload);
      EXPECT_TRUE(std::isnan(f32_of_f16(f16_of_f32(x)))) << payload;
      EXPECT_TRUE(std::isnan(f32_of_bf16(bf16_of_f32(x)))) << payload;
      EXPECT_EQ(bits_of(f32_of_f16(f16_of_f32(x))) >> 31, sign >> 31);
      EXPECT_EQ(bits_of(f32_of_bf16(bf16_of_f32(x))) >> 31, sign >> 31);
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) std::uint16_t hardware_f16(float x) {
  typedef float v4 __attribute__((vector_size(16)));
  typedef short v8 __attribute__((vector_size(16)));
  const v4 in = {x, 0, 0, 0};
  const v8 out = __builtin_ia32_vcvtps2ph(in, 0);
  return static_cast<std::uint16_t>(out[0]);
}

TEST(Half, AgreesWithTheProcessor) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2, so perhaps no F16C";
  std::mt19937 random(7);
  for (int i = 0; i < 1000000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    ASSERT_EQ(f16_of_f32(x), hardware_f16(x)) << bits_of(x);
  }
}
#endif

}  // namespace
}  // namespace laconic::half_test
