#include <gtest/gtest.h>

#include <algorithm>
#include <climits>

#include "core/error.h"
#include "transport/conformance.h"
#include "transport/mpi/mpi.h"

namespace laconic {
namespace {

TEST(Mpi, Conforms) { conformance::run_all(*make_mpi_transport(MPI_COMM_WORLD)); }

TEST(Mpi, TwoTransportsOverOneCommunicatorDoNotMeet) {
  const auto a = make_mpi_transport(MPI_COMM_WORLD);
  const auto b = make_mpi_transport(MPI_COMM_WORLD);
  const int next = (a->rank() + 1) % a->size();
  const int previous = (a->rank() + a->size() - 1) % a->size();
  const std::vector<std::uint8_t> one(3, 1), two(3, 2);
  std::vector<std::uint8_t> got_one(3), got_two(3);
  Request sa = a->isend(one, next, 0);
  Request sb = b->isend(two, next, 0);
  b->irecv(got_two, previous, 0).wait();
  a->irecv(got_one, previous, 0).wait();
  sa.wait();
  sb.wait();
  EXPECT_EQ(got_one, one);
  EXPECT_EQ(got_two, two);
}

TEST(Mpi, WaitingGivesUpAndNamesTheRank) {
  const auto t = make_mpi_transport(MPI_COMM_WORLD, 0.05);
  const int previous = (t->rank() + t->size() - 1) % t->size();
  std::vector<std::uint8_t> room(1);
  Request r = t->irecv(room, previous, 9);
  try {
    r.wait();
    FAIL() << "nothing was sent";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::transport);
    EXPECT_NE(std::string(e.what()).find("from rank " + std::to_string(previous)), std::string::npos) << e.what();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Mpi, SaysWhichLibraryItIs) {
  const std::string name = make_mpi_transport(MPI_COMM_WORLD)->description();
  EXPECT_TRUE(name.rfind("MPI (Open MPI ", 0) == 0 || name.rfind("MPI (MPICH ", 0) == 0) << name;
}

TEST(Mpi, RanksOfOneHostShareANode) {
  const auto t = make_mpi_transport(MPI_COMM_WORLD);
  std::vector<std::uint8_t> mine(MPI_MAX_PROCESSOR_NAME), all(mine.size() * static_cast<std::size_t>(t->size()));
  int length = 0;
  MPI_Get_processor_name(reinterpret_cast<char*>(mine.data()), &length);
  t->allgather_small(mine, all);
  ASSERT_EQ(t->nodes().size(), static_cast<std::size_t>(t->size()));
  for (std::size_t r = 0; r < t->nodes().size(); ++r) {
    const bool same = std::equal(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(r * mine.size()));
    EXPECT_EQ(t->nodes()[r] == t->nodes()[static_cast<std::size_t>(t->rank())], same) << r;
  }
}

TEST(Mpi, AMessageLongerThanItsBufferIsAnError) {
  const auto t = make_mpi_transport(MPI_COMM_WORLD);
  if (t->size() < 2) GTEST_SKIP() << "MPI libraries treat messages to oneself differently";
  const int next = (t->rank() + 1) % t->size();
  const int previous = (t->rank() + t->size() - 1) % t->size();
  const std::vector<std::uint8_t> data(10);
  std::vector<std::uint8_t> room(9);
  Request s = t->isend(data, next, 0);
  EXPECT_THROW(t->irecv(room, previous, 0).wait(), Error);
  s.wait();
}

}  // namespace
}  // namespace laconic
