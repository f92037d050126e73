#include <gtest/gtest.h>

#include <numeric>

#include "collective/allreduce.h"
#include "collective/fields.h"
#include "collective/reduce_scatter.h"
#include "collective/reference.h"
#include "collective/world.h"
#include "core/error.h"
#include "support/sanitized.h"
#include "transport/faulty.h"
#include "transport/threads.h"

namespace laconic::collective_reduce_scatter_test {
namespace {

using testing_fields::make;
using world::view;

Options with(const char* bound, Schedule schedule = Schedule::automatic) {
  Options o;
  o.bound = Bound::parse(bound);
  o.schedule = schedule;
  return o;
}

/// Shares of uneven size, some of them empty.
std::vector<std::size_t> uneven(int ranks, std::size_t unit) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < ranks; ++r) counts.push_back(static_cast<std::size_t>((r * 5 + 3) % 4) * unit);
  return counts;
}

/// Of the result: an array of its own, or within the operand.
enum class Place : std::uint8_t { own_array, front, own_block };

template <typename T>
world::Run<T> scatter(const std::vector<std::vector<T>>& operands, const std::vector<std::size_t>& counts, Op op,
                      const Options& options, Place place = Place::own_array) {
  return world::run<T>(static_cast<int>(operands.size()), [&](int rank, Communicator& comm) {
    std::vector<T> send = operands[static_cast<std::size_t>(rank)];
    const std::size_t own = counts[static_cast<std::size_t>(rank)];
    std::vector<T> recv(own);
    const auto before = std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
    T* const there = place == Place::own_array ? recv.data() : send.data() + (place == Place::own_block ? before : 0);
    const MutArray out{there, own, world::dtype_of<T>()};
    const Report report = reduce_scatter(ConstArray(view(send)), out, counts, op, comm, options);
    if (place != Place::own_array) recv.assign(there, there + own);
    return std::pair(recv, report);
  });
}

/// The shares, put together, are what allreduce gives on a ring.
template <typename T>
void expect_like_allreduce(int ranks, const std::vector<std::size_t>& counts, Op op, Options options, Place place) {
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  std::vector<std::vector<T>> operands;
  for (int r = 0; r < ranks; ++r) operands.push_back(make<T>("smooth", total, r));
  const auto whole = world::run<T>(ranks, [&](int rank, Communicator& comm) {
    std::vector<T> sum(total);
    Options on_ring = options;
    on_ring.schedule = Schedule::ring;
    const Report report = allreduce(view(operands[static_cast<std::size_t>(rank)]), view(sum), op, comm, on_ring);
    return std::pair(sum, report);
  });
  const auto shares = scatter(operands, counts, op, options, place);
  std::vector<T> together;
  for (const auto& share : shares.results) together.insert(together.end(), share.begin(), share.end());
  EXPECT_TRUE(world::same_bytes(together, whole.results[0]));
  reference::expect_sum(together, operands, shares.reports[0].result_bound, op == Op::average ? ranks : 1);
}

TEST(ReduceScatter, IsTheRanksShareOfTheSumInAndOutOfPlace) {
  for (const int n : {1, 2, 3, 7}) {
    for (const char* bound : {"1e-3", "1e-3rel", "lossless"}) {
      if (test::sanitized && std::string(bound) == "1e-3rel") continue;  // the code of 1e-3, but for one factor
      for (const Place place : {Place::own_array, Place::front, Place::own_block}) {
        for (const Schedule s : {Schedule::ring, Schedule::direct}) {
          SCOPED_TRACE(std::to_string(n) + " ranks, " + bound + ", place " + std::to_string(static_cast<int>(place)));
          expect_like_allreduce<float>(n, uneven(n, 7001), Op::sum, with(bound, s), place);
          expect_like_allreduce<double>(n, uneven(n, 1), Op::average, with(bound, s), place);
        }
      }
    }
  }
}

// In place, the owner's sum lands on what other ranks' blocks are still to be read from, if anything does.
TEST(ReduceScatter, InPlaceOverManySegmentsAndSlabs) {
  constexpr std::size_t beyond_a_slab = (std::size_t{1} << 20) + 12345;
  expect_like_allreduce<float>(3, {100, beyond_a_slab, 5000}, Op::sum, with("lossless"), Place::front);
  for (const Place place : {Place::front, Place::own_block}) {
    expect_like_allreduce<float>(3, {100, beyond_a_slab, 300000}, Op::sum, with("1e-3", Schedule::ring), place);
  }
}

// Two slabs, since the longest share counts for all. Rank 1 waits for rank 2, whose messages come late, and has time to
// deliver the first slab where rank 0's second one is still to be encoded from.
TEST(ReduceScatter, InPlaceOverSlabsOfADirectExchange) {
  const std::vector<std::size_t> counts{1000000, 2500000, 300000, 100, 0, 100, 100};
  const int n = static_cast<int>(counts.size());
  std::vector<std::vector<float>> operands;
  for (int r = 0; r < n; ++r) operands.push_back(make<float>("smooth", 3800300, r));
  const auto expected = scatter(operands, counts, Op::sum, with("1e-3", Schedule::ring));
  for (const std::size_t before : {std::size_t{0}, counts[0]}) {  // rank 1's result at the front, or its own block
    run_ranks(n, [&](Transport& t) {
      const auto slow = make_faulty_transport(t, delay(t.rank() == 2 ? 0.003 : 0));
      Communicator comm(*slow);
      const auto me = static_cast<std::size_t>(t.rank());
      std::vector<float> send = operands[me], recv(counts[me]);
      float* const there = t.rank() == 1 ? send.data() + before : recv.data();
      reduce_scatter(ConstArray(view(send)), {there, counts[me], DType::f32}, counts, Op::sum, comm,
                     with("1e-3", Schedule::direct));
      EXPECT_TRUE(world::same_bytes(std::vector<float>(there, there + counts[me]), expected.results[me])) << t.rank();
    });
  }
}

// What a direct exchange is for: partial sums, which have more bits than operands, do not travel.
TEST(ReduceScatter, DirectSendsFewerBytesThanARing) {
  constexpr int n = 8;
  const std::vector<std::size_t> counts(n, 40000);
  std::vector<std::vector<float>> operands(n, make<float>("smooth", n * counts[0], 1));
  const auto sent = [&](Schedule s) {
    std::uint64_t bytes = 0;
    for (const Report& r : scatter(operands, counts, Op::sum, with("1e-3", s)).reports) bytes += r.stats.wire_bytes;
    return static_cast<double>(bytes);
  };
  EXPECT_LT(sent(Schedule::direct), 0.9 * sent(Schedule::ring));
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
}  // namespace laconic::collective_reduce_scatter_test
