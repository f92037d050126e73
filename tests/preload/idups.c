/* A program that makes communicators without blocking, and goes on calling over the old one before they are there. Its
 * ranks see that at different times. What it makes is served from the first call on that blocks.
 *
 *   idups TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 5000, ROUNDS = 200 };

static int rank, wrong, calls;
static double tolerance;
static float x[COUNT], y[COUNT];

static void bcast(const char* what, MPI_Comm comm, int served) {
  int exact = 0;
  for (int i = 0; i < COUNT; ++i) y[i] = rank == 0 ? x[i] : -1;
  MPI_Bcast(y, COUNT, MPI_FLOAT, 0, comm);
  for (int i = 0; i < COUNT; ++i) {
    exact += y[i] == x[i];
    if (fabs(y[i] - x[i]) > tolerance + 1e-6 && wrong++ == 0) fprintf(stderr, "%s: %.9g, not %.9g\n", what, y[i], x[i]);
  }
  ++calls;
  if (served && exact == COUNT && wrong++ < 20) fprintf(stderr, "rank %d: %s: is not served\n", rank, what);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  bcast("before", MPI_COMM_WORLD, 1);
  MPI_Comm old;
  MPI_Comm_dup(MPI_COMM_WORLD, &old); /* never called over so far */
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Comm made;
    MPI_Request request;
    const MPI_Comm from = round % 2 == 0 ? MPI_COMM_WORLD : old;
    MPI_Comm_idup(from, &made, &request);
    for (int i = 0, seen; i < 50 * ((round + rank) % 3); ++i)
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &seen, MPI_STATUS_IGNORE);
    bcast("beside", from, 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bcast("what was made", made, 1);
    bcast("after", from, 0);
    MPI_Comm_free(&made);
  }
  MPI_Comm_free(&old);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
