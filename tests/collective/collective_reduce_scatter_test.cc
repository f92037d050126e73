#include <gtest/gtest.h>

#include <numeric>

#include "collective/allreduce.h"
#include "collective/fields.h"
#include "collective/reduce_scatter.h"
#include "collective/reference.h"
#include "collective/world.h"
#include "core/error.h"

namespace laconic {
namespace {

using testing_fields::make;
using world::view;

Options with(const char* bound) {
  Options o;
  o.bound = Bound::parse(bound);
  return o;
}

/// Shares of uneven size, some of them empty.
std::vector<std::size_t> uneven(int ranks, std::size_t unit) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < ranks; ++r) counts.push_back(static_cast<std::size_t>((r * 5 + 3) % 4) * unit);
  return counts;
}

template <typename T>
world::Run<T> scatter(const std::vector<std::vector<T>>& operands, const std::vector<std::size_t>& counts, Op op,
                      const Options& options, bool in_place = false) {
  return world::run<T>(static_cast<int>(operands.size()), [&](int rank, Communicator& comm) {
    std::vector<T> send = operands[static_cast<std::size_t>(rank)];
    const std::size_t own = counts[static_cast<std::size_t>(rank)];
    std::vector<T> recv(own);
    const MutArray out = in_place ? MutArray{send.data(), own, world::dtype_of<T>()} : view(recv);
    const Report report = reduce_scatter(ConstArray(view(send)), out, counts, op, comm, options);
    if (in_place) recv.assign(send.begin(), send.begin() + static_cast<std::ptrdiff_t>(own));
    return std::pair(recv, report);
  });
}

/// The shares, put together, are what allreduce gives.
template <typename T>
void expect_like_allreduce(int ranks, const std::vector<std::size_t>& counts, Op op, const char* bound, bool in_place) {
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  std::vector<std::vector<T>> operands;
  for (int r = 0; r < ranks; ++r) operands.push_back(make<T>("smooth", total, r));
  const auto whole = world::run<T>(ranks, [&](int rank, Communicator& comm) {
    std::vector<T> sum(total);
    const Report report = allreduce(view(operands[static_cast<std::size_t>(rank)]), view(sum), op, comm, with(bound));
    return std::pair(sum, report);
  });
  const auto shares = scatter(operands, counts, op, with(bound), in_place);
  std::vector<T> together;
  for (const auto& share : shares.results) together.insert(together.end(), share.begin(), share.end());
  EXPECT_TRUE(world::same_bytes(together, whole.results[0]));
  reference::expect_sum(together, operands, shares.reports[0].result_bound, op == Op::average ? ranks : 1);
}

TEST(ReduceScatter, IsTheRanksShareOfTheSumInAndOutOfPlace) {
  for (const int n : {1, 2, 3, 4, 7, 8}) {
    for (const char* bound : {"1e-3", "1e-3rel", "lossless"}) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(std::to_string(n) + " ranks, " + bound + (in_place ? " in place" : ""));
        expect_like_allreduce<float>(n, uneven(n, 7001), Op::sum, bound, in_place);
        expect_like_allreduce<double>(n, uneven(n, 1), Op::average, bound, in_place);
      }
    }
  }
}

// In place, the owner's sum lands on what other ranks' blocks are still to be read from, if anything does.
TEST(ReduceScatter, InPlaceOverManySegmentsAndSlabs) {
  constexpr std::size_t beyond_a_slab = (std::size_t{1} << 20) + 12345;
  expect_like_allreduce<float>(3, {100, beyond_a_slab, 5000}, Op::sum, "lossless", true);
  expect_like_allreduce<float>(3, {100, beyond_a_slab, 300000}, Op::sum, "1e-3", true);
}

TEST(ReduceScatterBlock, TakesTheSameCountEverywhere) {
  constexpr std::size_t count = 5000;
  const auto run = world::run<float>(4, [&](int rank, Communicator& comm) {
    const auto send = make<float>("smooth", 4 * count, rank);
    std::vector<float> recv(count);
    const Report report = reduce_scatter_block(view(send), view(recv), Op::sum, comm, with("1e-3"));
    return std::pair(recv, report);
  });
  for (int owner = 0; owner < 4; ++owner) {
    std::vector<std::vector<float>> parts;
    for (int r = 0; r < 4; ++r) {
      const auto send = make<float>("smooth", 4 * count, r);
      const auto first = send.begin() + static_cast<std::ptrdiff_t>(count) * owner;
      parts.emplace_back(first, first + count);
    }
    reference::expect_sum(run.results[static_cast<std::size_t>(owner)], parts, 1e-3);
  }
}

}  // namespace
}  // namespace laconic
