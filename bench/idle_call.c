/* What a small MPI_Allreduce takes, of one float, in a loop: alone, or with liblaconic-mpi.so preloaded, where it is
 * not served. Knows nothing of Laconic.
 *
 *   mpiexec -n 2 [env LD_PRELOAD=... LACONIC_BOUND=1e-3] idle_call_<mpi> [CALLS]
 *
 * Prints the best of 20 loops over MPI_COMM_SELF (the cost of the call itself) and over all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double best_ns(MPI_Comm comm, int calls) {
  float mine = 1, sum = 0;
  double best = 1e9;
  for (int loop = 0; loop < 20; ++loop) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; ++i) MPI_Allreduce(&mine, &sum, 1, MPI_FLOAT, MPI_SUM, comm);
    const double ns = (MPI_Wtime() - start) / calls * 1e9;
    if (ns < best) best = ns;
  }
  return best;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? atoi(argv[1]) : 200000;
  if (calls < 10) MPI_Abort(MPI_COMM_WORLD, 2);
  const double self = best_ns(MPI_COMM_SELF, calls), world = best_ns(MPI_COMM_WORLD, calls / 10);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("one rank %.1f ns, all ranks %.1f ns\n", self, world);
  MPI_Finalize();
  return 0;
}
