// Binomial tree, chain and star, for every number of ranks and every root.
#include <gtest/gtest.h>

#include <bit>

#include "schedule/chain.h"
#include "schedule/star.h"
#include "schedule/symbolic.h"
#include "schedule/tree.h"

namespace laconic::schedule::schedule_rooted_test {
namespace {

using symbolic::Contributions;
using symbolic::each_of;

using Make = Program (*)(int ranks, int rank, int root);

/// want(ranks, root, rank, block), and the number of steps.
template <typename Want, typename Steps>
void expect_for_every_root(Make make, Want want, Steps steps) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    for (int root = 0; root < n; ++root) {
      const auto programs = symbolic::programs_of(n, [&](int r) { return make(n, r, root); });
      ASSERT_EQ(symbolic::check(programs, [&](int r, int b) { return want(n, root, r, b); }), "")
          << n << " ranks, root " << root;
      ASSERT_EQ(symbolic::steps_of(programs), static_cast<std::size_t>(steps(n)));
    }
  }
}

int log2_up(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }
int n_minus_1(int n) { return n - 1; }
int one(int) { return 1; }

Contributions roots(int, int root, int, int) { return each_of(root, root + 1); }
Contributions sum_at_root(int n, int root, int rank, int) { return each_of(0, rank == root ? n : 0); }
Contributions own_from_root(int, int root, int rank, int block) {
  return rank == block ? each_of(root, root + 1) : Contributions{};
}
Contributions all_at_root(int, int root, int rank, int block) {
  return rank == root ? each_of(block, block + 1) : Contributions{};
}

TEST(Tree, Bcast) { expect_for_every_root(tree::bcast, roots, log2_up); }
TEST(Tree, Reduce) { expect_for_every_root(tree::reduce, sum_at_root, log2_up); }
TEST(Tree, Scatter) { expect_for_every_root(tree::scatter, own_from_root, log2_up); }
TEST(Tree, Gather) { expect_for_every_root(tree::gather, all_at_root, log2_up); }
TEST(Chain, Bcast) { expect_for_every_root(chain::bcast, roots, n_minus_1); }
TEST(Chain, Reduce) { expect_for_every_root(chain::reduce, sum_at_root, n_minus_1); }
TEST(Star, Scatter) { expect_for_every_root(star::scatter, own_from_root, one); }
TEST(Star, Gather) { expect_for_every_root(star::gather, all_at_root, one); }

TEST(Chain, ScanAndExscan) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    const auto scan = symbolic::programs_of(n, [&](int r) { return chain::scan(n, r); });
    EXPECT_EQ(symbolic::check(scan, [](int r, int) { return each_of(0, r + 1); }), "") << n << " ranks";
    const auto exscan = symbolic::programs_of(n, [&](int r) { return chain::exscan(n, r); });
    EXPECT_EQ(symbolic::check(exscan, [](int r, int) { return each_of(0, r); }), "") << n << " ranks";
  }
}

TEST(Chain, NobodySendsTheDataTwice) {
  for (int r = 0; r < 9; ++r) {
    std::size_t sends = 0;
    for (const Step& s : chain::bcast(9, r, 4).steps) sends += s.sends.size();
    EXPECT_EQ(sends, r == 3 ? 0U : 1U) << r;
  }
}

}  // namespace
}  // namespace laconic::schedule::schedule_rooted_test
