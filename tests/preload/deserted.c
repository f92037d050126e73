/* A program whose last rank does not come to a call, and whose error handlers return: under LACONIC_TIMEOUT the others
 * hear of it in time, that rank too when it comes late, as often as they try; and other communicators go on.
 *
 *   deserted TOLERANCE [first]     (first: where one thread is let in, so that Laconic makes what it needs in the call)
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/sleeping.h"

enum { COUNT = 5000, MANY = 9000 }; /* MPICH has 8192 codes for errors */

static int rank, size, wrong, calls;
static double tolerance;
static float x[COUNT], y[COUNT];

static void expect(int good, const char* what, const char* text) {
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
}

static void expect_ours(int code, const char* what) {
  char text[MPI_MAX_ERROR_STRING] = "success";
  int length = 0;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  expect(strncmp(text, "Laconic: ", 9) == 0, what, text);
}

static void go_on(MPI_Comm comm) {
  for (int i = 0; i < COUNT; ++i) x[i] = (float)i;
  MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm);
  int good = 1;
  for (int i = 0; i < COUNT; ++i) {
    const double error = y[i] - (double)size * i;
    good = good && error <= tolerance && error >= -tolerance;
  }
  expect(good, "allreduce over a communicator that nobody has left", "a wrong sum");
}

static void blocking(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (rank < size - 1) {
    expect_ours(MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm), "allreduce without the last rank");
    for (int i = 0; i < MANY; ++i) expect_ours(MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm), "another one");
  }
  sleeping_barrier();
  if (rank == size - 1) expect_ours(MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm), "allreduce of a late rank");
  sleeping_barrier();
  MPI_Comm_free(&comm);
}

/* What Laconic needs for a communicator is not there yet: it waits for the same rank, and that rank then for those who
 * have given up. No plain call may come of it. */
static void first(int late_rank) {
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int late = 0; late < 2; ++late) {
    for (int i = 0; i < 3 && late == (rank == late_rank); ++i) {
      const int code = MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm);
      expect_ours(code, late ? "first allreduce, of a late rank" : "first allreduce, without the late rank");
    }
    sleeping_barrier();
  }
}

/* Of which nobody knows without asking whether they are served. */
static void irregular(void) {
  enum { FEW = 5 };
  MPI_Comm comm;
  int counts[16], places[16];
  static float all[16 * COUNT], got[16 * COUNT];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int r = 0; r < size; ++r) {
    counts[r] = COUNT;
    places[r] = r * COUNT;
  }
  for (int late = 0; late < 2; ++late) {
    for (int i = 0; i < FEW && late == (rank == size - 1); ++i) {
      const int code = MPI_Alltoallv(all, counts, places, MPI_FLOAT, got, counts, places, MPI_FLOAT, comm);
      expect_ours(code, late ? "alltoallv of a late rank" : "alltoallv without the last rank");
    }
    sleeping_barrier();
  }
  MPI_Comm_free(&comm);
}

static void nonblocking(void) {
  MPI_Comm comm;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (rank < size - 1) {
    int code = MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(code != MPI_SUCCESS && request == MPI_REQUEST_NULL, "iallreduce without the last rank", "success");
  }
  sleeping_barrier();
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  int provided;
  const int is_first = argc > 2 && strcmp(argv[2], "first") == 0;
  MPI_Init_thread(&argc, &argv, is_first ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* where MPI 4 says that errors of requests go */
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  go_on(MPI_COMM_WORLD);
  if (is_first) {
    first(size - 1);
    first(0);
  } else {
    first(0);
    blocking();
    irregular();
    nonblocking();
  }
  go_on(MPI_COMM_WORLD);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
