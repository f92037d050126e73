// The survey's steps, emulated, give what the CPU gives: every kind of data, awkward counts and places, thread blocks
// in any number and order.
#include <gtest/gtest.h>

#include "collective/operate.h"
#include "core/extreme.h"
#include "gpu/emulated.h"
#include "gpu/survey_cases.h"
#include "gpu/survey_steps.h"

namespace laconic::test::survey_emulated_test {
namespace {

using namespace gpu::emulated;  // NOLINT(google-build-using-namespace)

template <class Bits>
const Bits* elements_of(const Array& x) {
  return reinterpret_cast<const Bits*>(x.data());
}
template <class Bits>
Bits* elements_of(Array& x) {
  return reinterpret_cast<Bits*>(x.data());
}

/// run(number) for the thread blocks of a kernel; the last one first.
template <class F>
void each_tile(std::uint64_t tiles, F run) {
  for (std::uint64_t t = tiles; t-- > 0;) run(t);
}
/// run(share) for the warps of a kernel that needs no more of a thread block.
template <class F>
void each_warp(std::uint64_t tiles, F run) {
  each_tile(tiles * tile_warps, [&](std::uint64_t k) { run(Share{k, tiles * tile_warps}); });
}

Range emulated_scan(const Array& x, std::uint64_t tiles) {
  ScanTally tally;
  ScanShared shared{};
  if (x.count > 0)
    with_float(x.dtype, [&]<class T>(T) {
      each_tile(tiles, [&](std::uint64_t t) {
        run_scan<T>(Tile(), t, tiles, elements_of<typename T::Bits>(x), x.count, &tally, shared);
      });
    });
  return std::bit_cast<Range>(tally);
}

Outliers emulated_outliers(const Array& x, const Beyond& what, std::uint64_t tiles) {
  Outliers found;
  OutlierShared shared{};
  if (x.count > 0)
    with_float(x.dtype, [&]<class T>(T) {
      const gpu::OutlierBits wanted = gpu::outlier_bits(x.dtype, what.limit, what.fill);
      each_tile(tiles, [&](std::uint64_t t) {
        run_count_outliers<T>(Tile(), t, tiles, elements_of<typename T::Bits>(x), x.count, wanted, &found, shared);
      });
    });
  return found;
}

class SurveyOfFloats : public testing::TestWithParam<DType> {};

TEST_P(SurveyOfFloats, ScansAsTheCpu) {
  for (const Kind kind : all_kinds)
    for (const Place& at : places) {
      SCOPED_TRACE(describe(GetParam(), kind, at));
      const LaneOrder order(static_cast<int>(at.count), 13);
      const Array x = placed(GetParam(), kind, at);
      for (const std::uint64_t tiles : {1U, 3U}) expect_same(scan(x.view()), emulated_scan(x, tiles));
    }
}

TEST_P(SurveyOfFloats, FindsOneExtremeWhereverItIs) {
  Array x = placed(GetParam(), Kind::constant, {3000, 1});
  Random random(1);
  for (std::size_t i = 0; i < x.count; i += 7) {
    for (const double v : {-3.0, 3.0, -0.0, 1e9}) {
      const std::uint64_t before = x.bits(i);
      x.set_value(i, v);
      expect_same(scan(x.view()), emulated_scan(x, 1));
      x.set_bits(i, before);
    }
    x.set_bits(i, special_bits(GetParam(), random));  // from now on there are more and more of them
  }
}

TEST_P(SurveyOfFloats, CountsOutliersAsTheCpu) {
  for (const Kind kind : all_kinds)
    for (const Place& at : places) {
      const LaneOrder order(static_cast<int>(at.count), 31);
      const Array x = placed(GetParam(), kind, at);
      for (const Beyond& what : questions_about(x)) {
        SCOPED_TRACE(describe(GetParam(), kind, at) + ", beyond " + std::to_string(what.limit) + " up to " +
                     std::to_string(what.fill));
        expect_same(count_outliers(x.view(), what.limit, what.fill),
                    emulated_outliers(x, what, at.count % 2 == 0 ? 1 : 5));
      }
    }
}

TEST_P(SurveyOfFloats, DividesAsTheCpu) {
  for (const Kind kind : all_kinds)
    for (const Place& at : places)
      for (const int divisor : {1, 2, 3, 7, 1000, 2147483647}) {
        SCOPED_TRACE(describe(GetParam(), kind, at) + " by " + std::to_string(divisor));
        Array want = placed(GetParam(), kind, at);
        Array got = want;
        divide(want.view(), divisor);
        with_float(GetParam(), [&]<class T>(T) {
          const auto by = static_cast<typename T::Real>(divisor);
          each_warp(2, [&](const Share& s) {
            divide_share<T>(Warp(), s, elements_of<typename T::Bits>(got), got.count, by);
          });
        });
        ASSERT_TRUE(want == got);
      }
}

INSTANTIATE_TEST_SUITE_P(All, SurveyOfFloats, testing::ValuesIn(float_dtypes),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

class Survey : public testing::TestWithParam<DType> {};

TEST_P(Survey, TakesExtremesAsTheCpu) {
  for (std::size_t k = 0; k < all_kinds.size(); ++k)
    for (const Place& at : places)
      for (const Op op : {Op::min, Op::max})
        for (const std::size_t apart : {0U, 1U}) {  // of the two arrays' places
          SCOPED_TRACE(describe(GetParam(), all_kinds[k], at) + " " + std::string(name_of(op)));
          Array want = placed(GetParam(), all_kinds[k], at);
          Array got = want;
          const Kind other = all_kinds[(k * 5 + apart * 3) % all_kinds.size()];
          const Array b = placed(GetParam(), other, {at.count, at.offset + apart}, 2);
          take_extreme(op, want.view(), b.view());
          with_ordered(GetParam(), [&]<class O>(O) {
            using Bits = typename O::Bits;
            each_warp(2, [&](const Share& s) {
              extreme_share<O>(Warp(), s, op == Op::min, elements_of<Bits>(got), elements_of<Bits>(b), got.count);
            });
          });
          ASSERT_TRUE(want == got);
        }
}

template <class Element>
void gather(const Array& x, Array& out) {
  each_warp(3, [&](const Share& s) {
    gather_share(Warp(), s, elements_of<Element>(x), Sample{x.count}, elements_of<Element>(out));
  });
}

TEST_P(Survey, GathersTheChunksOfASample) {
  for (const Place& at : {Place{0, 0}, Place{5, 1}, Place{2049, 0}, Place{16 * 2048 - 1, 1}, Place{16 * 2048, 0},
                          Place{16 * 2048 + 1, 0}, Place{100000, 3}}) {
    SCOPED_TRACE(describe(GetParam(), Kind::mixed, at));
    const Array x = placed(GetParam(), Kind::mixed, at);
    const Sample chosen{at.count};
    Array out(GetParam(), chosen.elements());
    const std::size_t bytes = size_of(GetParam());
    if (bytes == 2) gather<std::uint16_t>(x, out);
    if (bytes == 4) gather<std::uint32_t>(x, out);
    if (bytes == 8) gather<std::uint64_t>(x, out);
    for (std::size_t i = 0; i < out.count; i += 509)
      ASSERT_EQ(out.bits(i), x.bits(chosen.first(i / frame::chunk_values) + i % frame::chunk_values)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Survey, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

TEST(OutlierBits, AreThoseOfEveryMagnitude) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double limit : {-1.0, 0.0, 0x1p-24, 0x1p-25, 1.0, 1.0001, 65504.0, 65505.0, infinity})
    for (const double fill : {-1.0, -0.0, 0x1p-24, 1.0, 1.0001, 65504.0, 1e30, infinity}) {
      const gpu::OutlierBits found = gpu::outlier_bits(DType::f16, limit, fill);
      for (std::uint32_t bits = 0; bits < 0x8000; ++bits) {
        const auto m = static_cast<double>(f32_of_f16(static_cast<std::uint16_t>(bits)));
        ASSERT_EQ(bits - found.first<found.size, m> limit && m <= fill) << bits << " " << limit << " " << fill;
        ASSERT_EQ(bits == found.fill, m == fill) << bits << " " << fill;
      }
    }
}

}  // namespace
}  // namespace laconic::test::survey_emulated_test
