// Recursive doubling, recursive halving and Bruck, for every number of ranks.
#include <gtest/gtest.h>

#include <bit>

#include "schedule/bruck.h"
#include "schedule/doubling.h"
#include "schedule/halving.h"
#include "schedule/symbolic.h"

namespace laconic::schedule::schedule_logarithmic_test {
namespace {

using symbolic::Contributions;
using symbolic::each_of;

using Make = Program (*)(int ranks, int rank);

/// want(ranks, rank, block), and the number of steps.
template <typename Want, typename Steps>
void expect_for_every_n(Make make, Want want, Steps steps) {
  for (int n = 1; n <= symbolic::most_ranks; ++n) {
    const auto programs = symbolic::programs_of(n, [&](int r) { return make(n, r); });
    ASSERT_EQ(symbolic::check(programs, [&](int r, int b) { return want(n, r, b); }), "") << n << " ranks";
    ASSERT_EQ(symbolic::steps_of(programs), static_cast<std::size_t>(steps(n))) << n << " ranks";
  }
}

int log2_up(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }
int log2_down(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }
bool power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }
int with_fold(int n) { return log2_down(n) + (power_of_two(n) ? 0 : 2); }
int twice_with_fold(int n) { return 2 * log2_down(n) + (power_of_two(n) ? 0 : 2); }

Contributions sum(int n, int, int) { return each_of(0, n); }
Contributions own_sum(int n, int rank, int block) { return each_of(0, rank == block ? n : 0); }
Contributions owners(int, int, int block) { return each_of(block, block + 1); }
Contributions prefix(int, int rank, int) { return each_of(0, rank + 1); }
Contributions for_me(int n, int rank, int block) {
  return block % n == rank ? each_of(block / n, block / n + 1) : Contributions{};
}

TEST(Doubling, Allreduce) { expect_for_every_n(doubling::allreduce, sum, with_fold); }
TEST(Doubling, Allgather) { expect_for_every_n(doubling::allgather, owners, with_fold); }
TEST(Doubling, Scan) { expect_for_every_n(doubling::scan, prefix, log2_up); }
TEST(Halving, ReduceScatter) { expect_for_every_n(halving::reduce_scatter, own_sum, with_fold); }
TEST(Halving, Allreduce) { expect_for_every_n(halving::allreduce, sum, twice_with_fold); }
TEST(Bruck, Allgather) { expect_for_every_n(bruck::allgather, owners, log2_up); }
TEST(Bruck, Alltoall) { expect_for_every_n(bruck::alltoall, for_me, log2_up); }

}  // namespace
}  // namespace laconic::schedule::schedule_logarithmic_test
