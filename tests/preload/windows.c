/* A program that asks for one thread, and has windows and calls that do not block. Open MPI 4 refuses to make windows
 * by osc/pt2pt (its one way between hosts without RDMA) where several threads are let in: so none are.
 *
 *   windows
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  static int x[5000], y[5000];
  int rank, wrong = 0, all = 0;
  MPI_Win window;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (MPI_Win_create(x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window) == MPI_SUCCESS)
    MPI_Win_free(&window);
  else
    wrong = 1;
  MPI_Iallreduce(x, y, 5000, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allreduce(x, y, 5000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("3 calls, all as they should be\n");
  MPI_Finalize();
  return wrong;
}
