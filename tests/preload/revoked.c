/* A communicator is revoked (Open MPI 5, started with fault tolerance) while ranks wait in calls over it: all of them
 * end with an error, and MPI goes on.
 *
 *   revoked 0
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { COUNT = 20000 };

int MPIX_Comm_revoke(MPI_Comm comm);

static int rank, wrong, calls, x[COUNT], y[COUNT];

static void expect(int good, const char* what) {
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "rank %d: %s\n", rank, what);
}

static int blocking(MPI_Comm comm) { return MPI_Allreduce(x, y, COUNT, MPI_INT, MPI_SUM, comm); }

static int non_blocking(MPI_Comm comm) {
  MPI_Request request;
  const int code = MPI_Iallreduce(x, y, COUNT, MPI_INT, MPI_SUM, comm, &request);
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static MPI_Request kept;

static int persistent(MPI_Comm comm) {
  (void)comm;
  const int code = MPI_Start(&kept);
  return code == MPI_SUCCESS ? MPI_Wait(&kept, MPI_STATUS_IGNORE) : code;
}

static void revoke_during(int (*call)(MPI_Comm), const char* what) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Allreduce_init(x, y, COUNT, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &kept);
  expect(call(comm) == MPI_SUCCESS, what);
  if (rank == 0) {
    usleep(200000);
    expect(MPIX_Comm_revoke(comm) == MPI_SUCCESS, "revoking");
  } else {
    expect(call(comm) != MPI_SUCCESS, what);
  }
  MPI_Request_free(&kept);
  MPI_Comm_free(&comm);
  MPI_Allreduce(x, y, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int provided, all = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  revoke_during(blocking, "a blocking call");
  revoke_during(non_blocking, "a non-blocking call");
  revoke_during(persistent, "a persistent call");
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
