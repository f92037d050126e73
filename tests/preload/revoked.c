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
/* What Fortran calls: there is none of that in the package of Open MPI 5 but Laconic's own. */
void mpix_comm_revoke_(const MPI_Fint* comm, MPI_Fint* code) __attribute__((weak));

static int revoke_from_c(MPI_Comm comm) { return MPIX_Comm_revoke(comm); }

static int revoke_from_fortran(MPI_Comm comm) {
  const MPI_Fint handle = MPI_Comm_c2f(comm);
  MPI_Fint code = -1;
  mpix_comm_revoke_(&handle, &code);
  return code;
}

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

static void revoke_during(int (*call)(MPI_Comm), int (*by)(MPI_Comm), const char* what) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Allreduce_init(x, y, COUNT, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &kept);
  expect(call(comm) == MPI_SUCCESS, what);
  if (rank == 0) {
    usleep(200000);
    expect(by(comm) == MPI_SUCCESS, "revoking");
  } else {
    int class = MPI_SUCCESS;
    MPI_Error_class(call(comm), &class);
    expect(call == blocking ? class == MPI_ERR_REVOKED : class != MPI_SUCCESS, what);
  }
  MPI_Request_free(&kept);
  MPI_Comm_free(&comm);
  MPI_Allreduce(x, y, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int provided, all = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  revoke_during(blocking, revoke_from_c, "a blocking call");
  revoke_during(non_blocking, revoke_from_c, "a non-blocking call");
  revoke_during(persistent, revoke_from_c, "a persistent call");
  if (mpix_comm_revoke_ != NULL) revoke_during(blocking, revoke_from_fortran, "a call during Fortran's revoking");
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
