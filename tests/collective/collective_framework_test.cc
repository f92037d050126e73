// Collectives by other codecs and in the frameworks of the published designs: the bound that they promise holds for
// every element, whatever the codec.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "codec/codec.h"
#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "collective/budget.h"
#include "collective/fields.h"
#include "collective/operate.h"
#include "collective/p2p.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/reference.h"
#include "collective/scan.h"
#include "collective/world.h"

namespace laconic::collective_framework_test {
namespace {

using testing_fields::make;
using testing_fields::sprinkle;
using world::view;

Options with(CodecId codec, Framework framework, const char* bound = "1e-3") {
  Options o;
  o.bound = Bound::parse(bound);
  o.codec = codec;
  o.framework = framework;
  return o;
}

template <typename T>
using Operands = std::vector<std::vector<T>>;

template <typename T>
Operands<T> operands_of(const std::string& kind, std::size_t count, int ranks) {
  Operands<T> all;
  for (int r = 0; r < ranks; ++r) all.push_back(make<T>(kind, count, r));
  return all;
}

template <typename T>
world::Run<T> reduce(const Operands<T>& operands, Op op, const Options& options, bool in_place = false) {
  return world::run<T>(static_cast<int>(operands.size()), [&](int rank, Communicator& comm) {
    const auto& mine = operands[static_cast<std::size_t>(rank)];
    std::vector<T> recv = in_place ? mine : std::vector<T>(mine.size());
    const Report report = allreduce(view(in_place ? recv : mine), view(recv), op, comm, options);
    return std::pair(recv, report);
  });
}

std::vector<CodecId> codecs() {
  std::vector<CodecId> ids;
  for (const Codec* c : all_codecs())
    if (c->available() && c->promise() != Promise::rate) ids.push_back(c->id());
  return ids;
}

std::string described(CodecId codec, Framework framework, int ranks, Op op) {
  return std::string(find_codec(codec)->name()) + ", " + name_of(framework) + ", " + std::to_string(ranks) +
         " ranks, " + std::string(name_of(op));
}

template <typename T>
class Frameworks : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Frameworks, Types);

TYPED_TEST(Frameworks, KeepTheBoundOfSumsAndAverages) {
  using T = TypeParam;
  for (const CodecId codec : codecs())
    for (const Framework framework : {Framework::stepwise, Framework::point_to_point})
      for (const int n : {1, 2, 3, 8})
        for (const Op op : {Op::sum, Op::average}) {
          SCOPED_TRACE(described(codec, framework, n, op));
          auto operands = operands_of<T>("smooth", 6007, n);
          sprinkle(operands.back(), 100, 1999, std::numeric_limits<T>::quiet_NaN());
          sprinkle(operands.front(), 200, 1003, std::numeric_limits<T>::infinity());
          const auto run = reduce(operands, op, with(codec, framework));
          if (n > 1) {
            ASSERT_EQ(run.reports[0].route, Route::stepwise);
            EXPECT_LE(run.reports[0].result_bound, 1e-3);
            EXPECT_GE(run.reports[0].stats.ratio(), 0.98);
          }
          for (const auto& result : run.results)
            reference::expect_sum(result, operands, run.reports[0].result_bound, op == Op::average ? n : 1);
          if (framework == Framework::stepwise) world::expect_same_everywhere(run);
        }
}

// Rounding every partial sum would leave nothing of these, by a lossless codec too.
TYPED_TEST(Frameworks, SumsOfABoundFinerThanRoundingAreExact) {
  using T = TypeParam;
  constexpr int n = 5;
  const auto noise = operands_of<T>("noise", 3001, n);
  const Operands<T> equal(n, std::vector<T>(3001, T(0.1)));
  for (const CodecId codec : codecs())
    for (const Framework framework : {Framework::stepwise, Framework::point_to_point})
      for (const Op op : {Op::sum, Op::average})
        for (const bool all_equal : {false, true}) {
          SCOPED_TRACE(described(codec, framework, n, op) + (all_equal ? ", all equal" : ""));
          const auto& operands = all_equal ? equal : noise;
          const auto run = reduce(operands, op, with(codec, framework, all_equal ? "1e-3rel" : "1e-20"));
          EXPECT_EQ(run.reports[0].result_bound, 0);
          reference::expect_sum(run.results[n - 1], operands, 0, op == Op::average ? n : 1);
        }
}

TYPED_TEST(Frameworks, KeepTheBoundOfExtremes) {
  using T = TypeParam;
  for (const CodecId codec : codecs())
    for (const Framework framework : {Framework::stepwise, Framework::point_to_point})
      for (const Op op : {Op::min, Op::max}) {
        SCOPED_TRACE(described(codec, framework, 4, op));
        const auto operands = operands_of<T>("noise", 9001, 4);
        const auto run = reduce(operands, op, with(codec, framework), true);
        for (std::size_t i = 0; i < 9001; ++i) {
          T exact = operands[0][i];
          for (const auto& x : operands) exact = op == Op::min ? std::min(exact, x[i]) : std::max(exact, x[i]);
          for (const auto& result : run.results) ASSERT_LE(std::abs(static_cast<double>(result[i]) - exact), 1e-3) << i;
        }
      }
}

TYPED_TEST(Frameworks, BudgetsLeaveRoomForEveryStep) {
  using T = TypeParam;
  const DType dtype = world::dtype_of<T>();
  const Range range{-1, 1, 100, 0};
  const Bound bound = Bound::parse("1e-3");
  const Bound operand = Bound::parse("operand:1e-3");
  const Codec& szx = find_codec("szx");
  for (const int n : {2, 5}) {
    const Budget sum = budget_stepwise(szx, n, Op::sum, dtype, bound, n, range);
    EXPECT_LE(sum.operand_bound * n, 1e-3);
    EXPECT_GT(sum.operand_bound * n, 0.99e-3);
    EXPECT_EQ(sum.result_bound, 1e-3);
    EXPECT_LE(budget_stepwise(szx, n, Op::average, dtype, bound, n, range).operand_bound, 1e-3);
    EXPECT_LE(budget_stepwise(szx, n, Op::max, dtype, bound, n, range).operand_bound * n, 1e-3);
    EXPECT_GE(budget_stepwise(szx, n, Op::sum, dtype, operand, n, range).result_bound, n * 1e-3);
    EXPECT_EQ(budget_stepwise(szx, n, Op::sum, dtype, operand, n, range).operand_bound, 1e-3);
    EXPECT_TRUE(std::isinf(budget_stepwise(szx, n, Op::product, dtype, operand, n, range).result_bound));
    EXPECT_EQ(budget_stepwise(slice_codec(), n, Op::product, DType::i32, Bound{}, n, {}).result_bound, 0);
    EXPECT_EQ(budget_movement(szx, n, dtype, bound, range).result_bound,
              budget_movement(szx, n, dtype, bound, range).operand_bound * n);
  }
  // Less than the rounding of the partial sums themselves.
  EXPECT_EQ(budget_stepwise(szx, 4, Op::sum, dtype, Bound::parse("1e-17"), 4, range).route, Route::exact);
  EXPECT_EQ(budget_stepwise(szx, 4, Op::sum, dtype, bound, 4, {0, std::numeric_limits<T>::max(), 9, 0}).route,
            Route::exact);
  EXPECT_TRUE(budget_stepwise(find_codec("lz4"), 4, Op::sum, dtype, bound, 4, range).grid.lossless());
}

TEST(FrameworkOfTheResult, TakesAnyCountAndSchedule) {
  for (const std::size_t count : {0U, 1U, 3U, 40001U})
    for (const Schedule schedule :
         {Schedule::ring, Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::direct})
      for (const Framework framework : {Framework::stepwise, Framework::point_to_point}) {
        Options options = with(CodecId::fzlight, framework);
        options.schedule = schedule;
        const auto operands = operands_of<float>("smooth", count, 3);
        const auto run = reduce(operands, Op::sum, options);
        for (const auto& result : run.results) reference::expect_sum(result, operands, 1e-3);
      }
}

TEST(FrameworkOfTheResult, ReduceScatterReduceAndScansKeepTheBoundToo) {
  constexpr int n = 4;
  const auto operands = operands_of<float>("smooth", 8004, n);
  const Options options = with(CodecId::szx, Framework::stepwise);
  for (const Op op : {Op::sum, Op::average}) {
    const auto divided = [&](int summands) { return op == Op::average ? summands : 1; };
    const auto scattered = world::run<float>(n, [&](int rank, Communicator& comm) {
      std::vector<float> recv(2001);
      const auto report =
          reduce_scatter_block(view(operands[static_cast<std::size_t>(rank)]), view(recv), op, comm, options);
      return std::pair(recv, report);
    });
    const auto scanned = world::run<float>(n, [&](int rank, Communicator& comm) {
      std::vector<float> recv(8004);
      const auto report = scan(view(operands[static_cast<std::size_t>(rank)]), view(recv), op, comm, options);
      return std::pair(recv, report);
    });
    const auto rooted = world::run<float>(n, [&](int rank, Communicator& comm) {
      std::vector<float> recv(8004);
      const auto report =
          laconic::reduce(view(operands[static_cast<std::size_t>(rank)]), view(recv), op, 2, comm, options);
      return std::pair(recv, report);
    });
    reference::expect_sum(rooted.results[2], operands, 1e-3, divided(n));
    for (std::size_t r = 0; r < n; ++r) {
      Operands<float> shares;
      for (const auto& x : operands) shares.emplace_back(x.begin() + 2001 * r, x.begin() + 2001 * (r + 1));
      reference::expect_sum(scattered.results[r], shares, 1e-3, divided(n));
      const Operands<float> first(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(r) + 1);
      reference::expect_sum(scanned.results[r], first, 1e-3, divided(static_cast<int>(r) + 1));
    }
  }
}

TEST(FrameworkOfTheResult, MovementGoesByAnyCodec) {
  constexpr int n = 5;
  for (const CodecId codec : codecs())
    for (const Framework framework : {Framework::automatic, Framework::point_to_point}) {
      const Options options = with(codec, framework);
      const auto x = operands_of<float>("noise", 3001, n);
      const auto gathered = world::run<float>(n, [&](int rank, Communicator& comm) {
        std::vector<float> recv(3001 * n);
        const auto report = allgather(view(x[static_cast<std::size_t>(rank)]), view(recv), comm, options);
        return std::pair(recv, report);
      });
      const auto told = world::run<float>(n, [&](int rank, Communicator& comm) {
        std::vector<float> data = x[static_cast<std::size_t>(rank)];
        const auto report = bcast(view(data), 1, comm, options);
        return std::pair(data, report);
      });
      for (const auto& result : gathered.results)
        for (std::size_t i = 0; i < result.size(); ++i)
          ASSERT_LE(std::abs(result[i] - x[i / 3001][i % 3001]), 1.0001e-3F);
      for (const auto& result : told.results)
        for (std::size_t i = 0; i < result.size(); ++i) ASSERT_LE(std::abs(result[i] - x[1][i]), 1.0001e-3F);
    }
}

TEST(FrameworkOfTheResult, PairsSendByAnyCodec) {
  const auto x = make<float>("smooth", 5000, 0);
  const auto run = world::run<float>(2, [&](int rank, Communicator& comm) {
    std::vector<float> y(5000);
    const Options options = with(CodecId::szx, Framework::automatic);
    const auto report = rank == 0 ? send(view(x), 1, 0, comm, options) : recv(view(y), 0, 0, comm, options).report;
    return std::pair(y, report);
  });
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_LE(std::abs(run.results[1][i] - x[i]), 1e-3F);
}

TEST(FrameworkOfTheResult, ProductsGoStepByStep) {
  Operands<std::int32_t> integers;
  Operands<float> reals;
  for (int r = 0; r < 3; ++r) {
    integers.push_back(make<std::int32_t>("integer", 5000, r));
    reals.push_back(make<float>("offset", 5000, r));
  }
  const auto exact = reduce(integers, Op::product, Options{});
  const auto near = reduce(reals, Op::product, with(CodecId::slice, Framework::automatic, "operand:1e-3"));
  for (std::size_t i = 0; i < 5000; ++i) {
    const auto whole = static_cast<std::uint32_t>(integers[0][i]) * static_cast<std::uint32_t>(integers[1][i]) *
                       static_cast<std::uint32_t>(integers[2][i]);
    ASSERT_EQ(exact.results[1][i], static_cast<std::int32_t>(whole));
    const double product = static_cast<double>(reals[0][i]) * reals[1][i] * reals[2][i];
    ASSERT_NEAR(near.results[2][i], product, product * 1e-5 + 1e-3);
  }
  EXPECT_TRUE(std::isinf(near.reports[0].result_bound));
  EXPECT_THROW(reduce(reals, Op::product, with(CodecId::slice, Framework::automatic, "1e-3")), Error);
  EXPECT_THROW(reduce(reals, Op::product, with(CodecId::slice, Framework::on_grid, "operand:1e-3")), Error);
}

// Of their own accord processors differ in the sign of a NaN that was none before, and keep one operand's or the
// other's.
template <typename Float, typename Bits>
void expect_one_nan(Bits expected) {
  const Float infinity = std::numeric_limits<Float>::infinity();
  const Float theirs = std::bit_cast<Float>(static_cast<Bits>(~Bits{0} ^ 1));
  for (const Op op : {Op::sum, Op::product}) {
    std::vector<Float> a{infinity, theirs, 1, op == Op::sum ? 1 : infinity};
    const std::vector<Float> b{op == Op::sum ? -infinity : 0, -theirs, theirs, 2};
    operate(op, view(a), view(b));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(std::bit_cast<Bits>(a[i]), expected) << i;
    EXPECT_EQ(a[3], op == Op::sum ? 3 : infinity);
  }
}

TEST(Operate, MakesOneNan) {
  expect_one_nan<float>(std::uint32_t{0x7fc00000});
  expect_one_nan<double>(std::uint64_t{0x7ff8000000000000});
}

TEST(FrameworkOfTheResult, RatesPromiseNothingAndSaySo) {
  const Codec& rate = find_codec("zfp-rate");
  const auto operands = operands_of<float>("smooth", 20000, 2);
  EXPECT_THROW(reduce(operands, Op::sum, with(CodecId::zfp_rate, Framework::automatic, "1e-3")), Error);
  EXPECT_THROW(reduce(operands, Op::sum, with(CodecId::slice, Framework::on_grid, "4x")), Error);
  if (!rate.available()) return;
  const auto run = reduce(operands, Op::sum, with(CodecId::zfp_rate, Framework::stepwise, "4x"));
  EXPECT_TRUE(std::isinf(run.reports[0].result_bound));
  EXPECT_NEAR(run.reports[0].stats.ratio(), 4, 0.2);
  for (std::size_t i = 0; i < 20000; ++i) ASSERT_NEAR(run.results[0][i], operands[0][i] + operands[1][i], 0.2) << i;
}

TEST(FrameworkOfTheResult, CodecsThatKeepBoundsKeepRatiosToo) {
  const auto operands = operands_of<float>("smooth", 50000, 3);
  for (const CodecId codec : {CodecId::slice, CodecId::szx, CodecId::fzlight})
    for (const Op op : {Op::sum, Op::average, Op::max}) {
      const auto run = reduce(operands, op, with(codec, Framework::automatic, "4x"));
      EXPECT_TRUE(std::isinf(run.reports[0].result_bound));
      EXPECT_GT(run.reports[0].stats.ratio(), 3.9);
      for (std::size_t i = 0; i < 50000; ++i) {
        double exact = operands[0][i];
        for (int rank = 1; rank < 3; ++rank)
          exact = op == Op::max ? std::max<double>(exact, operands[rank][i]) : exact + operands[rank][i];
        ASSERT_NEAR(run.results[0][i], op == Op::average ? exact / 3 : exact, 0.2) << i;
        ASSERT_EQ(run.results[0][i], run.results[2][i]) << i;
      }
    }
  const auto integers = operands_of<std::int32_t>("integer", 100, 2);  // are exact, whatever the bound
  const auto exact = reduce(integers, Op::sum, with(CodecId::slice, Framework::automatic, "4x"));
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(exact.results[1][i], integers[0][i] + integers[1][i]);
}

TEST(FrameworkOfTheResult, WhatDoesNotFitIsRefusedOnEveryRank) {
  const auto x = operands_of<float>("smooth", 100, 2);
  const auto integers = operands_of<std::int32_t>("integer", 100, 2);
  EXPECT_THROW(reduce(x, Op::sum, with(CodecId::szx, Framework::on_grid)), Error);
  EXPECT_THROW(reduce(x, Op::sum, with(CodecId{77}, Framework::automatic)), Error);
  EXPECT_THROW(reduce(integers, Op::sum, with(CodecId::fzlight, Framework::automatic)), Error);
  EXPECT_THROW(reduce(integers, Op::average, with(CodecId::slice, Framework::stepwise)), Error);
  const auto differ = [&](const Options& one, const Options& other) {
    world::run<float>(2, [&](int rank, Communicator& comm) {
      std::vector<float> recv(100);
      const auto& mine = x[static_cast<std::size_t>(rank)];
      try {
        allreduce(view(mine), view(recv), Op::sum, comm, rank == 0 ? one : other);
        ADD_FAILURE() << "rank " << rank << " did not notice";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::mismatch);
        EXPECT_NE(std::string(e.what()).find("rank 1"), std::string::npos);
      }
      return std::pair(recv, Report{});
    });
  };
  differ(with(CodecId::szx, Framework::automatic), with(CodecId::fzlight, Framework::automatic));
  differ(with(CodecId::szx, Framework::stepwise), with(CodecId::szx, Framework::point_to_point));
}

TEST(Operate, EveryTypeOnPlainElements) {
  for (const DType t :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u32, DType::u64}) {
    // 3 and 2 in every type.
    std::uint64_t a = 3;
    std::uint64_t b = 2;
    if (t == DType::f32) a = 0x40400000, b = 0x40000000;
    if (t == DType::f64) a = 0x4008000000000000, b = 0x4000000000000000;
    if (t == DType::f16) a = 0x4200, b = 0x4000;
    if (t == DType::bf16) a = 0x4040, b = 0x4000;
    const std::uint64_t three = a;
    operate(Op::sum, {&a, 1, t}, {&b, 1, t});
    operate(Op::product, {&a, 1, t}, {&b, 1, t});  // 10
    if (is_float(t)) divide({&a, 1, t}, 5);
    operate(Op::max, {&a, 1, t}, {&three, 1, t});
    EXPECT_EQ(a, is_float(t) ? three : 10) << name_of(t);
    operate(Op::min, {&a, 1, t}, {&b, 1, t});
    EXPECT_EQ(a, b) << name_of(t);
  }
}

}  // namespace
}  // namespace laconic::collective_framework_test
