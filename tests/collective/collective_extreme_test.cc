// Minimum and maximum: within the bound exactly, the same bits whatever the order, schedule and segments.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "collective/allreduce.h"
#include "collective/fields.h"
#include "collective/moved.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scan.h"
#include "collective/world.h"
#include "core/extreme.h"

namespace laconic::collective_extreme_test {
namespace {

using moved::with;
using testing_fields::hostile;
using testing_fields::Operands;
using testing_fields::operands_of;
using world::view;

template <typename T>
world::Run<T> run(const Operands<T>& operands, Op op, const Options& options, bool in_place = false) {
  return world::run<T>(static_cast<int>(operands.size()), [&](int rank, Communicator& comm) {
    const auto& mine = operands[static_cast<std::size_t>(rank)];
    std::vector<T> recv = in_place ? mine : std::vector<T>(mine.size());
    const Report report = allreduce(view(in_place ? recv : mine), view(recv), op, comm, options);
    return std::pair(recv, report);
  });
}

template <typename T>
std::vector<T> exact(const Operands<T>& operands, Op op) {
  std::vector<T> out = operands[0];
  for (std::size_t r = 1; r < operands.size(); ++r) take_extreme(op, view(out), view(operands[r]));
  return out;
}

template <typename T>
world::Run<T> expect_kept(const Operands<T>& operands, Op op, const Options& options) {
  auto got = run(operands, op, options);
  world::expect_same_everywhere(got);
  moved::expect_within(got.results[0], exact(operands, op), got.reports[0].result_bound);
  return got;
}

template <typename T>
class Extreme : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Extreme, Types);

TYPED_TEST(Extreme, KeepsTheBoundAndTheSameBytesOnEveryRank) {
  for (const int n : {1, 2, 3, 8}) {
    for (const Op op : {Op::min, Op::max}) {
      for (const char* bound : {"1e-3", "1e-4rel", "lossless"}) {
        SCOPED_TRACE(std::string(bound) + " on " + std::to_string(n) + " ranks, " + std::string(name_of(op)));
        for (const std::size_t count : {0U, 1U, 63U}) {
          expect_kept(operands_of<TypeParam>("smooth", count, n), op, with(bound));
        }
        const auto run = expect_kept(operands_of<TypeParam>("noise", 5001, n), op, with(bound));
        EXPECT_TRUE(n == 1 || bound[0] == 'l' || run.reports[0].stats.ratio() > 1.5) << run.reports[0].stats.ratio();
        if (n > 1) expect_kept(hostile<TypeParam>(5001, n), op, with(bound));
      }
    }
  }
}

TYPED_TEST(Extreme, BitsDoNotDependOnScheduleSegmentsPlaceOrOrder) {
  for (const int n : {2, 3, 5}) {
    for (const char* bound : {"1e-3", "lossless"}) {
      SCOPED_TRACE(std::string(bound) + " on " + std::to_string(n));
      auto operands = hostile<TypeParam>(9001, n);
      const auto plain = run(operands, Op::min, with(bound));
      for (const Schedule s :
           {Schedule::ring, Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::direct}) {
        Options options = with(bound, 2048);
        options.schedule = s;
        EXPECT_TRUE(world::same_bytes(run(operands, Op::min, options, true).results[0], plain.results[0]))
            << name_of(s);
      }
      // Other blocks, and other ranks first.
      auto shifted = operands;
      for (auto& x : shifted) x.insert(x.begin(), 37, TypeParam{0});
      auto moved = run(shifted, Op::min, with(bound)).results[0];
      moved.erase(moved.begin(), moved.begin() + 37);
      EXPECT_TRUE(world::same_bytes(moved, plain.results[0]));
      std::rotate(operands.begin(), operands.begin() + 1, operands.end());
      EXPECT_TRUE(world::same_bytes(run(operands, Op::min, with(bound)).results[0], plain.results[0]));
    }
  }
}

TYPED_TEST(Extreme, ReduceScanAndReduceScatterGiveTheSameBits) {
  for (const int n : {2, 5}) {
    const auto operands = hostile<TypeParam>(14000, n);
    const auto last = static_cast<std::size_t>(n - 1);
    const auto all = run(operands, Op::max, with("1e-3"));
    std::vector<std::size_t> counts(operands.size(), 14000 / operands.size());
    counts[0] += 14000 % operands.size();
    world::run<TypeParam>(n, [&](int rank, Communicator& comm) {
      const auto me = static_cast<std::size_t>(rank);
      std::vector<TypeParam> x(14000), share(counts[me]);
      reduce(view(operands[me]), view(x), Op::max, 1, comm, with("1e-3"));
      EXPECT_TRUE(rank != 1 || world::same_bytes(x, all.results[0]));
      scan(view(operands[me]), view(x), Op::max, comm, with("1e-3", 2048));
      EXPECT_TRUE(me != last || world::same_bytes(x, all.results[0]));
      const Operands<TypeParam> prefix(operands.begin(), operands.begin() + rank + 1);
      moved::expect_within(x, exact(prefix, Op::max), 1e-3);
      reduce_scatter(view(operands[me]), view(share), counts, Op::max, comm, with("1e-3"));
      std::size_t first = 0;
      for (std::size_t r = 0; r < me; ++r) first += counts[r];
      const auto* wanted = all.results[0].data() + first;
      EXPECT_TRUE(std::memcmp(share.data(), wanted, share.size() * sizeof(TypeParam)) == 0);
      return std::pair(share, Report{});
    });
  }
}

TEST(ExtremeIntegers, AreExact) {
  for (const Op op : {Op::min, Op::max}) {
    const auto operands = operands_of<std::int64_t>("integer", 20001, 5);
    const auto got = run(operands, op, with("1e-3"));
    EXPECT_EQ(got.results[3], exact(operands, op));
    EXPECT_EQ(got.reports[0].result_bound, 0);
  }
}

}  // namespace
}  // namespace laconic::collective_extreme_test
