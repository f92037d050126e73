/* A program that has nothing of Fortran, but opens a plugin that does, as Python does with modules of f2py.
 *
 *   hidden TOLERANCE PLUGIN
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20011 };

int main(int argc, char** argv) {
  static float x[COUNT];
  int rank, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  void* const plugin = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
  void (*hidden)(MPI_Fint* comm) = NULL;
  if (plugin != NULL) *(void**)&hidden = dlsym(plugin, "hidden");
  if (hidden == NULL) {
    fprintf(stderr, "rank %d: %s\n", rank, dlerror());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Fint made;
  hidden(&made);
  MPI_Comm comm = MPI_Comm_f2c(made);
  for (int i = 0; i < COUNT; ++i) x[i] = rank == 0 ? (float)sin(0.37 * i) : -1;
  MPI_Bcast(x, COUNT, MPI_FLOAT, 0, comm);
  for (int i = 0; i < COUNT; ++i) wrong += fabs(x[i] - sin(0.37 * i)) > atof(argv[1]) + 1e-6;
  MPI_Comm_free(&comm);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf(all == 0 ? "2 calls, all as they should be\n" : "%d elements are wrong\n", all);
  MPI_Finalize();
  return wrong != 0;
}
