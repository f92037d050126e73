// Bytes and values do not depend on the number of threads.
#include <gtest/gtest.h>

#include "codec/slice_cases.h"

namespace laconic::test {
namespace {

TEST(SliceThreads, GiveTheSameBytes) {
  for (const DType t : {DType::f32, DType::f64, DType::bf16, DType::i32})
    for (const Kind kind : {Kind::smooth, Kind::mixed, Kind::random_bits})
      for (const std::size_t count : {std::size_t{0}, std::size_t{3000}, std::size_t{9 * 2048 + 5}}) {
        const Grid g = grids_of(t).back();
        SCOPED_TRACE(describe(t, g, kind, count));
        const Array x = sample(t, kind, count);
        const Outcome a = encoded(x, g);
        const Outcome sum = added(x, a, a);
        ASSERT_EQ(sum.code, Code::ok);
        const Outcome fused = encode_added(x, sum);
        const Array y = decoded(x, a);
        const Array total = decoded(x, sum);
        for (const int threads : {2, 3, 5}) {
          SCOPED_TRACE(threads);
          EXPECT_EQ(a, encoded(x, g, threads));
          EXPECT_EQ(sum, added(x, a, a, threads));
          EXPECT_EQ(fused, encode_added(x, sum, threads));
          EXPECT_TRUE(y == decoded(x, a, threads));
          EXPECT_TRUE(total == decoded(x, sum, threads));
        }
      }
}

// Frames of which threads move parts, and look at checksums, together.
TEST(SliceThreads, GiveTheSameBytesOfMuch) {
  for (const Kind kind : {Kind::smooth, Kind::mixed, Kind::random_bits}) {
    constexpr std::size_t count = (std::size_t{3} << 20) + 77;
    const Grid g = grids_of(DType::f32).back();
    SCOPED_TRACE(describe(DType::f32, g, kind, count));
    const Array x = sample(DType::f32, kind, count);
    const Outcome a = encoded(x, g);
    const Outcome sum = added(x, a, a);
    for (const int threads : {2, 3}) {
      EXPECT_TRUE(a == encoded(x, g, threads));
      EXPECT_TRUE(sum == added(x, a, a, threads));
      EXPECT_TRUE(decoded(x, a) == decoded(x, a, threads));
    }
  }
}

}  // namespace
}  // namespace laconic::test
