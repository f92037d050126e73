#include <gtest/gtest.h>

#include <set>

#include "schedule/pairwise.h"
#include "schedule/symbolic.h"

namespace laconic::schedule {
namespace {

TEST(Pairwise, EveryRankGetsWhatEveryRankHadForIt) {
  for (auto make : {pairwise::alltoall, pairwise::exchange}) {
    for (int n = 1; n <= symbolic::most_ranks; ++n) {
      const auto programs = symbolic::programs_of(n, [&](int r) { return make(n, r); });
      const auto sent_to = [n](int rank, int block) {
        return block % n == rank ? symbolic::each_of(block / n, block / n + 1) : symbolic::Contributions{};
      };
      ASSERT_EQ(symbolic::check(programs, sent_to), "") << n << " ranks";
    }
  }
}

TEST(Pairwise, ExchangeReceivesFromWhomItSendsTo) {
  for (const Step& s : pairwise::exchange(7, 3).steps) {
    ASSERT_EQ(s.sends.size(), s.recvs.size());
    for (std::size_t i = 0; i < s.sends.size(); ++i) EXPECT_EQ(s.sends[i].peer, s.recvs[i].peer);
  }
}

TEST(Pairwise, InEveryStepEveryRankSendsToOneAndReceivesFromOne) {
  for (int n = 2; n <= symbolic::most_ranks; ++n) {
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
