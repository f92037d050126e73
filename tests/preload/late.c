/* A program whose rank 0 reads files for more than a minute while the others wait for it: longer than Laconic's own
 * calls would wait.
 *
 *   late TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  float x = 0, sum = 0;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double tolerance = argc > 1 ? size * atof(argv[1]) : 0;
  for (int round = 0; round < 2; ++round) {
    if (rank == 0 && round == 1) sleep(63);
    x = rank == 0 ? 1 : 2;
    MPI_Allreduce(&x, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (fabs(sum - (1 + 2 * (size - 1))) > tolerance + 1e-6) {
      fprintf(stderr, "rank %d: %g\n", rank, sum);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  if (rank == 0) printf("2 calls, all as they should be\n");
  MPI_Finalize();
  return 0;
}
