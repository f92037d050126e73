#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "collective/exact_sum.h"
#include "collective/fields.h"
#include "collective/reference.h"
#include "collective/world.h"
#include "core/error.h"
#include "core/half.h"

namespace laconic {
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

TEST(ExactSum, IntegersWrapAndHaveNoAverage) {
  const std::vector<std::int64_t> most{std::numeric_limits<std::int64_t>::max()}, one{1};
  EXPECT_EQ(sum_of<std::int64_t>({most, one})[0], std::numeric_limits<std::int64_t>::min());
  EXPECT_THROW(sum_of<std::int64_t>({most, one}, Op::average), Error);
}

}  // namespace
}  // namespace laconic
