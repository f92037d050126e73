#include <gtest/gtest.h>

#include <set>

#include "schedule/pairwise.h"
#include "schedule/symbolic.h"

namespace laconic::schedule {
namespace {

TEST(Pairwise, AlltoallGivesEveryRankWhatEveryRankHadForIt) {
  for (int n = 1; n <= 64; ++n) {
    std::vector<Program> programs;
    for (int r = 0; r < n; ++r) programs.push_back(pairwise::alltoall(n, r));
    const auto out = symbolic::run(programs);
    ASSERT_EQ(out.problem, "") << n << " ranks";
    for (int to = 0; to < n; ++to) {
      for (int from = 0; from < n; ++from) {
        const auto block = static_cast<std::size_t>(from * n + to);
        const symbolic::Contributions only_sender{{from, 1}};
        EXPECT_TRUE(programs[static_cast<std::size_t>(to)].result[block]);
        EXPECT_EQ(out.holds[static_cast<std::size_t>(to)][block], only_sender);
      }
    }
  }
}

TEST(Pairwise, InEveryStepEveryRankSendsToOneAndReceivesFromOne) {
  for (int n = 2; n <= 64; ++n) {
    for (int s = 0; s < n - 1; ++s) {
      std::set<int> targets;
      for (int r = 0; r < n; ++r) {
        const Program p = pairwise::alltoall(n, r);
        ASSERT_EQ(p.steps[static_cast<std::size_t>(s)].sends.size(), 1U);
        targets.insert(p.steps[static_cast<std::size_t>(s)].sends[0].peer);
      }
      EXPECT_EQ(targets.size(), static_cast<std::size_t>(n));
    }
    if (n > 16) n += 7;
  }
}

}  // namespace
}  // namespace laconic::schedule
