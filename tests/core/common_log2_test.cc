#include "core/common_log2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace laconic::common_log2_test {
namespace {

TEST(CommonLog2, IsExactForPowersOfTwo) {
  for (int e = -1074; e < 1024; ++e) ASSERT_EQ(common_log2(std::ldexp(1.0, e)), e);
  EXPECT_EQ(common_log2(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
}

TEST(CommonLog2, IsNearlyTheLogarithm) {
  std::uint64_t random = 1;
  for (int i = 0; i < 100000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const double x = std::ldexp(1 + static_cast<double>(random >> 12) * 0x1p-52, i % 600 - 300);
    ASSERT_NEAR(common_log2(x), std::log2(x), 1e-15 * (1 + std::abs(std::log2(x)))) << x;
  }
}

// Of all processors.
TEST(CommonLog2, GivesTheseBits) {
  EXPECT_EQ(common_log2(3), 0x1.95c01a39fbd69p+0);
  EXPECT_EQ(common_log2(0.1), -0x1.a934f0979a371p+1);
  EXPECT_EQ(common_log2(1e300), 0x1.f24a09f1a8b89p+9);
}

}  // namespace
}  // namespace laconic::common_log2_test
