/* A program that sends in parts, as far as its file tells: Open MPI 5 is left alone with it.
 *
 *   parts
 *
 * Prints "calls, all as they should be" on rank 0. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  static int x[5000], y[5000];
  int rank;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) MPI_Psend_init(x, 1, 1, MPI_INT, rank, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request);
  MPI_Allreduce(x, y, 5000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("1 calls, all as they should be\n");
  MPI_Finalize();
  return 0;
}
