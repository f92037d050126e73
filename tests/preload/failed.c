/* A rank dies (Open MPI 5, started with fault tolerance): calls over its communicators end with MPI's own error, and
 * the others go on among themselves.
 *
 *   failed 0
 *
 * Prints "calls, all as they should be" on the lowest rank that is left, or what was wrong. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { COUNT = 20000 };

int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* made);

static int rank, size, wrong, calls, x[COUNT], y[COUNT];

static void expect(int good, const char* what) {
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "rank %d: %s\n", rank, what);
}

static int class_of(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

static int heard;

static void hear(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++heard;
}

static int sum_over(MPI_Comm comm) { return MPI_Allreduce(x, y, COUNT, MPI_INT, MPI_SUM, comm); }

int main(int argc, char** argv) {
  MPI_Comm comm, heard_of, left;
  MPI_Errhandler handler;
  MPI_Request request;
  int provided, all = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < COUNT; ++i) x[i] = i;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &heard_of);
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(heard_of, handler);
  expect(sum_over(comm) == MPI_SUCCESS, "a sum of all");
  expect(y[7] == 7 * size, "its value");
  if (rank == size - 1) raise(SIGKILL);
  expect(class_of(sum_over(comm)) == MPI_ERR_PROC_FAILED, "a sum without a rank");
  expect(class_of(sum_over(comm)) == MPI_ERR_PROC_FAILED, "and once more");
  MPI_Iallreduce(x, y, COUNT, MPI_INT, MPI_SUM, heard_of, &request);
  expect(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "a sum that does not block");
  expect(heard == 1, "a handler that is called once");
  for (int i = 2; i < 5; ++i) {
    expect(class_of(sum_over(heard_of)) == MPI_ERR_PROC_FAILED, "a sum whose error a handler hears of");
    expect(heard == i, "which is called once, too");
  }
  expect(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS, "shrinking");
  MPI_Comm_size(left, &ranks);
  expect(ranks == size - 1, "who is left");
  expect(sum_over(left) == MPI_SUCCESS, "a sum of who is left");
  expect(y[7] == 7 * ranks, "its value");
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, left);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&heard_of);
  MPI_Comm_free(&left);
  MPI_Comm_free(&comm);
  fflush(stdout);
  alarm(10); /* after a failure Open MPI 5 itself comes to no end now and then */
  MPI_Finalize();
  return wrong != 0;
}
