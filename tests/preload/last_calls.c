/* A program whose functions that delete attributes call over the communicator that is being freed; many times, and the
 * communicators that come after those are served as ever.
 *
 *   last_calls TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 5000, KEPT = 20, ROUNDS = 15 }; /* more than the 256 communicators that Laconic has at a time */

static int rank, size, wrong, calls;
static double tolerance;
static float x[COUNT], y[COUNT];

static void call(MPI_Comm comm, int blocking) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (blocking)
    MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm);
  else
    MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ++calls;
  for (int i = 0; i < COUNT; ++i)
    if (fabs(y[i] - size * (double)x[i]) > tolerance + 1e-5 && wrong++ == 0)
      fprintf(stderr, "rank %d: %.9g, not %.9g\n", rank, y[i], size * (double)x[i]);
}

static int forget(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key, (void)extra;
  call(comm, value == NULL);
  return MPI_SUCCESS;
}

static int heard;

static void hear(MPI_Comm* comm, int* code, ...) { /* NOLINT */
  (void)comm, (void)code;
  ++heard;
}

/* It may have the handle of one that is gone: what the program says of its errors is said of this one. */
static void mistake(void) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  call(comm, 0);
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  if (MPI_Iallreduce(x, y, COUNT - (rank == 0), MPI_FLOAT, MPI_SUM, comm, &request) == MPI_SUCCESS)
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (heard == 0 && wrong++ == 0) fprintf(stderr, "rank %d: nobody heard of a mistake\n", rank);
}

int main(int argc, char** argv) {
  int provided, key, all = 0;
  MPI_Comm kept[KEPT];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  tolerance = argc > 1 ? size * atof(argv[1]) : 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int k = 0; k < KEPT; ++k) {
      MPI_Comm_dup(MPI_COMM_WORLD, &kept[k]);
      MPI_Comm_set_attr(kept[k], key, round % 2 == 0 ? NULL : &key);
      if (k % 2 == 0) call(kept[k], k % 4 == 0);
    }
    for (int k = 0; k < KEPT; ++k) MPI_Comm_free(&kept[k]);
  }
  mistake();
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
