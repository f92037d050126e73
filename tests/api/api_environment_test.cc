// A mistake in one rank's environment, over real MPI ranks. By itself: the environment is looked at once.
#include <gtest/gtest.h>
#include <laconic/laconic_mpi.h>

#include <cstdlib>
#include <string>

namespace {

TEST(ApiEnvironment, AMistakeOnOneRankIsAnErrorOnAll) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) setenv("LACONIC_BOUND", "abc", 1);  // NOLINT(concurrency-mt-unsafe): no thread has begun
  laconic_comm* made = nullptr;
  EXPECT_EQ(laconic_comm_from_mpi(MPI_COMM_WORLD, &made), LACONIC_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  const std::string said = laconic_last_error();
  EXPECT_NE(said.find(rank == 0 ? "abc" : "rank 0 has a mistake"), std::string::npos) << said;
}

}  // namespace
