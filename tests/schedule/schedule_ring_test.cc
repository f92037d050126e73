#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/ring.h"
#include "schedule/symbolic.h"

namespace laconic::schedule::schedule_ring_test {
namespace {

std::vector<Program> all_ranks(int n, Program (*make)(int, int)) {
  std::vector<Program> programs;
  for (int r = 0; r < n; ++r) programs.push_back(make(n, r));
  return programs;
}

symbolic::Contributions everyone(int n) { return symbolic::each_of(0, n); }

TEST(Ring, ReduceScatterLeavesEachRankTheSumOfItsBlock) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    const auto programs = all_ranks(n, ring::reduce_scatter);
    const auto out = symbolic::run(programs);
    ASSERT_EQ(out.problem, "") << n << " ranks";
    for (int r = 0; r < n; ++r) {
      const auto& p = programs[static_cast<std::size_t>(r)];
      EXPECT_EQ(std::count(p.result.begin(), p.result.end(), true), 1);
      EXPECT_TRUE(p.result[static_cast<std::size_t>(r)]);
      EXPECT_EQ(out.holds[static_cast<std::size_t>(r)][static_cast<std::size_t>(r)], everyone(n)) << n << " ranks";
    }
  }
}

TEST(Ring, AllgatherGivesEveryBlockToEveryRank) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    const auto programs = all_ranks(n, ring::allgather);
    const auto out = symbolic::run(programs);
    ASSERT_EQ(out.problem, "") << n << " ranks";
    for (int r = 0; r < n; ++r) {
      for (int b = 0; b < n; ++b) {
        const symbolic::Contributions only_owner = symbolic::each_of(b, b + 1);
        EXPECT_EQ(out.holds[static_cast<std::size_t>(r)][static_cast<std::size_t>(b)], only_owner);
      }
    }
  }
}

TEST(Ring, AllreduceGivesEverySumToEveryRank) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    const auto programs = all_ranks(n, ring::allreduce);
    const auto out = symbolic::run(programs);
    ASSERT_EQ(out.problem, "") << n << " ranks";
    for (int r = 0; r < n; ++r) {
      for (int b = 0; b < n; ++b) {
        EXPECT_EQ(out.holds[static_cast<std::size_t>(r)][static_cast<std::size_t>(b)], everyone(n));
        EXPECT_TRUE(programs[static_cast<std::size_t>(r)].result[static_cast<std::size_t>(b)]);
      }
    }
  }
}

TEST(Ring, EveryStepUsesEveryLinkOnceEachWay) {
  for (int n = 2; n <= symbolic::most_ranks; ++n) {
    for (const Program& p : all_ranks(n, ring::allreduce)) {
      ASSERT_EQ(p.steps.size(), static_cast<std::size_t>(2 * (n - 1)));
      for (const Step& s : p.steps) {
        ASSERT_EQ(s.sends.size(), 1U);
        ASSERT_EQ(s.recvs.size(), 1U);
        EXPECT_EQ(s.sends[0].peer, (p.rank + 1) % n);
        EXPECT_EQ(s.recvs[0].peer, (p.rank + n - 1) % n);
      }
    }
  }
}

// The checker itself must be able to say no.
TEST(SymbolicChecker, FindsAMissingMessageAMisplacedBlockAndADoubleContribution) {
  auto programs = all_ranks(4, ring::allreduce);
  programs[2].steps[1].sends.clear();
  EXPECT_NE(symbolic::run(programs).problem, "");

  programs = all_ranks(4, ring::allreduce);
  programs[1].steps[3].sends[0].block ^= 1;
  EXPECT_NE(symbolic::run(programs).problem, "");

  programs = all_ranks(4, ring::allreduce);
  programs[0].steps[4].recvs[0].how = Combine::reduce;
  const auto out = symbolic::run(programs);
  EXPECT_EQ(out.problem, "");
  const auto block = static_cast<std::size_t>(programs[0].steps[4].recvs[0].block);
  EXPECT_NE(out.holds[0][block], everyone(4));
}

}  // namespace
}  // namespace laconic::schedule::schedule_ring_test
