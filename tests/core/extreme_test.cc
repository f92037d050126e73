// Minimum and maximum of arrays, which depend on no order.
#include "core/extreme.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "core/half.h"
#include "core/one_nan.h"

namespace laconic {
namespace {

MutArray view(std::vector<float>& x) { return {x.data(), x.size(), DType::f32}; }
ConstArray view(const std::vector<float>& x) { return {x.data(), x.size(), DType::f32}; }
MutArray view(std::vector<double>& x) { return {x.data(), x.size(), DType::f64}; }
ConstArray view(const std::vector<double>& x) { return {x.data(), x.size(), DType::f64}; }
MutArray view(std::vector<std::int64_t>& x) { return {x.data(), x.size(), DType::i64}; }
ConstArray view(const std::vector<std::int64_t>& x) { return {x.data(), x.size(), DType::i64}; }

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST(TakeExtreme, OrdersEveryDtypeAndKnowsNanAndTheSignOfZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> a{1, -1, -0.0F, 0.0F, -inf, nan, -nan, 2, -3};
  const std::vector<float> b{2, -2, 0.0F, -0.0F, inf, 1, 1, -nan, -3};
  const std::vector<float> low{1, -2, -0.0F, -0.0F, -inf, nan, nan, nan, -3};
  const std::vector<float> high{2, -1, 0.0F, 0.0F, inf, nan, nan, nan, -3};
  for (const Op op : {Op::min, Op::max}) {
    const auto& want = op == Op::min ? low : high;
    auto x = a;
    take_extreme(op, view(x), view(b));
    EXPECT_TRUE(same_bytes(x, want));
    const std::vector<double> wide_b(b.begin(), b.end()), wide_want(want.begin(), want.end());
    std::vector<double> wide(a.begin(), a.end());
    take_extreme(op, view(wide), view(wide_b));
    EXPECT_TRUE(same_bytes(wide, wide_want));
    for (const DType dtype : {DType::f16, DType::bf16}) {
      const auto half = [&](const std::vector<float>& v) {
        std::vector<std::uint16_t> bits;
        for (const float f : v) bits.push_back(dtype == DType::f16 ? f16_of_f32(f) : bf16_of_f32(f));
        return bits;
      };
      auto h = half(a);
      const auto hb = half(b);
      take_extreme(op, {h.data(), h.size(), dtype}, {hb.data(), hb.size(), dtype});
      EXPECT_EQ(h, half(want)) << name_of(dtype);
    }
    std::vector<std::uint32_t> u{5, 0xffffffffU};
    const std::vector<std::uint32_t> v{7, 1};
    take_extreme(op, {u.data(), 2, DType::u32}, {v.data(), 2, DType::u32});
    EXPECT_EQ(u, (op == Op::min ? std::vector<std::uint32_t>{5, 1} : std::vector<std::uint32_t>{7, 0xffffffffU}));
    std::vector<std::int64_t> s{5, -1};
    const std::vector<std::int64_t> t{7, 1};
    take_extreme(op, view(s), view(t));
    EXPECT_EQ(s, (op == Op::min ? std::vector<std::int64_t>{5, -1} : std::vector<std::int64_t>{7, 1}));
  }
}

TEST(OneNan, IsTheQuietOneOfEveryFloatType) {
  constexpr OneNan f32(DType::f32), f64(DType::f64), f16(DType::f16), bf16(DType::bf16);
  for (const std::uint64_t nan : {0x7f800001U, 0xff800001U, 0x7fffffffU, 0xffc00000U}) EXPECT_EQ(f32(nan), 0x7fc00000U);
  for (const std::uint64_t number : {0x7f800000U, 0xff800000U, 0x80000000U, 0x7f7fffffU})
    EXPECT_EQ(f32(number), number);
  EXPECT_EQ(f64(0xfff0000000000001), 0x7ff8000000000000U);
  EXPECT_EQ(f64(0xfff0000000000000), 0xfff0000000000000U);
  EXPECT_EQ(f16(0xfc01), f16_of_f32(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_EQ(f16(0xfc00), 0xfc00U);
  EXPECT_EQ(bf16(0xff81), bf16_of_f32(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_EQ(bf16(0xff80), 0xff80U);
}

}  // namespace
}  // namespace laconic
