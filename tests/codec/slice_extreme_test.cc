// Minimum and maximum of frames and elements, on every target, against the long way: all are decoded, elements as their
// sum with zeros is, compared, encoded.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "codec/slice_cases.h"
#include "core/extreme.h"
#include "support/sanitized.h"

namespace laconic::test::slice_extreme_test {
namespace {

std::vector<slice::Target> all_targets() {
  auto targets = fast_targets();
  targets.push_back(slice::Target::scalar);
  return targets;
}

/// A frame may store an element exactly for its neighbours' sake; a sum takes it for the grid point that it is.
Array on_grid(const Array& x, const Grid& g) {
  if (g.lossless()) return x;
  const Array zeros(x.dtype, x.count);
  return decoded(x, added(x, encoded(x, g), encoded(zeros, g)));
}

Outcome the_long_way(Op op, const Grid& g, const Array* x, const std::vector<Outcome>& frames) {
  Array found = x != nullptr ? on_grid(*x, g) : decoded(Array(g.dtype, frame::peek(frames[0].frame).count), frames[0]);
  for (std::size_t i = x != nullptr ? 0 : 1; i < frames.size(); ++i)
    take_extreme(op, found.view(), decoded(found, frames[i]).view());
  return encoded(found, g);
}

class SliceExtreme : public testing::TestWithParam<DType> {};

TEST_P(SliceExtreme, IsWhatTheLongWayGives) {
  const DType t = GetParam();
  std::size_t turn = 0;
  for (const Grid& g : grids_of(t))
    for (const Kind kind : all_kinds)
      for (const std::size_t count : {0U, 1U, 65U, 2047U, 2048U, 5000U}) {
        if (sanitized && count == 2048) continue;
        SCOPED_TRACE(describe(t, g, kind, count));
        const Op op = ++turn % 2 == 0 ? Op::min : Op::max;
        const Array x = sample(t, kind, count);
        const Outcome a = encoded(x, g);
        const Outcome b = encoded(sample(t, kind, count, 2), g);
        const Outcome c = encoded(sample(t, all_kinds[turn % all_kinds.size()], count, 3), g);
        const std::vector<std::vector<Outcome>> frames = {{}, {b}, {b, c}};
        for (const auto& others : frames) {
          std::vector<Outcome> all = others;
          all.push_back(a);
          const Outcome with_elements = the_long_way(op, g, &x, others);
          const Outcome of_frames = the_long_way(op, g, nullptr, all);
          for (const auto target : all_targets()) {
            const OnTarget guard(target);
            ASSERT_EQ(with_elements, extreme_of(op, g, &x, others)) << slice::name_of(target) << ", " << others.size();
            ASSERT_EQ(of_frames, extreme_of(op, g, nullptr, all)) << slice::name_of(target) << ", " << others.size();
          }
        }
      }
}

/// Elements from `from` on.
Array rest_of(const Array& x, std::size_t from) {
  Array rest(x.dtype, x.count - from, 3);
  std::memcpy(rest.data(), x.data() + from * size_of(x.dtype), rest.size_bytes());
  return rest;
}

TEST_P(SliceExtreme, DoesNotDependOnWhereChunksBegin) {
  const DType t = GetParam();
  for (const Grid& g : grids_of(t))
    for (const Kind kind : all_kinds) {
      SCOPED_TRACE(describe(t, g, kind, 5000));
      const Array x = sample(t, kind, 5000);
      const Array y = sample(t, Kind::mixed, 5000);
      const auto of = [&](const Array& a, const Array& b) {
        return decoded(a, extreme_of(Op::max, g, &a, {extreme_of(Op::max, g, &b, {})}));
      };
      for (const std::size_t from : {37U, 1000U, 2049U})
        EXPECT_TRUE(rest_of(of(x, y), from) == of(rest_of(x, from), rest_of(y, from))) << from;
    }
}

INSTANTIATE_TEST_SUITE_P(AllDtypes, SliceExtreme, testing::ValuesIn(all_dtypes),
                         [](const auto& p) { return std::string(laconic::name_of(p.param)); });

TEST(SliceExtremeRefusal, NamesWhatDiffers) {
  const Grid g = make_grid(DType::f32, 1e-3, 2);
  const Array x = sample(DType::f32, Kind::smooth, 100);
  const Array shorter = sample(DType::f32, Kind::smooth, 99);
  const Outcome a = encoded(x, g);
  EXPECT_EQ(extreme_of(Op::max, g, nullptr, {a, a}), a);
  EXPECT_EQ(extreme_of(Op::max, g, nullptr, {a, encoded(x, make_grid(DType::f32, 1e-4, 2))}).code, Code::mismatch);
  EXPECT_EQ(extreme_of(Op::max, g, &x, {encoded(x, make_grid(DType::f32, 1e-4, 2))}).code, Code::mismatch);
  EXPECT_EQ(extreme_of(Op::max, g, &x, {encoded(shorter, g)}).code, Code::mismatch);
  EXPECT_EQ(extreme_of(Op::max, make_grid(DType::f64, 1e-3, 2), &x, {}).code, Code::invalid_argument);
  EXPECT_EQ(extreme_of(Op::max, rate_grid(DType::f32, 10), &x, {}).code, Code::unsupported);
  EXPECT_EQ(extreme_of(Op::sum, g, &x, {a}).code, Code::invalid_argument);
  std::vector<std::uint8_t> out(frame::capacity(DType::f32, 100));
  EXPECT_THROW(frame::extreme(Op::max, g, std::nullopt, {}, out), Error);
  EXPECT_THROW(frame::extreme(Op::max, g, x.view(), {}, frame::MutBytes(out).first(a.frame.size() - 1)), Error);
}

}  // namespace
}  // namespace laconic::test::slice_extreme_test
