/* A program that ends MPI while it exits itself, and makes calls there: as an exit handler does, or a static object's
 * destructor. By then others' static objects may be gone.
 *
 *   exits TOLERANCE handler|destructor
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 30000 };

static int rank, size, in_destructor, wrong, calls;
static double tolerance;
static float x[COUNT], sum[COUNT];
#if MPI_VERSION >= 4
static MPI_Request persistent = MPI_REQUEST_NULL; /* never freed */
#endif

static void check(const char* what) {
  int exact = 0;
  for (int i = 0; i < COUNT; ++i) {
    const double want = size * sin(0.37 * i);
    exact += sum[i] == (float)want;
    if (fabs(sum[i] - want) > size * tolerance + 1e-4 && wrong++ == 0)
      fprintf(stderr, "rank %d: %s: %g, not %g\n", rank, what, sum[i], want);
    sum[i] = 0;
  }
  if (exact == COUNT && wrong++ == 0) fprintf(stderr, "rank %d: %s: is not served\n", rank, what);
  ++calls;
}

static void all_calls(void) {
  MPI_Request request;
  MPI_Comm made;
  MPI_Allreduce(x, sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check("allreduce");
  MPI_Iallreduce(x, sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("iallreduce");
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Allreduce(x, sum, COUNT, MPI_FLOAT, MPI_SUM, made);
  check("allreduce on a communicator just made");
  MPI_Comm_free(&made);
#if MPI_VERSION >= 4
  if (persistent == MPI_REQUEST_NULL)
    MPI_Allreduce_init(x, sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
  MPI_Start(&persistent);
  MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  check("a persistent allreduce");
#endif
}

static void end(void) {
  int all = 0;
  all_calls();
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  fflush(stdout);
  if (wrong != 0) _exit(1);
}

static void handler(void) {
  if (!in_destructor) end();
}
__attribute__((destructor)) static void destructor(void) {
  if (in_destructor) end();
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  atexit(handler); /* before the first call; but MPICH 5 takes who ends it after its own handler for a rank that died */
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  in_destructor = argc > 2 && strcmp(argv[2], "destructor") == 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  all_calls();
  return 0;
}
