#include <gtest/gtest.h>

#include <set>

#include "schedule/bruck.h"
#include "schedule/pairwise.h"
#include "schedule/symbolic.h"

namespace laconic::schedule::schedule_pairwise_test {
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

TEST(Pairwise, NarrowedItHasOnlyTheBlocksThatARankTouches) {
  for (auto make : {pairwise::alltoall, pairwise::exchange, bruck::alltoall}) {
    for (const int n : {1, 2, 5, 8}) {
      for (int r = 0; r < n; ++r) {
        const Program whole = make(n, r);
        const auto [program, blocks] = narrow(whole);
        EXPECT_TRUE(program.blocks == 2 * n - 1 || make == bruck::alltoall);
        ASSERT_EQ(program.blocks, std::ssize(blocks));
        Program widened = empty_program(n, r, whole.blocks);
        widened.steps = program.steps;
        for (Step& s : widened.steps) {
          for (Transfer& t : s.sends) t.block = blocks[static_cast<std::size_t>(t.block)];
          for (Transfer& t : s.recvs) t.block = blocks[static_cast<std::size_t>(t.block)];
        }
        for (std::size_t b = 0; b < blocks.size(); ++b) {
          widened.operand[static_cast<std::size_t>(blocks[b])] = program.operand[b];
          widened.result[static_cast<std::size_t>(blocks[b])] = program.result[b];
        }
        EXPECT_EQ(widened.operand, whole.operand);
        EXPECT_EQ(widened.result, whole.result);
        ASSERT_EQ(widened.steps.size(), whole.steps.size());
        for (std::size_t s = 0; s < whole.steps.size(); ++s) {
          EXPECT_EQ(widened.steps[s].sends, whole.steps[s].sends);
          EXPECT_EQ(widened.steps[s].recvs, whole.steps[s].recvs);
        }
      }
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
}  // namespace laconic::schedule::schedule_pairwise_test
