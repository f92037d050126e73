// Communicators while MPI is not yet, or no longer, there; one rank, which begins MPI by itself.
#include <gtest/gtest.h>
#include <laconic/laconic_mpi.h>

#include <string>

namespace {

void expect_refused(MPI_Comm mpi, const char* words) {
  laconic_comm* comm = nullptr;
  EXPECT_EQ(laconic_comm_from_mpi(mpi, &comm), LACONIC_INVALID_ARGUMENT);
  EXPECT_EQ(comm, nullptr);
  EXPECT_NE(std::string(laconic_last_error()).find(words), std::string::npos) << laconic_last_error();
}

void expect_works(MPI_Comm mpi) {
  laconic_comm* comm = nullptr;
  ASSERT_EQ(laconic_comm_from_mpi(mpi, &comm), LACONIC_OK) << laconic_last_error();
  float x = 3;
  EXPECT_EQ(laconic_allreduce(LACONIC_IN_PLACE, &x, 1, LACONIC_F32, LACONIC_SUM, comm, nullptr), LACONIC_OK);
  EXPECT_EQ(x, 3);
  laconic_comm_free(comm);
}

void expect_a_sessions_works() {
#if MPI_VERSION >= 4
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Group self = MPI_GROUP_NULL;
  MPI_Comm mpi = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
  ASSERT_EQ(MPI_Group_from_session_pset(session, "mpi://SELF", &self), MPI_SUCCESS);
  ASSERT_EQ(MPI_Comm_create_from_group(self, "laconic", MPI_INFO_NULL, MPI_ERRORS_RETURN, &mpi), MPI_SUCCESS);
  expect_works(mpi);
  MPI_Comm_free(&mpi);
  MPI_Group_free(&self);
  MPI_Session_finalize(&session);
#endif
}

// In this order: MPI_Init is for once.
TEST(ApiLifetime, CommunicatorsOnlyWhileThereIsMpi) {
  expect_refused(MPI_COMM_WORLD, "MPI_Init has not been called");
  expect_refused(MPI_COMM_SELF, "MPI_Init has not been called");
  expect_a_sessions_works();
  MPI_Init(nullptr, nullptr);
  expect_works(MPI_COMM_WORLD);
  MPI_Finalize();
  expect_refused(MPI_COMM_WORLD, "MPI_Finalize has been called");
}

}  // namespace
