#include <gtest/gtest.h>

#include "schedule/direct.h"
#include "schedule/symbolic.h"

namespace laconic::schedule::schedule_direct_test {
namespace {

/// Every rank has a message for every other one in each slab.
int most_ranks(int slabs) { return slabs == 1 ? symbolic::most_ranks : 12; }

using symbolic::each_of;
using symbolic::programs_of;

TEST(Direct, ReduceScatterLeavesEachOwnerItsSums) {
  for (const int slabs : {1, 2, 5}) {
    for (int n = 1; n <= most_ranks(slabs); ++n) {
      const auto programs = programs_of(n, [&](int r) { return direct::reduce_scatter(n, r, slabs); });
      const auto want = [&](int rank, int block) {
        return block / slabs == rank ? each_of(0, n) : symbolic::Contributions{};
      };
      ASSERT_EQ(symbolic::check(programs, want), "") << n << " ranks, " << slabs << " slabs";
    }
  }
}

TEST(Direct, AllreduceGivesEverySumToEveryRank) {
  for (const int slabs : {1, 2, 5}) {
    for (int n = 1; n <= most_ranks(slabs); ++n) {
      const auto programs = programs_of(n, [&](int r) { return direct::allreduce(n, r, slabs); });
      ASSERT_EQ(symbolic::check(programs, [&](int, int) { return each_of(0, n); }), "")
          << n << " ranks, " << slabs << " slabs";
    }
  }
}

/// What the schedule is for: partial sums never travel.
TEST(Direct, OnlyOperandsAndSumsOfAllTravel) {
  const int n = 5, slabs = 3;
  for (int r = 0; r < n; ++r) {
    const Program p = direct::allreduce(n, r, slabs);
    std::vector<int> received(static_cast<std::size_t>(p.blocks), 0);
    for (const Step& step : p.steps) {
      for (const Transfer& t : step.sends) {
        const int so_far = received[static_cast<std::size_t>(t.block)];
        EXPECT_EQ(so_far, t.block / slabs == r ? n - 1 : 0);
      }
      for (const Transfer& t : step.recvs) ++received[static_cast<std::size_t>(t.block)];
    }
  }
}

}  // namespace
}  // namespace laconic::schedule::schedule_direct_test
