// Verification: every collective says how far its result is from the exact one, and a result that is further off than
// was promised is an error on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/budget.h"
#include "collective/fields.h"
#include "collective/gather.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scan.h"
#include "collective/scatter.h"
#include "collective/verify.h"
#include "collective/world.h"
#include "core/error.h"
#include "core/half.h"
#include "support/sanitized.h"

namespace laconic::collective_verify_test {
namespace {

using testing_fields::hostile;
using testing_fields::make;
using world::view;

Options with(const char* bound, bool verify = true) {
  Options o;
  o.bound = Bound::parse(bound);
  o.verify = verify;
  return o;
}

// ---- the comparison ----

template <typename T>
Comparison compared(const std::vector<T>& got, const std::vector<T>& exact, Tolerance tolerance, DType dtype) {
  Comparison sum;
  compare({got.data(), got.size(), dtype}, {exact.data(), exact.size(), dtype}, tolerance, 100, sum);
  return sum;
}

TEST(Compare, TellsTheLargestErrorAndTheFirstElementOutside) {
  const std::vector<double> exact{1, 2, 3, 4};
  const auto within = compared<double>({1, 2.125, 2.75, 4}, exact, {0.25, 0}, DType::f64);
  EXPECT_EQ(within.largest, 0.25);
  EXPECT_EQ(within.count, 4U);
  EXPECT_FALSE(within.offence);
  const auto outside = compared<double>({1, 2.5, 7, 4}, exact, {0.25, 0.5}, DType::f64);
  EXPECT_EQ(outside.largest, 4);
  ASSERT_TRUE(outside.offence);
  EXPECT_EQ(outside.offence->element, 101U);
  EXPECT_EQ(outside.offence->got, 2.5);
  EXPECT_EQ(outside.offence->exact, 2);
}

TEST(Compare, GrantsUnitsInTheLastPlaceWhereThereIsABound) {
  const float next = std::nextafter(1.0F, 2.0F);
  EXPECT_FALSE(compared<float>({next}, {1.0F}, {1e-9, 1}, DType::f32).offence);
  EXPECT_TRUE(compared<float>({next}, {1.0F}, {1e-9, 0.5}, DType::f32).offence);
  EXPECT_TRUE(compared<float>({next}, {1.0F}, {0, 1}, DType::f32).offence);
  EXPECT_FALSE(compared<float>({1e30F}, {1.0F}, {HUGE_VAL, 1}, DType::f32).offence);
}

TEST(Compare, IntegersMayDifferByMoreThanTheirTypeHolds) {
  const auto far = [](auto got, auto exact, DType dtype) {
    const auto c = compared<decltype(got)>({got}, {exact}, {}, dtype);
    EXPECT_TRUE(c.offence) << got << ", " << exact;
    return c.largest;
  };
  using Int = std::numeric_limits<std::int32_t>;
  using Long = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(far(Int::min() + 5, 5, DType::i32), 0x1p31);
  EXPECT_EQ(far(Int::max(), Int::min(), DType::i32), 0x1p32 - 1);
  EXPECT_EQ(far(Long::min(), std::int64_t{0}, DType::i64), 0x1p63);
  EXPECT_EQ(far(std::uint32_t{0}, ~std::uint32_t{0}, DType::u32), 0x1p32 - 1);
}

TEST(Compare, WhatIsNotFiniteMustBeTheSame) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(compared<float>({nan, inf, -inf, 0.0F}, {-nan, inf, -inf, -0.0F}, {}, DType::f32).offence);
  for (const auto& [got, exact] : std::vector<std::pair<float, float>>{{nan, 1}, {1, nan}, {inf, -inf}, {inf, 1}}) {
    EXPECT_TRUE(compared<float>({got}, {exact}, {1e30, 1}, DType::f32).offence) << got << ", " << exact;
  }
}

TEST(Compare, IntegersThatDoublesCannotTellApart) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  const auto off = compared<std::int64_t>({large}, {large - 1}, {}, DType::i64);
  EXPECT_TRUE(off.offence);
  EXPECT_EQ(off.largest, 1);
  EXPECT_FALSE(compared<std::int64_t>({large}, {large}, {}, DType::i64).offence);
}

TEST(Compare, SixteenBitFloats) {
  const auto f16 = [](float x) { return f16_of_f32(x); };
  const auto bf16 = [](float x) { return bf16_of_f32(x); };
  EXPECT_EQ(compared<std::uint16_t>({f16(1.5F)}, {f16(1)}, {}, DType::f16).largest, 0.5);
  EXPECT_EQ(compared<std::uint16_t>({bf16(3)}, {bf16(1)}, {}, DType::bf16).largest, 2);
}

// ---- every collective ----

constexpr std::size_t share = 9001;

/// Element counts per rank, one of them 0.
std::vector<std::size_t> uneven(int ranks) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < ranks; ++r) counts.push_back(static_cast<std::size_t>(r % 3) * share);
  return counts;
}

std::vector<float> operand_of(int rank, int ranks, std::size_t count) {
  return ranks == 1 ? make<float>("smooth", count, 0) : hostile<float>(count, ranks)[static_cast<std::size_t>(rank)];
}

struct Case {
  const char* name;
  std::function<Report(Communicator&, const Options&)> run;
  std::function<std::size_t(std::size_t)> verified;  ///< elements over all ranks, by number of ranks
};

/// A reduction in place and out of place.
template <typename Reduce>
Report reduced(Communicator& comm, bool in_place, Reduce&& reduce) {
  auto x = operand_of(comm.rank(), comm.size(), share);
  std::vector<float> y(x.size());
  return in_place ? reduce(view(std::as_const(x)), view(x)) : reduce(view(std::as_const(x)), view(y));
}

std::vector<Case> reductions(Op op, bool in_place) {
  const auto all = [](std::size_t n) { return n * share; };
  return {
      {"allreduce",
       [=](Communicator& c, const Options& o) {
         return reduced(c, in_place, [&](ConstArray x, MutArray y) { return allreduce(x, y, op, c, o); });
       },
       all},
      {"reduce",
       [=](Communicator& c, const Options& o) {
         return reduced(c, in_place, [&](ConstArray x, MutArray y) { return reduce(x, y, op, c.size() / 2, c, o); });
       },
       [](std::size_t) { return share; }},
      {"scan",
       [=](Communicator& c, const Options& o) {
         return reduced(c, in_place, [&](ConstArray x, MutArray y) { return scan(x, y, op, c, o); });
       },
       all},
      {"exscan",
       [=](Communicator& c, const Options& o) {
         return reduced(c, in_place, [&](ConstArray x, MutArray y) { return exscan(x, y, op, c, o); });
       },
       [](std::size_t n) { return (n - 1) * share; }},
      {"reduce_scatter",
       [=](Communicator& c, const Options& o) {
         const auto counts = uneven(c.size());
         const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
         auto x = operand_of(c.rank(), c.size(), total);
         std::vector<float> y(counts[static_cast<std::size_t>(c.rank())]);
         const MutArray place = in_place ? MutArray{x.data(), y.size(), DType::f32} : view(y);
         return reduce_scatter(view(std::as_const(x)), place, counts, op, c, o);
       },
       [](std::size_t n) {
         const auto counts = uneven(static_cast<int>(n));
         return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
       }},
  };
}

Report run_allgather(Communicator& c, const Options& o, bool in_place) {
  const auto n = static_cast<std::size_t>(c.size());
  const auto x = operand_of(c.rank(), c.size(), share);
  std::vector<float> all(n * share);
  float* own = all.data() + static_cast<std::size_t>(c.rank()) * share;
  std::copy(x.begin(), x.end(), own);
  return allgather({in_place ? own : x.data(), share, DType::f32}, view(all), c, o);
}

Report run_scatter(Communicator& c, const Options& o, bool in_place) {
  const auto n = static_cast<std::size_t>(c.size());
  const int root = c.size() - 1;
  const bool at_root = c.rank() == root;
  std::vector<float> all = at_root ? operand_of(0, c.size(), n * share) : std::vector<float>{};
  std::vector<float> mine(share);
  float* own = at_root && in_place ? all.data() + static_cast<std::size_t>(root) * share : mine.data();
  return scatter(view(std::as_const(all)), std::vector<std::size_t>(at_root ? n : 0, share), {own, share, DType::f32},
                 root, c, o);
}

Report run_gather(Communicator& c, const Options& o, bool in_place) {
  const auto n = static_cast<std::size_t>(c.size());
  const bool at_root = c.rank() == 0;
  const auto x = operand_of(c.rank(), c.size(), share);
  std::vector<float> all(at_root ? n * share : 0);
  if (at_root) std::copy(x.begin(), x.end(), all.begin());
  const float* own = at_root && in_place ? all.data() : x.data();
  return gather({own, share, DType::f32}, view(all), std::vector<std::size_t>(at_root ? n : 0, share), 0, c, o);
}

Report run_alltoall(Communicator& c, const Options& o, bool in_place) {
  auto x = operand_of(c.rank(), c.size(), static_cast<std::size_t>(c.size()) * share);
  std::vector<float> y(x.size());
  return alltoall(view(std::as_const(x)), in_place ? view(x) : view(y), c, o);
}

std::vector<Case> movements(bool in_place) {
  const auto all = [](std::size_t n) { return n * share; };
  const auto square = [](std::size_t n) { return n * n * share; };
  return {
      {"bcast",
       [](Communicator& c, const Options& o) {
         auto x = operand_of(c.rank(), c.size(), share);
         return bcast(view(x), c.size() / 2, c, o);
       },
       all},
      {"allgather", [=](Communicator& c, const Options& o) { return run_allgather(c, o, in_place); }, square},
      {"scatter", [=](Communicator& c, const Options& o) { return run_scatter(c, o, in_place); }, all},
      {"gather", [=](Communicator& c, const Options& o) { return run_gather(c, o, in_place); }, all},
      {"alltoall", [=](Communicator& c, const Options& o) { return run_alltoall(c, o, in_place); }, square},
  };
}

/// Runs a case on all ranks; all must report the same.
Report report_of(const Case& what, int ranks, const Options& options) {
  const auto all = world::run<float>(ranks, [&](int, Communicator& comm) {
    const Report report = what.run(comm, options);
    EXPECT_EQ(comm.last().verified, report.verified);
    return std::pair{std::vector<float>{}, report};
  });
  for (const Report& r : all.reports) {
    EXPECT_EQ(r.achieved_error, all.reports[0].achieved_error);
    EXPECT_EQ(r.verified, all.reports[0].verified);
  }
  return all.reports[0];
}

void expect_verified(const Case& what, int ranks) {
  SCOPED_TRACE(std::string(what.name) + " over " + std::to_string(ranks));
  const Report lossy = report_of(what, ranks, with("1e-3"));
  EXPECT_EQ(lossy.verified, what.verified(static_cast<std::size_t>(ranks)));
  if (ranks > 2) {
    EXPECT_GT(lossy.achieved_error, 1e-5);
    EXPECT_LE(lossy.achieved_error, 1e30);  // fill values: half a unit in their last place is large
  }
  const Report exact = report_of(what, ranks, with("lossless"));
  EXPECT_EQ(exact.verified, lossy.verified);
  EXPECT_EQ(exact.achieved_error, 0);
}

TEST(Verify, EveryReductionIsVerified) {
  for (const int ranks : {1, 2, 3, 7})
    for (const bool in_place : {false, true})
      for (const Op op : {Op::sum, Op::average, Op::max}) {
        if (test::sanitized && (ranks == 2 || op == Op::average)) continue;
        for (const Case& what : reductions(op, in_place)) expect_verified(what, ranks);
      }
}

TEST(Verify, EveryMovementIsVerified) {
  for (const int ranks : {1, 2, 3, 7})
    for (const bool in_place : {false, true})
      for (const Case& what : movements(in_place)) expect_verified(what, ranks);
}

TEST(Verify, EveryFrameworkIsVerified) {
  for (const Framework framework : {Framework::stepwise, Framework::point_to_point}) {
    Options options = with("1e-3");
    options.codec = CodecId::fzlight;
    options.framework = framework;
    for (const auto& cases : {reductions(Op::sum, false), reductions(Op::min, true), movements(true)})
      for (const Case& what : cases)
        EXPECT_EQ(report_of(what, 3, options).verified, what.verified(3)) << what.name << " " << name_of(framework);
  }
}

TEST(Verify, SaysTheErrorThatThereIs) {
  constexpr int ranks = 3;
  constexpr std::size_t count = 100003;
  const auto operands = testing_fields::operands_of<double>("smooth", count, ranks);
  const auto all = world::run<double>(ranks, [&](int rank, Communicator& comm) {
    std::vector<double> y(count);
    const Report report =
        allreduce(view(operands[static_cast<std::size_t>(rank)]), view(y), Op::sum, comm, with("1e-3"));
    return std::pair{y, report};
  });
  long double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    long double exact = 0;
    for (const auto& x : operands) exact += x[i];
    largest = std::max(largest, std::abs(all.results[0][i] - exact));
  }
  EXPECT_NEAR(all.reports[0].achieved_error, static_cast<double>(largest), 1e-15);
  EXPECT_LE(all.reports[0].achieved_error, 1e-3);
  EXPECT_EQ(all.reports[0].verified, count * ranks);
}

template <typename Stored>
void expect_dtype_verified(DType dtype, Stored (*from)(float)) {
  constexpr std::size_t count = 3001;
  run_ranks(
      3,
      [&](Transport& t) {
        Communicator comm(t);
        std::vector<Stored> x(count);
        for (std::size_t i = 0; i < count; ++i) x[i] = from(100 * std::sin(static_cast<float>(i) * 0.01F));
        const MutArray data{x.data(), count, dtype};
        const Report report = allreduce(data, data, Op::sum, comm, with("0.5"));
        EXPECT_EQ(report.verified, 3 * count);
        EXPECT_LE(report.achieved_error, is_float(dtype) ? 0.5 + ulp_of(dtype, 300) : 0.0) << name_of(dtype);
      },
      30);
}

TEST(Verify, EveryDtype) {
  expect_dtype_verified<std::uint16_t>(DType::f16, f16_of_f32);
  expect_dtype_verified<std::uint16_t>(DType::bf16, bf16_of_f32);
  expect_dtype_verified<std::int32_t>(DType::i32, [](float x) { return static_cast<std::int32_t>(x); });
  expect_dtype_verified<std::int64_t>(DType::i64, [](float x) { return static_cast<std::int64_t>(x); });
  expect_dtype_verified<double>(DType::f64, [](float x) { return static_cast<double>(x); });
}

TEST(Verify, ArraysOfSeveralSlabs) {
  constexpr std::size_t count = 1200007;
  run_ranks(
      2,
      [&](Transport& t) {
        Communicator comm(t);
        auto x = make<float>("smooth", count, t.rank());
        EXPECT_EQ(allreduce(view(std::as_const(x)), view(x), Op::sum, comm, with("1e-3")).verified, 2 * count);
        EXPECT_EQ(bcast(view(x), 1, comm, with("1e-3")).verified, 2 * count);
      },
      60);
}

TEST(Verify, NoElementsAreVerifiedToo) {
  run_ranks(3, [](Transport& t) {
    Communicator comm(t);
    const MutArray nothing{nullptr, 0, DType::f32};
    const Report report = allreduce(nothing, nothing, Op::sum, comm, with("1e-3"));
    EXPECT_EQ(report.verified, 0U);
    EXPECT_EQ(report.achieved_error, 0);
  });
}

TEST(Verify, OneRankThatAsksIsEnoughAndNobodyPaysElse) {
  run_ranks(3, [](Transport& t) {
    Communicator comm(t);
    const auto x = make<float>("smooth", 5000, t.rank());
    std::vector<float> y(x.size());
    Options options = with("1e-3", false);
    const Report without = allreduce(view(x), view(y), Op::sum, comm, options);
    EXPECT_TRUE(std::isnan(without.achieved_error));
    EXPECT_EQ(without.verified, 0U);
    options.verify = t.rank() == 1;
    options.confirm = false;
    const Report verified = allreduce(view(x), view(y), Op::sum, comm, options);
    EXPECT_EQ(verified.verified, 15000U);
    EXPECT_EQ(verified.stats.wire_bytes, without.stats.wire_bytes);
    EXPECT_EQ(verified.messages_sent, without.messages_sent);
    EXPECT_EQ(comm.total().calls, 2U);
  });
}

// ---- a result that is wrong ----

/// One element of one rank's result is changed behind the library's back.
void expect_noticed(float tampered, const std::string& want) {
  constexpr std::size_t count = 700;
  std::vector<std::string> texts(3);
  run_ranks(3, [&](Transport& t) {
    Communicator comm(t);
    const auto x = make<float>("constant", count, 0);  // 1.5 everywhere
    std::vector<float> y(count);
    const Verification check({{view(x)}, {view(y)}, count}, 1, 1,
                             [](const Slab& s, Communicator& c, const Options& lossless) {
                               allreduce(s.send, s.recv, Op::sum, c, lossless);
                             });
    Report report = allreduce(view(x), view(y), Op::sum, comm, with("1e-2", false));
    if (t.rank() == 2) y[421] = tampered;
    try {
      check.run("allreduce", comm, report);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::internal);
      texts[static_cast<std::size_t>(t.rank())] = e.what();
    }
    EXPECT_TRUE(comm.usable());
  });
  for (const auto& text : texts) EXPECT_EQ(text, want);
}

TEST(Verify, AWrongElementIsAnErrorOnEveryRankThatNamesIt) {
  expect_noticed(4.5F, "");
  expect_noticed(4.75F, "allreduce: rank 2: element 421 is 4.75, exactly 4.5; promised within 0.01 (verification)");
}

TEST(Verify, AnOperandThatIsOverwrittenWasKept) {
  run_ranks(2, [](Transport& t) {
    Communicator comm(t);
    std::vector<float> x(500, 1.0F);
    const Verification check({{view(std::as_const(x))}, {view(x)}, x.size()}, 1, 1,
                             [](const Slab& s, Communicator& c, const Options& lossless) {
                               allreduce(s.send, s.recv, Op::sum, c, lossless);
                             });
    std::fill(x.begin(), x.end(), 2.0F);
    Report report;
    EXPECT_NO_THROW(check.run("allreduce", comm, report));
    EXPECT_EQ(report.achieved_error, 0);
  });
}

TEST(Verify, OperandsThatAPlainLibraryMaySpoilWereKept) {
  run_ranks(2, [](Transport& t) {
    Communicator comm(t);
    std::vector<float> x(1000, 1.0F);
    const auto half = [&](std::size_t i) { return ConstArray{x.data() + 500 * i, 500, DType::f32}; };
    const Verification check({{half(0), half(1)}, {{x.data(), 500, DType::f32}}, 500, true}, 1, 1,
                             [](const Slab& s, Communicator& c, const Options& lossless) {
                               reduce_scatter(s.send, s.recv, s.send_counts, Op::sum, c, lossless);
                             });
    std::fill(x.begin(), x.begin() + 500, 2.0F);
    std::fill(x.begin() + 500, x.end(), 77.0F);
    Report report;
    EXPECT_NO_THROW(check.run("reduce_scatter", comm, report));
    EXPECT_EQ(report.achieved_error, 0);
  });
}

}  // namespace
}  // namespace laconic::collective_verify_test
