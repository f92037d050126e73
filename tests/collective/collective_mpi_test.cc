// The collectives over real MPI ranks: the same promises as over threads, checked against MPI_Allreduce in f64 and
// against the other ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/gather.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/reference.h"
#include "collective/scan.h"
#include "collective/scatter.h"
#include "collective/world.h"
#include "core/error.h"
#include "transport/mpi/mpi.h"

namespace laconic {
namespace {

using testing_fields::make;
using world::view;

Options with(const char* bound) {
  Options o;
  o.bound = Bound::parse(bound);
  o.mode = Mode::compressed;  // else most of these would be too short to be compressed
  return o;
}

template <typename T>
void expect_same_bytes_on_all(const std::vector<T>& mine) {
  std::vector<T> first = mine;
  MPI_Bcast(first.data(), static_cast<int>(first.size() * sizeof(T)), MPI_BYTE, 0, MPI_COMM_WORLD);
  EXPECT_TRUE(world::same_bytes(mine, first));
}

class CollectiveMpi : public testing::Test {
 protected:
  CollectiveMpi() : comm(make_mpi_transport(MPI_COMM_WORLD)) {}
  Communicator comm;

  template <typename T>
  std::vector<std::vector<T>> everybodys(const char* kind, std::size_t count) {
    std::vector<std::vector<T>> all;
    for (int r = 0; r < comm.size(); ++r) all.push_back(make<T>(kind, count, r));
    return all;
  }
};

TEST_F(CollectiveMpi, AllreduceOfAnyCountOpAndBound) {
  for (const std::size_t count : {0U, 1U, 5U, 100003U}) {
    for (const char* bound : {"1e-3", "1e-3rel", "lossless"}) {
      for (const Op op : {Op::sum, Op::average}) {
        const auto operands = everybodys<float>("smooth", count);
        std::vector<float> got(count);
        const auto& mine = operands[static_cast<std::size_t>(comm.rank())];
        const Report report = allreduce(view(mine), view(got), op, comm, with(bound));
        reference::expect_sum(got, operands, report.result_bound, op == Op::average ? comm.size() : 1);
        expect_same_bytes_on_all(got);
      }
    }
  }
}

TEST_F(CollectiveMpi, AllreduceInPlaceOfDoubles) {
  const auto operands = everybodys<double>("noise", 300007);
  std::vector<double> x = operands[static_cast<std::size_t>(comm.rank())];
  const Report report = allreduce(view(std::as_const(x)), view(x), Op::sum, comm, with("1e-4"));
  reference::expect_sum(x, operands, report.result_bound);
  expect_same_bytes_on_all(x);
}

TEST_F(CollectiveMpi, ReduceScatter) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < comm.size(); ++r) counts.push_back(static_cast<std::size_t>(r % 3) * 30001);
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const auto operands = everybodys<float>("smooth", total);
  const auto me = static_cast<std::size_t>(comm.rank());
  std::vector<float> share(counts[me]), whole(total);
  reduce_scatter(view(operands[me]), view(share), counts, Op::sum, comm, with("1e-3"));
  allreduce(view(operands[me]), view(whole), Op::sum, comm, with("1e-3"));
  const std::size_t before = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::size_t{0});
  const auto first = whole.begin() + static_cast<std::ptrdiff_t>(before);
  EXPECT_TRUE(world::same_bytes(share, std::vector<float>(first, first + static_cast<std::ptrdiff_t>(counts[me]))));
}

TEST_F(CollectiveMpi, Allgather) {
  const auto size_on = [](int r) { return static_cast<std::size_t>(r % 3) * 40001; };
  std::vector<float> sent_by_all;
  for (int r = 0; r < comm.size(); ++r) {
    const auto x = make<float>("smooth", size_on(r), r);
    sent_by_all.insert(sent_by_all.end(), x.begin(), x.end());
  }
  const auto mine = make<float>("smooth", size_on(comm.rank()), comm.rank());
  std::vector<float> got(sent_by_all.size());
  allgather(view(mine), view(got), comm, with("1e-3"));
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], sent_by_all[i], 1e-3) << i;
  expect_same_bytes_on_all(got);
}

TEST_F(CollectiveMpi, EveryScheduleReduceAndScanAgree) {
  const auto me = static_cast<std::size_t>(comm.rank());
  const auto operands = everybodys<float>("smooth", 400003);
  std::vector<float> ring(operands[me].size()), other(ring.size());
  Options options = with("1e-3");
  options.schedule = Schedule::ring;
  allreduce(view(operands[me]), view(ring), Op::sum, comm, options);
  for (const Schedule s :
       {Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::two_level, Schedule::direct}) {
    options.schedule = s;
    allreduce(view(operands[me]), view(other), Op::sum, comm, options);
    EXPECT_TRUE(world::same_bytes(other, ring)) << name_of(s);
  }
  std::fill(other.begin(), other.end(), 0.0F);
  reduce(view(operands[me]), view(other), Op::sum, comm.size() - 1, comm, options);  // on two levels
  EXPECT_TRUE(comm.rank() != comm.size() - 1 || world::same_bytes(other, ring));
  options.schedule = Schedule::automatic;
  reduce(view(operands[me]), view(other), Op::sum, 0, comm, options);
  EXPECT_TRUE(comm.rank() != 0 || world::same_bytes(other, ring));
  scan(view(operands[me]), view(other), Op::sum, comm, options);
  EXPECT_TRUE(comm.rank() != comm.size() - 1 || world::same_bytes(other, ring));
}

// Within one node all ranks but the root get plain elements; those that the root ends with.
TEST_F(CollectiveMpi, BcastOnTwoLevelsGivesTheBitsOfAFlatOne) {
  const int root = comm.size() - 1;
  const auto sent = make<float>("smooth", 2000003, root);
  Options options = with("1e-3");
  std::vector<std::vector<float>> got;
  for (const Schedule s : {Schedule::ring, Schedule::two_level}) {
    got.push_back(comm.rank() == root ? sent : std::vector<float>(sent.size()));
    options.schedule = s;
    bcast(view(got.back()), root, comm, options);
    expect_same_bytes_on_all(got.back());
  }
  EXPECT_TRUE(world::same_bytes(got[0], got[1]));
}

// Long enough for a chain of many segments and messages that MPI does not send eagerly.
TEST_F(CollectiveMpi, BcastOfLongAndShortArrays) {
  for (const std::size_t count : {100U, 2000003U}) {
    const int root = comm.size() / 2;
    const auto sent = make<float>("smooth", count, root);
    auto x = comm.rank() == root ? sent : std::vector<float>(count);
    bcast(view(x), root, comm, with("1e-3"));
    for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(x[i], sent[i], 1e-3) << i;
    expect_same_bytes_on_all(x);
  }
}

TEST_F(CollectiveMpi, ScatterGatherAlltoallOfLongAndShortArrays) {
  const auto n = static_cast<std::size_t>(comm.size());
  const int root = comm.size() - 1;
  for (const std::size_t share : {50U, 200001U}) {
    const auto sent = make<float>("smooth", share * n, 1);
    const std::vector<std::size_t> counts(n, share);
    std::vector<float> mine(share), all(sent.size()), turned(sent.size());
    scatter(view(sent), counts, view(mine), root, comm, with("1e-3"));
    gather(view(mine), view(all), counts, root, comm, with("1e-3"));
    for (std::size_t i = 0; comm.rank() == root && i < sent.size(); ++i) ASSERT_NEAR(all[i], sent[i], 2e-3) << i;
    alltoall(view(sent), view(turned), comm, with("1e-3"));
    const std::size_t first = static_cast<std::size_t>(comm.rank()) * share;
    for (std::size_t i = 0; i < turned.size(); ++i) ASSERT_NEAR(turned[i], sent[first + i % share], 1e-3) << i;
  }
}

TEST_F(CollectiveMpi, AnotherCountIsAnErrorOnEveryRank) {
  if (comm.size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  std::vector<float> x(comm.rank() == comm.size() - 1 ? 1001 : 1000), y(x.size());
  try {
    allreduce(view(std::as_const(x)), view(y), Op::sum, comm, with("1e-3"));
    ADD_FAILURE() << "no error on rank " << comm.rank();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::mismatch);
    EXPECT_NE(std::string(e.what()).find("rank " + std::to_string(comm.size() - 1)), std::string::npos) << e.what();
  }
  EXPECT_TRUE(comm.usable());
}

}  // namespace
}  // namespace laconic
