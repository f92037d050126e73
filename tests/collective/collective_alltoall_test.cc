#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "collective/alltoall.h"
#include "collective/block_counts.h"
#include "collective/fields.h"
#include "collective/moved.h"
#include "collective/world.h"

namespace laconic::collective_alltoall_test {
namespace {

using moved::expect_within;
using moved::with;
using testing_fields::make;
using world::view;

/// What rank `from` has for rank `to`.
template <typename T>
std::vector<T> message(const char* kind, std::size_t count, int from, int to) {
  return make<T>(kind, count, from * 100 + to);
}

template <typename T, typename Count>
void expect_alltoall(const char* kind, int n, Count count, bool in_place, bool v, const Options& options,
                     double bound) {
  const auto run = world::run<T>(n, [&](int rank, Communicator& comm) {
    std::vector<std::vector<T>> out, in;
    for (int p = 0; p < n; ++p) {
      out.push_back(message<T>(kind, count(rank, p), rank, p));
      in.emplace_back(count(p, rank));
    }
    const auto send = moved::joined(out);
    auto recv = in_place ? send : moved::joined(in);
    const ConstArray from = in_place ? ConstArray(view(recv)) : view(send);
    const Report report = v ? alltoallv(from, moved::counts_of(out), view(recv), moved::counts_of(in), comm, options)
                            : alltoall(from, view(recv), comm, options);
    return std::pair(recv, report);
  });
  for (int r = 0; r < n; ++r) {
    std::vector<T> expected;
    for (int p = 0; p < n; ++p) {
      const auto part = message<T>(kind, count(p, r), p, r);
      if (p == r) {
        const auto& got = run.results[static_cast<std::size_t>(r)];
        const auto at = got.begin() + static_cast<std::ptrdiff_t>(expected.size());
        EXPECT_TRUE(std::equal(part.begin(), part.end(), at)) << "rank " << r << "'s own";
      }
      expected.insert(expected.end(), part.begin(), part.end());
    }
    expect_within(run.results[static_cast<std::size_t>(r)], expected, bound);
  }
}

TEST(Alltoall, EveryMessageArrivesWithinTheBoundInPlaceToo) {
  for (int n = 1; n <= 8; ++n) {
    for (const std::size_t block : {0U, 1U, 100U, 5001U}) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(std::to_string(n) + " ranks, " + std::to_string(block) + (in_place ? " in place" : ""));
        const auto same = [&](int, int) { return block; };
        expect_alltoall<float>("smooth", n, same, in_place, false, with("1e-3", 2048), 1e-3);
        expect_alltoall<double>("wild", n, same, in_place, false, with("lossless"), 0);
      }
    }
  }
}

TEST(Alltoall, AnyCounts) {
  for (const int n : {1, 2, 3, 4, 7, 8}) {
    SCOPED_TRACE(n);
    const auto uneven = [](int from, int to) { return static_cast<std::size_t>((from * 5 + to * 3) % 4) * 1111; };
    expect_alltoall<float>("smooth", n, uneven, false, true, with("1e-3"), 1e-3);
    expect_alltoall<std::int64_t>("integer", n, uneven, false, true, with("1e-3"), 0);
    const auto symmetric = [](int from, int to) { return static_cast<std::size_t>((from + to) % 3) * 3333; };
    expect_alltoall<float>("smooth", n, symmetric, true, true, with("1e-3", 2048), 1e-3);
  }
}

// Among many ranks each hears of its own blocks alone.
TEST(Alltoall, AnyCountsOfManyRanks) {
  const auto sparse = [](int from, int to) { return static_cast<std::size_t>((from * 7 + to * 3) % 11 / 8) * 40; };
  expect_alltoall<float>("smooth", most_ranks_that_hear_all + 3, sparse, false, true, with("1e-3"), 1e-3);
}

TEST(Alltoall, ManyRanksAllNameTheFirstBlockThatIsNotExpected) {
  constexpr int n = most_ranks_that_hear_all + 3;
  std::vector<std::string> said(n);
  world::run<float>(n, [&](int rank, Communicator& comm) {
    const auto me = static_cast<std::size_t>(rank);
    const std::vector<std::size_t> out(n, 3);
    std::vector<std::size_t> in(n, 3);
    if (rank == 5) in[40] = 4;
    if (rank == 60) in[7] = in[66] = 2;
    const std::vector<float> send(n * 3);
    std::vector<float> recv(std::accumulate(in.begin(), in.end(), std::size_t{0}));
    try {
      alltoallv(view(send), out, view(recv), in, comm, with("1e-3"));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::mismatch);
      said[me] = e.what();
    }
    return std::pair(std::vector<float>{}, Report{});
  });
  EXPECT_EQ(said, std::vector<std::string>(n, "alltoall: rank 7 has 3 elements for rank 60, which expects 2"));
}

// One rank in place, the others not: all must take the same schedule.
TEST(Alltoall, PlaceMayDifferBetweenRanks) {
  const int n = 5;
  const std::size_t block = 3000;
  world::run<float>(n, [&](int rank, Communicator& comm) {
    std::vector<std::vector<float>> out, in;
    for (int p = 0; p < n; ++p) {
      out.push_back(message<float>("smooth", block, rank, p));
      in.push_back(message<float>("smooth", block, p, rank));
    }
    auto send = moved::joined(out);
    std::vector<float> recv(send.size());
    const Report report = alltoall(view(std::as_const(send)), view(rank == 2 ? send : recv), comm, with("1e-3"));
    expect_within(rank == 2 ? send : recv, moved::joined(in), 1e-3);
    return std::pair(recv, report);
  });
}

}  // namespace
}  // namespace laconic::collective_alltoall_test
