// Which schedule automatic stands for.
#include <gtest/gtest.h>

#include "collective/choice.h"
#include "collective/layout.h"

namespace laconic::collective_choice_test {
namespace {

using schedule::Nodes;

constexpr std::size_t kib = 1 << 10, mib = 1 << 20;

Nodes apart(int ranks) {
  std::vector<int> numbers;
  for (int r = 0; r < ranks; ++r) numbers.push_back(r);
  return Nodes(numbers);
}

Schedule reduce_scatter_of(const Nodes& nodes, std::size_t bytes, std::optional<bool> model) {
  return choose_reduce_scatter(nodes, bytes, bytes / static_cast<std::size_t>(nodes.ranks()), model);
}

TEST(Choice, DirectWhereTheModelSaysSoElseForMediumDataOrFewRanks) {
  for (const int ranks : {3, 4, 8, 16}) {
    for (const std::size_t bytes : {256 * kib, 64 * mib}) {
      EXPECT_EQ(reduce_scatter_of(apart(ranks), bytes, true), Schedule::direct);
      EXPECT_EQ(reduce_scatter_of(apart(ranks), bytes, false), Schedule::ring);
      EXPECT_EQ(reduce_scatter_of(apart(ranks), bytes, {}),
                ranks > 8 && bytes > mib ? Schedule::ring : Schedule::direct);
    }
    EXPECT_EQ(choose_allreduce(apart(ranks), 64 * mib, true), Schedule::direct);
    EXPECT_EQ(choose_allreduce(apart(ranks), 64 * mib, {}), ranks > 8 ? Schedule::ring : Schedule::direct);
  }
  EXPECT_EQ(choose_allreduce(apart(4), 256 * kib, true), Schedule::rabenseifner);
  EXPECT_EQ(choose_allreduce(apart(3), 256 * kib, {}), Schedule::direct);
  EXPECT_EQ(choose_allreduce(apart(3), 4 * kib, {}), Schedule::recursive_doubling);
}

TEST(Choice, NotDirectAmongTwoOrManyOrSomeOnANodeOrUnevenShares) {
  EXPECT_EQ(reduce_scatter_of(apart(2), mib, true), Schedule::ring);
  EXPECT_EQ(reduce_scatter_of(apart(17), mib, true), Schedule::ring);
  EXPECT_EQ(reduce_scatter_of(Nodes({0, 0, 1, 1}), mib, true), Schedule::ring);
  EXPECT_EQ(reduce_scatter_of(Nodes({0, 0, 0, 0}), mib, true), Schedule::direct);
  EXPECT_EQ(choose_reduce_scatter(apart(4), mib, mib, true), Schedule::ring);
  EXPECT_EQ(choose_reduce_scatter(apart(4), mib, mib / 2, true), Schedule::direct);
}

TEST(Choice, SlabsBoundWhatIsUnderWay) {
  EXPECT_EQ(choose_direct_slabs(0, 4), 1);
  EXPECT_EQ(choose_direct_slabs(16 * mib, 4), 1);
  EXPECT_EQ(choose_direct_slabs(16 * mib + 1, 4), 2);
  EXPECT_EQ(choose_direct_slabs(256 * mib, 4), 16);
}

TEST(Choice, WishesAreRoundedUpToChunks) {
  EXPECT_EQ(whole_chunks(0), 2048U);
  EXPECT_EQ(whole_chunks(1), 2048U);
  EXPECT_EQ(whole_chunks(2048), 2048U);
  EXPECT_EQ(whole_chunks(2049), 4096U);
  EXPECT_EQ(Layout({5000}, whole_chunks(~std::size_t{0})).segments(0), 1U);
  EXPECT_EQ(Layout({5000}, whole_chunks(~std::size_t{0} - 4095)).segments(0), 1U);
}

}  // namespace
}  // namespace laconic::collective_choice_test
