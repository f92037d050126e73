#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "collective/allreduce.h"
#include "collective/fields.h"
#include "collective/reference.h"
#include "collective/world.h"
#include "core/half.h"
#include "support/sample_data.h"
#include "support/sanitized.h"

namespace laconic::collective_allreduce_test {
namespace {

using testing_fields::make;
using testing_fields::operands_of;
using testing_fields::sprinkle;
using world::view;

constexpr int rank_counts[] = {1, 2, 3, 4, 7, 8};

Options with(const char* bound, std::size_t segment = 0, int threads = 1) {
  Options o;
  o.bound = Bound::parse(bound);
  o.segment_values = segment;
  o.threads = threads;
  return o;
}

template <typename T>
world::Run<T> reduce(const std::vector<std::vector<T>>& operands, Op op, const Options& options,
                     bool in_place = false) {
  return world::run<T>(static_cast<int>(operands.size()), [&](int rank, Communicator& comm) {
    const auto& mine = operands[static_cast<std::size_t>(rank)];
    std::vector<T> recv = in_place ? mine : std::vector<T>(mine.size());
    const Report report = allreduce(view(in_place ? recv : mine), view(recv), op, comm, options);
    return std::pair(recv, report);
  });
}

/// Runs it and checks all that is promised.
template <typename T>
world::Run<T> expect_kept(const std::vector<std::vector<T>>& operands, Op op, const Options& options) {
  auto run = reduce(operands, op, options);
  world::expect_same_everywhere(run);
  const int divisor = op == Op::average ? static_cast<int>(operands.size()) : 1;
  reference::expect_sum(run.results[0], operands, run.reports[0].result_bound, divisor);
  return run;
}

template <typename T>
class Allreduce : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Allreduce, Types);

TYPED_TEST(Allreduce, KeepsTheBoundOnEveryElementAndTheSameBytesOnEveryRank) {
  for (const int n : rank_counts) {
    for (const char* kind : {"smooth", "noise"}) {
      for (const Op op : {Op::sum, Op::average}) {
        SCOPED_TRACE(std::string(kind) + " on " + std::to_string(n) + " ranks, " + std::string(name_of(op)));
        const auto run = expect_kept(operands_of<TypeParam>(kind, 100003, n), op, with("1e-3"));
        if (n == 1) continue;
        EXPECT_EQ(run.reports[0].route, Route::on_grid);
        EXPECT_EQ(run.reports[0].result_bound, 1e-3);
        EXPECT_LE(run.reports[0].operand_bound, op == Op::sum ? 1e-3 / n : 1e-3);
        EXPECT_GT(run.reports[0].operand_bound, op == Op::sum ? 0.99e-3 / n : 0.99e-3);
        EXPECT_GT(run.reports[0].stats.ratio(), 1.5);
      }
    }
  }
}

/// Where one rank's fill values meet another's values the sum must hold both, which takes more bytes than plain data.
TYPED_TEST(Allreduce, FillValuesStayOnTheGridOnlyWhereAllRanksHaveThem) {
  for (const bool same : {true, false}) {
    SCOPED_TRACE(same ? "same places" : "other places");
    auto operands = operands_of<TypeParam>("smooth", 50000, 3);
    for (std::size_t r = 0; r < operands.size(); ++r)
      for (std::size_t i = 0; i < operands[r].size(); ++i)
        if (i / 500 % 3 == (same ? 0 : r)) operands[r][i] = TypeParam{1e30F};
    const auto run = expect_kept(operands, Op::sum, with("1e-3"));
    EXPECT_EQ(run.reports[0].route, same ? Route::on_grid : Route::exact);
    EXPECT_GT(run.reports[0].stats.ratio(), same ? 1.5 : 0.9);
  }
}

/// The grid is that of the others, however far those reach.
TYPED_TEST(Allreduce, OneOutlierCostsWhatItTakes) {
  const double largest = std::is_same_v<TypeParam, double> ? 1e11 : 500;
  for (double scale = 1; scale <= largest; scale *= 10) {
    auto operands = operands_of<TypeParam>("smooth", 50000, 4);
    for (auto& x : operands)
      for (auto& v : x) v = static_cast<TypeParam>(v * scale);
    const auto without = reduce(operands, Op::sum, with("1e-3"));
    for (auto& x : operands) x[5] = TypeParam{1e30F};
    const auto run = expect_kept(operands, Op::sum, with("1e-3"));
    EXPECT_EQ(run.reports[0].route, without.reports[0].route) << scale;
    EXPECT_LT(run.reports[0].stats.wire_bytes, without.reports[0].stats.wire_bytes * 1.02 + 600) << scale;
  }
}

/// Positive values of all sizes between beyond the grid and the end of the type.
template <typename T>
T any_size(std::uint64_t seed) {
  const double least = std::is_same_v<T, double> ? 14 : 4;
  const double most = std::is_same_v<T, double> ? 280 : 37;
  const double part = static_cast<double>(seed * 0x9e3779b97f4a7c15U >> 11) * 0x1p-53;
  return static_cast<T>(std::pow(10, least + (most - least) * part));
}

template <typename T>
void expect_no_larger(const world::Run<T>& run) {
  for (const Report& r : run.reports) {
    EXPECT_LE(static_cast<double>(r.stats.wire_bytes),
              1.02 * static_cast<double>(r.stats.original_bytes) + 300 * static_cast<double>(r.messages_sent));
  }
}

/// However many terms their sums have, and wherever they are.
TYPED_TEST(Allreduce, ValuesOfAllSizesNeitherFailNorCostMoreThanThemselves) {
  for (const int n : {4, 8, 16}) {
    for (const std::uint64_t one_in : {10, 30, 300}) {
      if (test::sanitized && (n == 8 || one_in == 30)) continue;
      for (const bool together : {true, false}) {
        SCOPED_TRACE(std::to_string(n) + " ranks, one in " + std::to_string(one_in) + (together ? " together" : ""));
        auto operands = operands_of<TypeParam>("smooth", 60000, n);
        for (std::uint64_t r = 0; r < operands.size(); ++r)
          for (std::uint64_t i = 0; i < operands[r].size() / one_in; ++i)
            operands[r][together ? i : i * one_in + i * (r + 7) % one_in] = any_size<TypeParam>(r * 60000 + i + 1);
        expect_no_larger(expect_kept(operands, Op::sum, with("1e-3")));
      }
    }
  }
}

/// Messages have room for them, each thread's part of one too.
TYPED_TEST(Allreduce, ChunksOfValuesOfAllSizesStayOnTheGridWhereTheyAreFew) {
  for (const int n : {2, 4, 12}) {
    if (test::sanitized && n == 4) continue;
    auto operands = operands_of<TypeParam>("smooth", n < 10 ? 800000 : 400000, n);
    for (std::uint64_t r = 0; r < operands.size(); ++r)
      for (std::uint64_t i = 0; i < (n < 10 ? 8192 : 2048); ++i)
        operands[r][i + 999] = any_size<TypeParam>(r * 8192 + i);
    for (const auto& options : {with("1e-3"), with("1e-3", 2048), with("1e-3", 0, 3)}) {
      SCOPED_TRACE(std::to_string(n) + " ranks, " + std::to_string(options.threads) + " threads, segments of " +
                   std::to_string(options.segment_values));
      const auto run = expect_kept(operands, Op::sum, options);
      // A chunk of so many terms may not exist.
      const bool exactly = n == 12 && std::is_same_v<TypeParam, double>;
      EXPECT_EQ(run.reports[0].route, exactly ? Route::exact : Route::on_grid);
      expect_no_larger(run);
    }
  }
}

TYPED_TEST(Allreduce, TakesAnyCount) {
  for (const int n : {1, 2, 3, 4, 7}) {
    const auto few = static_cast<std::size_t>(n);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, few - 1, few, std::size_t{63}, std::size_t{2049}}) {
      SCOPED_TRACE(std::to_string(count) + " elements on " + std::to_string(n) + " ranks");
      expect_kept(operands_of<TypeParam>("smooth", count, n), Op::sum, with("1e-3"));
      expect_kept(operands_of<TypeParam>("smooth", count, n), Op::sum, with("lossless"));
    }
  }
}

TYPED_TEST(Allreduce, ResultDoesNotDependOnSegmentsThreadsOrPlace) {
  for (const int n : {2, 3, 4}) {
    for (const char* bound : {"1e-3", "lossless"}) {
      const auto operands = operands_of<TypeParam>("smooth", 50001, n);
      const auto plain = reduce(operands, Op::sum, with(bound));
      for (const std::size_t segment : {1, 2048, 5000, 1 << 20}) {
        EXPECT_TRUE(world::same_bytes(plain.results[0], reduce(operands, Op::sum, with(bound, segment)).results[0]));
      }
      EXPECT_TRUE(world::same_bytes(plain.results[0], reduce(operands, Op::sum, with(bound, 0, 3)).results[0]));
      const auto in_place = reduce(operands, Op::sum, with(bound), true);
      world::expect_same_everywhere(in_place);
      EXPECT_TRUE(world::same_bytes(plain.results[0], in_place.results[0]));
    }
  }
}

TYPED_TEST(Allreduce, ResultDoesNotDependOnTheOrderOfRanks) {
  auto operands = operands_of<TypeParam>("noise", 20001, 4);
  sprinkle(operands[1], 5, 97, std::numeric_limits<TypeParam>::quiet_NaN());
  sprinkle(operands[2], 6, 89, static_cast<TypeParam>(1e30));
  const auto forward = reduce(operands, Op::sum, with("1e-2"));
  std::rotate(operands.begin(), operands.begin() + 1, operands.end());
  std::swap(operands[0], operands[1]);
  EXPECT_TRUE(world::same_bytes(forward.results[0], reduce(operands, Op::sum, with("1e-2")).results[0]));
}

// Blocks with many exceptions are stored losslessly, tiny chunks raw: what their other elements add to the sum must not
// depend on that, else it would depend on where blocks begin.
TYPED_TEST(Allreduce, ResultDoesNotDependOnHowExceptionsAreStored) {
  for (const int n : {2, 3}) {
    auto operands = operands_of<TypeParam>("smooth", 60001, n);
    for (std::size_t i = 1000; i < 3000; i += 1 + i % 3) operands[1][i] = std::numeric_limits<TypeParam>::infinity();
    for (std::size_t i = 2500; i < 4000; i += 2) operands[0][i] = static_cast<TypeParam>(1e30 + 1e27 * double(i));
    operands[0][0] = std::numeric_limits<TypeParam>::quiet_NaN();
    const auto whole = expect_kept(operands, Op::sum, with("1e-3"));
    EXPECT_EQ(whole.reports[0].route, Route::on_grid);
    EXPECT_TRUE(world::same_bytes(whole.results[0], reduce(operands, Op::sum, with("1e-3", 2048)).results[0]));
    // The same elements with others before them: all blocks are cut elsewhere.
    auto shifted = operands;
    for (auto& x : shifted) x.insert(x.begin(), 37, TypeParam{0});
    auto moved = reduce(shifted, Op::sum, with("1e-3")).results[0];
    moved.erase(moved.begin(), moved.begin() + 37);
    EXPECT_TRUE(world::same_bytes(whole.results[0], moved));
    std::reverse(operands.begin(), operands.end());
    EXPECT_TRUE(world::same_bytes(whole.results[0], reduce(operands, Op::sum, with("1e-3")).results[0]));
  }
}

TYPED_TEST(Allreduce, RelativeBoundIsOfTheRangeOverAllRanks) {
  auto operands = operands_of<TypeParam>("smooth", 30000, 3);
  for (auto& v : operands[1]) v *= 50;
  const auto [low0, high0] = std::minmax_element(operands[1].begin(), operands[1].end());
  const double range = static_cast<double>(*high0) - static_cast<double>(*low0);
  const auto run = expect_kept(operands, Op::sum, with("1e-3rel"));
  EXPECT_EQ(run.reports[0].route, Route::on_grid);
  EXPECT_NEAR(run.reports[0].result_bound, range * 1e-3, range * 1e-9);
}

TYPED_TEST(Allreduce, OperandScopeBoundsEachOperand) {
  const auto run = expect_kept(operands_of<TypeParam>("smooth", 30000, 4), Op::sum, with("operand:1e-3"));
  EXPECT_EQ(run.reports[0].result_bound, 4e-3);
  EXPECT_GT(run.reports[0].operand_bound, 0.999e-3);
  EXPECT_LE(run.reports[0].operand_bound, 1e-3);
}

TYPED_TEST(Allreduce, SigmasGiveOperandsMoreAndIndependentErrorsSeldomPassTheBound) {
  constexpr int n = 12;
  const auto operands = operands_of<TypeParam>("noise", 20011, n);
  for (const Op op : {Op::sum, Op::average}) {
    const auto run = expect_kept(operands, op, with("3sigma:1e-3"));
    EXPECT_NEAR(run.reports[0].operand_bound, op == Op::sum ? 1e-3 / 6 : 2e-3, 1e-5);
    EXPECT_NEAR(run.reports[0].result_bound, 2e-3, 1e-9);
    std::size_t beyond = 0;
    for (std::size_t i = 0; i < operands[0].size(); ++i) {
      long double exact = 0;
      for (const auto& x : operands) exact += x[i];
      beyond += std::abs(run.results[0][i] - exact / (op == Op::average ? n : 1)) > 1e-3L ? 1 : 0;
    }
    // Normal errors pass three sigma in 0.27 % of the cases, sums of twelve uniform ones in 0.21 %.
    EXPECT_GT(beyond, operands[0].size() / 1000);
    EXPECT_LT(beyond, operands[0].size() / 250);
  }
}

TYPED_TEST(Allreduce, NanInfinityAndFillValuesGoThroughAsIeeeSaysOthersKeepTheBound) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity();
  for (const int n : {2, 3, 4}) {
    for (const char* bound : {"1e-3", "1e-3rel", "lossless"}) {
      for (const Op op : {Op::sum, Op::average}) {
        SCOPED_TRACE(std::string(bound) + " on " + std::to_string(n) + " ranks, " + std::string(name_of(op)));
        auto operands = operands_of<T>("smooth", 20011, n);
        sprinkle(operands[0], 3, 101, std::numeric_limits<T>::quiet_NaN());
        sprinkle(operands[1], 7, 211, inf);
        sprinkle(operands[0], 7, 422, -inf);
        sprinkle(operands[1], 9, 53, static_cast<T>(1e30));
        for (auto& x : operands) sprinkle(x, 11, 499, static_cast<T>(-1e30));
        expect_kept(operands, op, with(bound));
      }
    }
  }
}

TYPED_TEST(Allreduce, ConstantsZerosOffsetsDenormalsAndWildSpreads) {
  for (const char* kind : {"constant", "zero", "offset", "denormal", "wild"}) {
    for (const char* bound : {"1e-3", "1e-4rel", "1e-9rel", "120dB", "lossless"}) {
      SCOPED_TRACE(std::string(kind) + " within " + bound);
      expect_kept(operands_of<TypeParam>(kind, 10007, 3), Op::sum, with(bound));
      expect_kept(operands_of<TypeParam>(kind, 10007, 3), Op::average, with(bound));
    }
  }
}

TYPED_TEST(Allreduce, LosslessIsTheExactSumRoundedOnce) {
  for (const int n : {2, 5}) {
    const auto run = expect_kept(operands_of<TypeParam>("wild", 30001, n), Op::sum, with("lossless"));
    EXPECT_EQ(run.reports[0].route, Route::exact);
    EXPECT_EQ(run.reports[0].result_bound, 0);
  }
}

TYPED_TEST(Allreduce, OverflowBecomesInfinityButNotInAnAverage) {
  const auto huge = std::numeric_limits<TypeParam>::max();
  std::vector<std::vector<TypeParam>> operands(4, std::vector<TypeParam>(5000, huge));
  operands[3].assign(5000, -huge);
  for (const char* bound : {"lossless", "1e-3rel"}) {
    const auto sum = reduce(operands, Op::sum, with(bound));
    EXPECT_TRUE(std::isinf(sum.results[0][17])) << bound;
    const auto average = reduce(operands, Op::average, with("lossless"));
    EXPECT_EQ(average.results[0][17], huge / 2) << bound;
  }
}

TYPED_TEST(Allreduce, IncompressibleDataStaysWithinTheWorstCase) {
  for (const char* bound : {"1e-30", "lossless"}) {
    const std::size_t count = 40000;
    const auto run = expect_kept(operands_of<TypeParam>("wild", count, 4), Op::sum, with(bound));
    const double original = static_cast<double>(run.reports[0].stats.original_bytes);
    const double messages = static_cast<double>(run.reports[0].messages_sent);
    EXPECT_GE(original, 1.4 * static_cast<double>(count * sizeof(TypeParam)));
    EXPECT_LE(static_cast<double>(run.reports[0].stats.wire_bytes), 1.02 * original + 300 * messages);
  }
}

/// Their bounds may be finer than what 16 bits are of the values' range.
TEST(AllreduceHalves, NoiseStaysWithinTheWorstCaseWhateverTheBound) {
  constexpr std::size_t count = 20000;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const char* bound : {"operand:1e-3", "operand:1e-4", "operand:1e-5", "operand:2e-6"}) {
      Report report;
      run_ranks(8, [&](Transport& t) {
        Communicator comm(t);
        test::Random random(static_cast<std::uint64_t>(t.rank()));
        std::vector<std::uint16_t> x(count), y(count);
        for (auto& v : x) {
          const float value = 4 * static_cast<float>(random.symmetric());
          v = dtype == DType::f16 ? f16_of_f32(value) : bf16_of_f32(value);
        }
        const Report r = allreduce({x.data(), count, dtype}, {y.data(), count, dtype}, Op::sum, comm, with(bound));
        if (t.rank() == 0) report = r;
      });
      EXPECT_LE(static_cast<double>(report.stats.wire_bytes), 1.02 * static_cast<double>(report.stats.original_bytes) +
                                                                  300.0 * static_cast<double>(report.messages_sent))
          << name_of(dtype) << " " << bound;
    }
  }
}

TEST(AllreduceIntegers, SumModuloTheWordExactly) {
  for (const int n : {1, 2, 3, 4, 7}) {
    auto operands = operands_of<std::int32_t>("integer", 30001, n);
    operands[0][5] = std::numeric_limits<std::int32_t>::max();
    const auto run = reduce(operands, Op::sum, with("1e-3"));
    world::expect_same_everywhere(run);
    for (std::size_t i = 0; i < run.results[0].size(); ++i) {
      std::uint32_t sum = 0;
      for (const auto& x : operands) sum += static_cast<std::uint32_t>(x[i]);
      ASSERT_EQ(run.results[0][i], static_cast<std::int32_t>(sum));
    }
  }
}

TEST(AllreduceIntegers, AverageExactlyTowardZero) {
  for (const int n : {1, 2, 3, 4, 7}) {
    auto operands = operands_of<std::int32_t>("integer", 30001, n);
    for (auto& x : operands) x[5] = std::numeric_limits<std::int32_t>::max();
    operands[0][6] = std::numeric_limits<std::int32_t>::min();
    const auto run = reduce(operands, Op::average, with("1e-3"));
    world::expect_same_everywhere(run);
    EXPECT_EQ(run.reports[0].result_bound, 0);
    for (std::size_t i = 0; i < run.results[0].size(); ++i) {
      std::int64_t sum = 0;
      for (const auto& x : operands) sum += x[i];
      ASSERT_EQ(run.results[0][i], sum / n);
    }
  }
}

/// Half-precision operands of two ranks and more, as bits.
std::vector<std::vector<std::uint16_t>> halves(DType dtype, int ranks, std::size_t count) {
  std::vector<std::vector<std::uint16_t>> all;
  for (int r = 0; r < ranks; ++r) {
    all.emplace_back();
    for (const float v : make<float>("smooth", count, r)) {
      all.back().push_back(dtype == DType::f16 ? f16_of_f32(v) : bf16_of_f32(v));
    }
  }
  return all;
}

TEST(AllreduceHalves, KeepTheBoundAndHalfAnUlp) {
  constexpr std::size_t count = 20001;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto widen = [&](std::uint16_t v) { return dtype == DType::f16 ? f32_of_f16(v) : f32_of_bf16(v); };
    for (const char* bound : {"5e-2", "lossless"}) {
      const auto operands = halves(dtype, 3, count);
      const auto run = world::run<std::uint16_t>(3, [&](int rank, Communicator& comm) {
        std::vector<std::uint16_t> sum(count);
        const Report report = allreduce({operands[static_cast<std::size_t>(rank)].data(), count, dtype},
                                        {sum.data(), count, dtype}, Op::sum, comm, with(bound));
        return std::pair(sum, report);
      });
      world::expect_same_everywhere(run);
      for (std::size_t i = 0; i < count; ++i) {
        double exact = 0;
        for (const auto& x : operands) exact += static_cast<double>(widen(x[i]));
        const double half_ulp = std::ldexp(std::abs(exact), dtype == DType::f16 ? -11 : -8) + 1e-7;
        ASSERT_NEAR(static_cast<double>(widen(run.results[0][i])), exact, run.reports[0].result_bound + half_ulp);
      }
    }
  }
}

TEST(AllreduceUsage, CallsFollowEachOtherOnOneCommunicator) {
  run_ranks(3, [](Transport& t) {
    Communicator comm(t, with("1e-3"));
    for (std::size_t count : {100000U, 10U, 250000U}) {
      const auto x = make<float>("smooth", count, t.rank());
      std::vector<float> sum(count);
      allreduce(view(x), view(sum), Op::sum, comm);
      EXPECT_GT(comm.last().stats.wire_bytes, 0U);
    }
    EXPECT_EQ(comm.total().calls, 3U);
    EXPECT_GT(comm.total().codec_seconds, 0);
  });
}

}  // namespace
}  // namespace laconic::collective_allreduce_test
