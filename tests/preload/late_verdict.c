/* A program under a launcher that takes long to say who is here, as one may that serves thousands: when rank 0 has
 * asked for all, the others have given up. Then rank 0 must have, too.
 *
 *   late_verdict TOLERANCE     (with LACONIC_TIMEOUT=1; of no use, for nothing is served)
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { COUNT = 30000 };

static int asked;

int PMPI_Lookup_name(const char* name, MPI_Info info, char* port) {
  int (*ask)(const char*, MPI_Info, char*) =
      (int (*)(const char*, MPI_Info, char*))dlsym(RTLD_NEXT, "PMPI_Lookup_name");
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) usleep(1500000);
  ++asked;
  return ask(name, info, port);
}

int main(int argc, char** argv) {
  static float x[COUNT], sum[COUNT];
  int rank, size, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < COUNT; ++i) x[i] = (float)(i % 1000) + 0.25F;
  MPI_Allreduce(x, sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; ++i) wrong += sum[i] != (float)size * x[i]; /* exact, as MPI has it */
  if (asked == 0) {
    fprintf(stderr, "rank %d: nobody asked the launcher\n", rank);
    wrong = 1;
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf(wrong != 0 ? "%d wrong\n" : "calls, all as they should be\n", wrong);
  MPI_Finalize();
  return wrong != 0;
}
