#include "core/range.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/error.h"
#include "core/half.h"

namespace laconic::range_test {
namespace {

constexpr DType all_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                DType::i32, DType::i64, DType::u32, DType::u64};

template <typename T>
T load(const std::uint8_t* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

/// Element i as a long double, which holds every dtype exactly.
long double element(const std::uint8_t* p, DType t) {
  switch (t) {
    case DType::f32:
      return load<float>(p);
    case DType::f64:
      return load<double>(p);
    case DType::f16:
      return f32_of_f16(load<std::uint16_t>(p));
    case DType::bf16:
      return f32_of_bf16(load<std::uint16_t>(p));
    case DType::i32:
      return load<std::int32_t>(p);
    case DType::i64:
      return load<std::int64_t>(p);
    case DType::u32:
      return load<std::uint32_t>(p);
    case DType::u64:
      return load<std::uint64_t>(p);
  }
  return 0;
}

/// The plainest loop, with the extremes as exact values.
struct Expected {
  long double min = 0, max = 0;
  std::uint64_t non_finite = 0;
};

Expected expected(const std::uint8_t* p, std::size_t n, DType t) {
  Expected out;
  bool any = false;
  for (std::size_t i = 0; i < n; ++i) {
    const long double x = element(p + i * size_of(t), t);
    if (!std::isfinite(x)) {
      ++out.non_finite;
      continue;
    }
    out.min = any ? std::min(out.min, x) : x;
    out.max = any ? std::max(out.max, x) : x;
    any = true;
  }
  return out;
}

void expect_matches(const std::uint8_t* p, std::size_t n, DType t) {
  const Range got = scan({p, n, t});
  const Expected want = expected(p, n, t);
  SCOPED_TRACE(std::string(name_of(t)) + " n=" + std::to_string(n));
  ASSERT_EQ(got.count, n);
  ASSERT_EQ(got.non_finite, want.non_finite);
  const bool wide = t == DType::i64 || t == DType::u64;
  if (!wide) {
    ASSERT_EQ(static_cast<long double>(got.min), want.min);
    ASSERT_EQ(static_cast<long double>(got.max), want.max);
    return;
  }
  // Outward, and by no more than the next double.
  ASSERT_LE(static_cast<long double>(got.min), want.min);
  ASSERT_GE(static_cast<long double>(got.max), want.max);
  if (static_cast<long double>(got.min) != want.min) {
    ASSERT_GT(static_cast<long double>(std::nextafter(got.min, INFINITY)), want.min);
  }
  if (static_cast<long double>(got.max) != want.max) {
    ASSERT_LT(static_cast<long double>(std::nextafter(got.max, -INFINITY)), want.max);
  }
}

std::vector<std::uint8_t> random_bytes(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> out(n);
  for (auto& b : out) b = static_cast<std::uint8_t>(random());
  return out;
}

TEST(Range, RandomBitsOfEveryTypeLengthAndAlignment) {
  // Random bits hold NaN, infinities (f16, bf16: many), subnormals and both zeros.
  const auto bytes = random_bytes(8 * 700 + 16, 1);
  for (DType t : all_dtypes) {
    for (std::size_t n = 0; n < 300; ++n) expect_matches(bytes.data() + n % 5, n, t);
    expect_matches(bytes.data() + 1, 700, t);
  }
}

TEST(Range, EverySimdTargetAgrees) {
  const auto bytes = random_bytes(40000, 3);
  std::vector<float> finite(9000);
  for (std::size_t i = 0; i < finite.size(); ++i) finite[i] = std::sin(static_cast<float>(i));
  for (std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (DType t : all_dtypes) expect_matches(bytes.data() + 1, (bytes.size() - 1) / size_of(t), t);
    expect_matches(reinterpret_cast<const std::uint8_t*>(finite.data()), finite.size(), DType::f32);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Range, ExtremeAtEveryPosition) {
  for (std::size_t n : {1, 17, 64, 200}) {
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<float> x(n, 1.0F);
      x[i] = -5.0F;
      EXPECT_EQ(scan({x.data(), n, DType::f32}).min, -5.0) << i << " of " << n;
      x[i] = std::numeric_limits<float>::quiet_NaN();
      const Range r = scan({x.data(), n, DType::f32});
      EXPECT_EQ(r.non_finite, 1U) << i << " of " << n;
      EXPECT_EQ(r.max, n == 1 ? 0.0 : 1.0) << i << " of " << n;
    }
  }
}

TEST(Range, Nothing) {
  for (DType t : all_dtypes) EXPECT_EQ(scan({nullptr, 0, t}), Range{});
  EXPECT_TRUE(Range{}.empty());
}

TEST(Range, OnlyNonFinite) {
  std::vector<float> x(100, std::numeric_limits<float>::quiet_NaN());
  x[3] = std::numeric_limits<float>::infinity();
  x[99] = -std::numeric_limits<float>::infinity();
  const Range r = scan({x.data(), x.size(), DType::f32});
  EXPECT_EQ(r, (Range{0, 0, 100, 100}));
  EXPECT_TRUE(r.empty());
}

TEST(Range, LargestFiniteValuesAreNotInfinities) {
  const double big = std::numeric_limits<double>::max();
  const std::vector<double> x = {big, -big, std::numeric_limits<double>::infinity()};
  const Range r = scan({x.data(), x.size(), DType::f64});
  EXPECT_EQ(r, (Range{-big, big, 3, 1}));
  EXPECT_EQ(r.width(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(r.max_abs(), big);
}

TEST(Range, SubnormalsAndZeros) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x = {-0.0F, 0.0F, tiny, -tiny};
  const Range r = scan({x.data(), x.size(), DType::f32});
  EXPECT_EQ(r.min, -static_cast<double>(tiny));
  EXPECT_EQ(r.max, static_cast<double>(tiny));
  const std::vector<float> zeros(50, -0.0F);
  const Range z = scan({zeros.data(), zeros.size(), DType::f32});
  EXPECT_FALSE(std::signbit(z.min));
  EXPECT_FALSE(std::signbit(z.max));
}

TEST(Range, WideIntegersRoundOutward) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;  // no double
  const std::vector<std::int64_t> x = {big, -big};
  const Range r = scan({x.data(), x.size(), DType::i64});
  EXPECT_EQ(r.max, 0x1p53 + 2);
  EXPECT_EQ(r.min, -0x1p53 - 2);
  const std::vector<std::int64_t> ends = {std::numeric_limits<std::int64_t>::min(),
                                          std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(scan({ends.data(), ends.size(), DType::i64}), (Range{-0x1p63, 0x1p63, 2, 0}));
  const std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
  const Range u = scan({&top, 1, DType::u64});
  EXPECT_EQ(u.max, 0x1p64);
  EXPECT_LT(u.min, 0x1p64);  // never above the value
}

TEST(Range, MergeEqualsTheWhole) {
  const auto bytes = random_bytes(8 * 400, 2);
  for (DType t : all_dtypes) {
    for (std::size_t cut : {0, 1, 33, 199, 399, 400}) {
      const std::uint8_t* p = bytes.data();
      const Range a = scan({p, cut, t});
      const Range b = scan({p + cut * size_of(t), 400 - cut, t});
      EXPECT_EQ(merge(a, b), scan({p, 400, t})) << name_of(t) << " cut at " << cut;
      EXPECT_EQ(merge(b, a), merge(a, b));
    }
  }
}

TEST(Range, IsTheSameOfSeveralThreads) {
  const auto bytes = random_bytes(3'000'000, 4);
  for (const DType t : all_dtypes)
    for (const std::size_t start : {0, 1}) {
      const ConstArray x{bytes.data() + start, (bytes.size() - start) / size_of(t) - 3, t};
      const Range one = scan(x);
      for (const int threads : {2, 3, 64}) EXPECT_EQ(scan(x, threads), one) << name_of(t) << ' ' << threads;
    }
  std::vector<float> calm(1'000'000, 1.0F);
  for (const std::size_t at : {std::size_t{0}, std::size_t{65535}, std::size_t{65536}, calm.size() - 1}) {
    calm[at] = -5;
    EXPECT_EQ(scan({calm.data(), calm.size(), DType::f32}, 3).min, -5) << at;
    calm[at] = 1;
  }
}

TEST(Range, MergeWithNothingFinite) {
  const Range some{2, 3, 10, 1};
  const Range none{0, 0, 5, 5};
  EXPECT_EQ(merge(some, none), (Range{2, 3, 15, 6}));
  EXPECT_EQ(merge(none, some), (Range{2, 3, 15, 6}));
  EXPECT_EQ(merge(none, none), (Range{0, 0, 10, 10}));
  EXPECT_EQ(merge(Range{}, some), some);
}

TEST(Range, RefusesWhatIsNoDtype) {
  const float x = 0;
  EXPECT_THROW((void)scan({&x, 1, static_cast<DType>(99)}), Error);
}

}  // namespace
}  // namespace laconic::range_test
