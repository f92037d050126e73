// Two levels, for every number of ranks, many ways of placing them on nodes, and every root.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "schedule/chain.h"
#include "schedule/halving.h"
#include "schedule/ring.h"
#include "schedule/symbolic.h"
#include "schedule/tree.h"
#include "schedule/two_level.h"

namespace laconic::schedule::schedule_two_level_test {
namespace {

using symbolic::Contributions;
using symbolic::each_of;

/// Where n ranks may be: all on one node, one on each, pairs, four nodes in turn, all but four on one node, anywhere.
/// `few`: of many ranks one of these, by turns.
std::vector<std::vector<int>> placements(int n, bool few = false) {
  std::vector<std::vector<int>> all(6);
  std::mt19937 random(static_cast<unsigned>(n));
  for (int r = 0; r < n; ++r) {
    all[0].push_back(7);
    all[1].push_back(n - r);
    all[2].push_back(r / 2);
    all[3].push_back(r % 4);
    all[4].push_back(r < n - 4 ? 0 : r);
    all[5].push_back(static_cast<int>(random() % 5));
  }
  if (few && n > (test::sanitized ? 8 : 20)) return {all[static_cast<std::size_t>(n) % all.size()]};
  return all;
}

std::string text_of(const std::vector<int>& placement) {
  std::string text = "nodes";
  for (const int node : placement) (text += ' ') += std::to_string(node);
  return text;
}

/// Elements pass within nodes only; messages between nodes, and to `root`, only.
void expect_levels(const std::vector<Program>& programs, const Nodes& nodes, int root = -1) {
  for (const Program& p : programs) {
    for (const Step& step : p.steps) {
      for (const Transfer& t : step.sends) {
        const bool same = nodes.of(p.rank) == nodes.of(t.peer);
        ASSERT_TRUE(t.plain ? same : !same || t.peer == root) << p.rank << " to " << t.peer;
      }
    }
  }
}

/// Messages that leave each node.
std::vector<std::size_t> leaving(const std::vector<Program>& programs, const Nodes& nodes) {
  std::vector<std::size_t> messages(static_cast<std::size_t>(nodes.count()));
  for (const Program& p : programs)
    for (const Step& step : p.steps)
      for (const Transfer& t : step.sends)
        if (!t.plain && nodes.of(t.peer) != nodes.of(p.rank)) ++messages[static_cast<std::size_t>(nodes.of(p.rank))];
  return messages;
}

TEST(Nodes, AreCountedByTheirLowestRank) {
  const Nodes nodes({5, 2, 5, 9, 2, 5});
  EXPECT_EQ(nodes.ranks(), 6);
  EXPECT_EQ(nodes.count(), 3);
  EXPECT_EQ(nodes.most(), 3);
  EXPECT_EQ(nodes.on(0), (std::vector<int>{0, 2, 5}));
  EXPECT_EQ(nodes.on(1), (std::vector<int>{1, 4}));
  EXPECT_EQ(nodes.of(3), 2);
  EXPECT_EQ(nodes.exits(), 2);
  EXPECT_EQ(Nodes({1, 1, 1, 3, 3, 2}).exits(), 1);
  EXPECT_EQ(Nodes({4, 4, 4}).exits(), 0);
}

TEST(Nodes, DealPartsOutEvenly) {
  const Nodes nodes({0, 0, 0, 0, 0, 1, 1, 2});
  for (int node = 0; node < nodes.count(); ++node) {
    std::map<int, int> parts;
    for (int part = 0; part < nodes.most(); ++part) ++parts[nodes.keeper(node, part)];
    EXPECT_EQ(parts.size(), nodes.on(node).size());
    for (const auto& [rank, kept] : parts) {
      EXPECT_EQ(nodes.of(rank), node);
      EXPECT_LE(kept, (nodes.most() + static_cast<int>(parts.size()) - 1) / static_cast<int>(parts.size()));
    }
  }
}

TEST(TwoLevel, AllreduceGivesEverySumToEveryRank) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    for (const auto& placement : placements(n, true)) {
      const Nodes nodes(placement);
      for (const auto between : {ring::allreduce, halving::allreduce}) {
        const int slabs = n <= 16 ? 1 + n % 3 : 1;
        const auto programs =
            symbolic::programs_of(n, [&](int r) { return two_level::allreduce(nodes, r, slabs, between); });
        ASSERT_EQ(symbolic::check(programs, [&](int, int) { return each_of(0, n); }), "") << text_of(placement);
        expect_levels(programs, nodes);
      }
    }
  }
}

TEST(TwoLevel, AllreduceSendsFromANodeWhatARingOfNodesWould) {
  const Nodes nodes({0, 0, 0, 0, 1, 2, 1, 2, 2, 3});
  constexpr int slabs = 5;
  const auto programs = symbolic::programs_of(
      nodes.ranks(), [&](int r) { return two_level::allreduce(nodes, r, slabs, ring::allreduce); });
  // Of the data of slabs * parts * nodes blocks each block but one in `nodes` leaves twice.
  for (const std::size_t messages : leaving(programs, nodes)) {
    EXPECT_EQ(messages, static_cast<std::size_t>(slabs * nodes.most() * 2 * (nodes.count() - 1)));
  }
}

TEST(TwoLevel, BcastFromEveryRoot) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    for (const auto& placement : placements(n)) {
      const Nodes nodes(placement);
      for (int root = 0; root < n; ++root) {
        const auto between = (n + root) % 2 == 0 ? chain::bcast : tree::bcast;
        const auto programs =
            symbolic::programs_of(n, [&](int r) { return two_level::bcast(nodes, r, root, between); });
        ASSERT_EQ(symbolic::check(programs, [&](int, int) { return each_of(root, root + 1); }), "")
            << text_of(placement) << ", root " << root;
        expect_levels(programs, nodes);
      }
    }
  }
}

TEST(TwoLevel, AllgatherGivesEveryBlockToEveryRank) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    for (const auto& placement : placements(n)) {
      const Nodes nodes(placement);
      const auto programs = symbolic::programs_of(n, [&](int r) { return two_level::allgather(nodes, r); });
      ASSERT_EQ(symbolic::check(programs, [](int, int block) { return each_of(block, block + 1); }), "")
          << text_of(placement);
      expect_levels(programs, nodes);
      // Each block leaves each node but the last one that it comes to.
      const auto messages = leaving(programs, nodes);
      std::size_t all = 0;
      for (const std::size_t m : messages) all += m;
      ASSERT_EQ(all, static_cast<std::size_t>(n * (nodes.count() - 1))) << text_of(placement);
    }
  }
}

TEST(TwoLevel, ReduceToEveryRoot) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    for (const auto& placement : placements(n, true)) {
      const Nodes nodes(placement);
      for (int root = 0; root < n; ++root) {
        const auto between = (n + root) % 2 == 0 ? chain::reduce : tree::reduce;
        const int slabs = n <= 16 ? 1 + n % 3 : 1;
        const auto programs =
            symbolic::programs_of(n, [&](int r) { return two_level::reduce(nodes, r, root, slabs, between); });
        ASSERT_EQ(symbolic::check(programs, [&](int r, int) { return each_of(0, r == root ? n : 0); }), "")
            << text_of(placement) << ", root " << root;
        expect_levels(programs, nodes, root);
      }
    }
  }
}

// The checker itself must be able to say no.
TEST(SymbolicChecker, FindsAWrongFormAndElementsThatAreNotThere) {
  const Nodes nodes({0, 0, 1, 1});
  const auto make = [&] {
    return symbolic::programs_of(4, [&](int r) { return two_level::allreduce(nodes, r, 1, ring::allreduce); });
  };
  ASSERT_EQ(symbolic::run(make()).problem, "");
  const auto first_send = [](Program& p) -> Transfer& {
    for (Step& step : p.steps)
      if (!step.sends.empty()) return step.sends.front();
    throw std::logic_error("no sends");
  };
  auto programs = make();
  first_send(programs[1]).plain = false;
  EXPECT_NE(symbolic::run(programs).problem, "");

  programs = make();
  programs[1].operand[static_cast<std::size_t>(first_send(programs[1]).block)] = false;
  EXPECT_NE(symbolic::run(programs).problem, "");

  programs = symbolic::programs_of(4, [&](int r) { return two_level::bcast(nodes, r, 0, chain::bcast); });
  programs[1].steps.push_back({.sends = {{.peer = 3, .block = 0}}, .recvs = {}});
  programs[3].steps.resize(programs[1].steps.size());
  programs[3].steps.back().recvs.push_back({.peer = 1, .block = 0});
  EXPECT_NE(symbolic::run(programs).problem, "");  // what came plain cannot go on as a message
}

}  // namespace
}  // namespace laconic::schedule::schedule_two_level_test
