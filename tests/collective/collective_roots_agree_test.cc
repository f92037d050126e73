// Rooted calls and alltoallv in which one rank passes something else: the same error on every rank.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/gather.h"
#include "collective/scatter.h"
#include "collective/world.h"
#include "core/error.h"

namespace laconic::collective_roots_agree_test {
namespace {

using world::view;

constexpr int ranks = 4;

/// Runs the call on all ranks; returns what all of them threw.
std::string thrown_by_all(Code code, const std::function<void(int rank, Communicator&)>& call) {
  const auto run = world::run<char>(ranks, [&](int rank, Communicator& comm) {
    std::string text = "nothing";
    try {
      call(rank, comm);
    } catch (const Error& e) {
      text = e.what();
      EXPECT_EQ(e.code(), code) << text;
    }
    EXPECT_TRUE(comm.usable());
    std::vector<float> x(100);
    EXPECT_NO_THROW(bcast(view(x), 0, comm, {}));
    return std::pair(std::vector<char>(text.begin(), text.end()), Report{});
  });
  world::expect_same_everywhere(run);
  return {run.results[0].begin(), run.results[0].end()};
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(text.find(w), std::string::npos) << w << " in: " << text;
}

TEST(RootsAgree, AnotherRootIsNamedWithBoth) {
  const auto text = thrown_by_all(Code::mismatch, [](int rank, Communicator& comm) {
    std::vector<float> x(100);
    bcast(view(x), rank == 3 ? 2 : 1, comm, {});
  });
  expect_words(text, {"bcast", "rank 3", "root 2", "rank 0", "1"});
}

TEST(RootsAgree, NoSuchRoot) {
  for (const int root : {-1, ranks}) {
    const auto text = thrown_by_all(Code::invalid_argument, [&](int, Communicator& comm) {
      std::vector<float> x(100);
      bcast(view(x), root, comm, {});
    });
    expect_words(text, {"bcast", "root " + std::to_string(root) == "root -1" ? "root -1" : "root 4", "0 to 3"});
  }
}

TEST(RootsAgree, CountOfAShareThatTheRootSeesDifferently) {
  const std::vector<std::size_t> counts{10, 20, 30, 40};
  const auto own = [&](int rank) { return counts[static_cast<std::size_t>(rank)] + (rank == 2 ? 1 : 0); };
  expect_words(thrown_by_all(Code::mismatch,
                             [&](int rank, Communicator& comm) {
                               std::vector<float> all(100), mine(own(rank));
                               scatter(view(std::as_const(all)), counts, view(mine), 1, comm, {});
                             }),
               {"scatter", "rank 2", "31", "counts[2] = 30", "rank 1"});
  expect_words(thrown_by_all(Code::mismatch,
                             [&](int rank, Communicator& comm) {
                               std::vector<float> all(100), mine(own(rank));
                               gather(view(std::as_const(mine)), view(all), counts, 1, comm, {});
                             }),
               {"gather", "rank 2", "31", "counts[2] = 30", "rank 1"});
}

TEST(RootsAgree, CountsOfTheRootThatCannotBe) {
  for (const auto& counts : {std::vector<std::size_t>{10, 20, 70}, {10, 20, 30, 41}, {10, 21, 29, 40}}) {
    const auto text = thrown_by_all(Code::invalid_argument, [&](int rank, Communicator& comm) {
      std::vector<float> all(100), mine(static_cast<std::size_t>(rank) * 10 + 10);
      scatter(view(std::as_const(all)), counts, view(mine), 1, comm, {});
    });
    expect_words(text, {"scatter", "rank 1", "counts"});
  }
}

TEST(RootsAgree, DtypeAndOverlap) {
  expect_words(thrown_by_all(Code::mismatch,
                             [](int rank, Communicator& comm) {
                               std::vector<float> x(100);
                               const DType dtype = rank == 3 ? DType::i32 : DType::f32;
                               bcast({x.data(), x.size(), dtype}, 0, comm, {});
                             }),
               {"bcast", "rank 3", "dtype", "i32", "f32"});
  const std::vector<std::size_t> counts(ranks, 25);
  expect_words(thrown_by_all(Code::invalid_argument,
                             [&](int rank, Communicator& comm) {
                               std::vector<float> all(100), mine(25);
                               const MutArray recv{rank == 0 ? all.data() + 30 : mine.data(), 25, DType::f32};
                               scatter(view(std::as_const(all)), counts, recv, 0, comm, {});
                             }),
               {"scatter", "rank 0", "overlap"});
}

TEST(RootsAgree, AlltoallvCountsThatTheOtherSideSeesDifferently) {
  const auto text = thrown_by_all(Code::mismatch, [](int rank, Communicator& comm) {
    std::vector<std::size_t> out(ranks, 5), in(ranks, 5);
    if (rank == 2) in[3] = 7;
    std::vector<float> send(20), recv(rank == 2 ? 22 : 20);
    alltoallv(view(std::as_const(send)), out, view(recv), in, comm, {});
  });
  expect_words(text, {"alltoall", "rank 3", "5", "rank 2", "7"});
}

TEST(RootsAgree, AlltoallOfNoMultipleAndInPlaceWithOtherCounts) {
  expect_words(thrown_by_all(Code::invalid_argument,
                             [](int, Communicator& comm) {
                               std::vector<float> send(21), recv(21);
                               alltoall(view(std::as_const(send)), view(recv), comm, {});
                             }),
               {"alltoall", "21", "multiple of 4"});
  expect_words(thrown_by_all(Code::invalid_argument,
                             [](int rank, Communicator& comm) {
                               const std::vector<std::size_t> out{1, 2, 3, 4}, in{1, 3, 2, 4};
                               std::vector<float> x(10);
                               static_cast<void>(rank);
                               alltoallv(view(std::as_const(x)), out, view(x), in, comm, {});
                             }),
               {"alltoall", "in place", "counts and displs of send and recv must be the same"});
}

}  // namespace
}  // namespace laconic::collective_roots_agree_test
