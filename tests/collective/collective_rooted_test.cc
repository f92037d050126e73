// bcast, scatter and gather: from and to every root, short and long, in place and not.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/gather.h"
#include "collective/moved.h"
#include "collective/scatter.h"
#include "collective/world.h"
#include "support/sanitized.h"

namespace laconic::collective_rooted_test {
namespace {

using moved::expect_within;
using moved::with;
using testing_fields::make;
using testing_fields::sprinkle;
using world::view;

struct Bounded {
  const char* text;
  double value;
};
constexpr Bounded bounds[] = {{"1e-3", 1e-3}, {"lossless", 0}};

std::vector<int> roots_of(int n) {
  std::vector<int> roots{0};
  if (n > 1) roots.push_back(n - 1);
  if (n > 2) roots.push_back(n / 2);
  return roots;
}

template <typename T>
world::Run<T> run_bcast(const std::vector<T>& sent, int n, int root, const Options& options) {
  return world::run<T>(n, [&](int rank, Communicator& comm) {
    std::vector<T> data = rank == root ? sent : std::vector<T>(sent.size());
    const Report report = bcast(view(data), root, comm, options);
    return std::pair(data, report);
  });
}

template <typename T>
void expect_bcast(const char* kind, std::size_t count, int n, std::size_t segment) {
  auto sent = make<T>(kind, count, 5);
  for (const Bounded bound : bounds) {
    for (const int root : roots_of(n)) {
      SCOPED_TRACE(std::to_string(count) + " elements, " + bound.text + ", root " + std::to_string(root) + " of " +
                   std::to_string(n));
      const auto run = run_bcast(sent, n, root, with(bound.text, segment));
      world::expect_same_everywhere(run);
      const bool exact = n == 1 || std::is_integral_v<T>;
      expect_within(run.results[0], sent, exact ? 0 : bound.value);
    }
  }
}

TEST(Bcast, EveryRankHoldsTheSameBytesWithinTheBoundTheRootToo) {
  for (int n = 1; n <= 8; ++n) {
    for (const std::size_t count : {0U, 1U, 63U, 20001U}) expect_bcast<float>("smooth", count, n, 0);
    expect_bcast<float>("smooth", 40001, n, 2048);  // a chain
    expect_bcast<double>("noise", 5003, n, 0);
    expect_bcast<std::int64_t>("integer", 3001, n, 2048);
  }
}

TEST(Bcast, NothingIsLostOfNanAndInfinityAndTheRangeIsTheRoots) {
  auto sent = make<float>("smooth", 9001, 1);
  sprinkle(sent, 3, 700, std::numeric_limits<float>::quiet_NaN());
  sprinkle(sent, 4, 700, -std::numeric_limits<float>::infinity());
  const auto run = run_bcast(sent, 3, 1, with("1e-3rel"));
  world::expect_same_everywhere(run);
  expect_within(run.results[2], sent, run.reports[0].result_bound);
  EXPECT_GT(run.reports[0].result_bound, 1e-3);
  EXPECT_LT(run.reports[0].result_bound, 4e-3);
  EXPECT_LT(run.reports[1].stats.wire_bytes, sent.size() * sizeof(float));
}

/// Uneven shares, one of them empty.
template <typename T>
std::vector<std::vector<T>> parts_of(const char* kind, int n, std::size_t unit) {
  std::vector<std::vector<T>> parts;
  for (int r = 0; r < n; ++r) {
    parts.push_back(make<T>(kind, static_cast<std::size_t>((r * 3 + 1) % 4) * unit + (r % 2), r));
  }
  return parts;
}

template <typename T>
world::Run<T> run_scatter(const std::vector<std::vector<T>>& parts, int root, bool in_place, const Options& options) {
  const auto counts = moved::counts_of(parts);
  const auto all = moved::joined(parts);
  return world::run<T>(static_cast<int>(parts.size()), [&](int rank, Communicator& comm) {
    const auto me = static_cast<std::size_t>(rank);
    std::vector<T> recv(counts[me]);
    if (rank != root) {
      const Report report = scatter({}, Parts{}, view(recv), root, comm, options);
      return std::pair(recv, report);
    }
    auto send = all;
    MutArray place = view(recv);
    const std::size_t first = std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
    if (in_place) place.data = send.data() + first;
    const Report report = scatter(view(std::as_const(send)), counts, place, root, comm, options);
    EXPECT_TRUE(world::same_bytes(send, all));
    if (in_place) std::copy_n(send.begin() + static_cast<std::ptrdiff_t>(first), counts[me], recv.begin());
    return std::pair(recv, report);
  });
}

template <typename T>
std::pair<std::vector<T>, Report> run_gather(const std::vector<std::vector<T>>& parts, int root, bool in_place,
                                             const Options& options) {
  const auto counts = moved::counts_of(parts);
  const auto run = world::run<T>(static_cast<int>(parts.size()), [&](int rank, Communicator& comm) {
    const auto& mine = parts[static_cast<std::size_t>(rank)];
    if (rank != root) return std::pair(std::vector<T>{}, gather(view(mine), {}, Parts{}, root, comm, options));
    std::vector<T> recv(moved::joined(parts).size());
    ConstArray send = view(mine);
    if (in_place) {
      const auto first = std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
      std::copy(mine.begin(), mine.end(), recv.begin() + static_cast<std::ptrdiff_t>(first));
      send.data = recv.data() + first;
    }
    const Report report = gather(send, view(recv), counts, root, comm, options);
    return std::pair(recv, report);
  });
  return {run.results[static_cast<std::size_t>(root)], run.reports[static_cast<std::size_t>(root)]};
}

template <typename T>
void expect_scatter_and_gather(const char* kind, int n, std::size_t unit, std::size_t segment) {
  const auto parts = parts_of<T>(kind, n, unit);
  for (const Bounded bound : bounds) {
    for (const int root : roots_of(n)) {
      SCOPED_TRACE(std::to_string(unit) + ", " + bound.text + ", root " + std::to_string(root) + " of " +
                   std::to_string(n));
      const auto me = static_cast<std::size_t>(root);
      for (const bool in_place : {false, true}) {
        const auto scattered = run_scatter(parts, root, in_place, with(bound.text, segment));
        for (std::size_t r = 0; r < parts.size(); ++r) {
          expect_within(scattered.results[r], parts[r], r == me || std::is_integral_v<T> ? 0 : bound.value);
        }
        const auto gathered = run_gather(parts, root, in_place, with(bound.text, segment)).first;
        expect_within(gathered, moved::joined(parts), std::is_integral_v<T> ? 0 : bound.value);
        const auto first = gathered.begin() + [&] {
          std::ptrdiff_t before = 0;
          for (std::size_t r = 0; r < me; ++r) before += static_cast<std::ptrdiff_t>(parts[r].size());
          return before;
        }();
        EXPECT_TRUE(std::equal(parts[me].begin(), parts[me].end(), first)) << "the root's own part is not as it was";
      }
    }
  }
}

TEST(ScatterGather, EveryShareArrivesWithinTheBoundFromEveryRoot) {
  for (int n = 1; n <= 8; n += test::sanitized ? 3 : 1) {
    expect_scatter_and_gather<float>("smooth", n, 9, 0);  // a tree, shared messages
    expect_scatter_and_gather<float>("smooth", n, 7001, 2048);
    expect_scatter_and_gather<double>("noise", n, 3001, 0);
    expect_scatter_and_gather<std::int64_t>("integer", n, 1000, 0);
  }
}

TEST(ScatterGather, NothingAtAll) {
  const std::vector<std::vector<float>> nothing(5);
  EXPECT_TRUE(run_gather(nothing, 2, false, with("1e-3")).first.empty());
  EXPECT_TRUE(run_scatter(nothing, 2, false, with("1e-3")).results[0].empty());
}

TEST(ScatterGather, ShortOnesTravelInFewMessages) {
  const auto parts = parts_of<float>("smooth", 8, 9);
  const auto scattered = run_scatter(parts, 0, false, with("1e-3"));
  EXPECT_EQ(scattered.reports[0].messages_sent, 3U + 2U);  // down the tree; agree, confirm
  EXPECT_EQ(run_gather(parts, 0, false, with("1e-3")).second.messages_sent, 2U);
}

}  // namespace
}  // namespace laconic::collective_rooted_test
