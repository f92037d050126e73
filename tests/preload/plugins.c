/* A program whose ranks find the same functions of MPI in different ways: one calls them itself, one has a plugin that
 * looks into its own libraries first (RTLD_DEEPBIND), one asks MPI's library. Calls must be served for all or for none.
 *
 *   plugins TOLERANCE [PLUGIN]
 *
 * Without a plugin all call MPI themselves. Linked with tool.c, it is also seen whether that has been called.
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20011, ROUNDS = 12 };

static int rank, wrong;

typedef int (*Bcast)(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm);
typedef int (*Dup)(MPI_Comm comm, MPI_Comm* made);
typedef int (*Free)(MPI_Comm* comm);

static void* find(void* library, const char* prefix, const char* function) {
  char name[64];
  snprintf(name, sizeof name, "%s%s", prefix, function);
  void* const found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    fprintf(stderr, "rank %d: %s: %s\n", rank, name, dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return found;
}

int main(int argc, char** argv) {
  static float x[COUNT], y[COUNT];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  const double tolerance = atof(argv[1]);
  void* const plugin = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND) : NULL;
  Dl_info mpi;
  dladdr(dlsym(RTLD_DEFAULT, "PMPI_Init"), &mpi); /* which Laconic leaves alone */
  void* const library = dlopen(mpi.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  for (int round = 0; round < ROUNDS; ++round) {
    Bcast bcast = MPI_Bcast;
    Dup dup = MPI_Comm_dup;
    Free release = MPI_Comm_free;
    const int way = argc > 2 ? (round + rank) % 3 : 0;
    if (way == 1) {
      *(void**)&bcast = find(plugin, "plugin_", "bcast");
      *(void**)&dup = find(plugin, "plugin_", "comm_dup");
      *(void**)&release = find(plugin, "plugin_", "comm_free");
    } else if (way == 2) {
      *(void**)&bcast = find(library, "MPI_", "Bcast");
      *(void**)&dup = find(library, "MPI_", "Comm_dup");
      *(void**)&release = find(library, "MPI_", "Comm_free");
    }
    MPI_Comm comm;
    int exact = 0;
    for (int i = 0; i < COUNT; ++i) y[i] = rank == 0 ? x[i] : -1;
    dup(MPI_COMM_WORLD, &comm);
    bcast(y, COUNT, MPI_FLOAT, 0, comm);
    release(&comm);
    for (int i = 0; i < COUNT; ++i) {
      exact += y[i] == x[i];
      if (fabs(y[i] - x[i]) > tolerance + 1e-6 && wrong++ == 0)
        fprintf(stderr, "rank %d, way %d: %.9g, not %.9g\n", rank, way, y[i], x[i]);
    }
    if (exact == COUNT && wrong++ < 20) fprintf(stderr, "rank %d, way %d: is not served\n", rank, way);
  }
  const int* const seen = dlsym(RTLD_DEFAULT, "tool_calls");
  if (seen != NULL && *seen < ROUNDS && wrong++ == 0) fprintf(stderr, "rank %d: the tool saw %d calls\n", rank, *seen);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", ROUNDS);
  MPI_Finalize();
  return wrong != 0;
}
