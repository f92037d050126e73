/* With LACONIC_CHECK=1: mistakes of one rank in calls that have long gone plainly are errors on all of them, and one
 * that does not come is given up.
 *
 *   checked TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/sleeping.h"

enum { COUNT = 5000, ROUNDS = 200 };

static int rank, size, wrong, calls;
static float x[COUNT], y[COUNT];

static void expect(int good, const char* what) {
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "rank %d: %s\n", rank, what);
}

static int is_told(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (code == MPI_SUCCESS) return 0;
  MPI_Error_string(code, text, &length);
  return strncmp(text, "Laconic:", 8) == 0;
}

/* Calls of a kind that goes plainly sooner or later: on one host such short ones do. */
static void settle(MPI_Comm comm, double tolerance) {
  int good = 1;
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < COUNT; ++i) x[i] = (float)((i * 7 + rank * 13 + round) % 101);
    expect(MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm) == MPI_SUCCESS, "allreduce");
    for (int i = 0; i < COUNT; ++i) {
      double sum = 0;
      for (int r = 0; r < size; ++r) sum += (i * 7 + r * 13 + round) % 101;
      good = good && y[i] >= sum - 1.01 * tolerance && y[i] <= sum + 1.01 * tolerance;
    }
  }
  expect(good, "sums");
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const double tolerance = argc > 1 ? atof(argv[1]) : 0;
  const int last = rank == size - 1;
  settle(comm, tolerance);
  expect(is_told(MPI_Allreduce(x, y, COUNT, MPI_FLOAT, last ? MPI_MAX : MPI_SUM, comm)), "another operation");
  settle(comm, tolerance);
  expect(is_told(MPI_Allreduce(x, y, last ? COUNT - 1 : COUNT, MPI_FLOAT, MPI_SUM, comm)), "another count");
  settle(comm, tolerance);
  if (!last) expect(is_told(MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm)), "a rank that does not come");
  sleeping_barrier();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && wrong == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
