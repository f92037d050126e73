/* A program that starts others between its collectives: by fork, with children that leave by _exit and by exit, and by
 * system.
 *
 *   forks TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 20011 };

static int rank, size, wrong;
static double tolerance;
static float x[COUNT], y[COUNT];

static void reduce(const char* when) {
  MPI_Request request;
  MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allreduce(MPI_IN_PLACE, y, COUNT, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; ++i) {
    const double want = size * sin(1e-3 * i) + size * (size - 1) / 2.0;
    if (fabs(y[i] - want) > 2 * tolerance + 1e-4 && wrong++ == 0)
      fprintf(stderr, "rank %d: %s: element %d is %.9g, not %.9g\n", rank, when, i, y[i], want);
  }
}

/* A child that may not call MPI, but may do everything else. */
static void child(void (*leave)(int)) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    char* p = malloc(1 << 20);
    const int code = p != NULL && getpid() != 0 ? 7 : 1;
    free(p);
    leave(code);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
    fprintf(stderr, "rank %d: a child ended with status %d\n", rank, status);
    ++wrong;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  tolerance = atof(argv[1]);
  for (int i = 0; i < COUNT; ++i) x[i] = (float)(sin(1e-3 * i) + rank);

  child(_exit);
  reduce("after a child before any collective");
  child(_exit);
  reduce("after a child that left by _exit");
  child(exit);
  reduce("after a child that left by exit");
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  unsetenv("LD_PRELOAD"); /* a shell has no sanitizer's runtime */
#endif
#endif
  if (system("exit 7") != 7 << 8) ++wrong;
  reduce("after a command");

  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", 8);
  MPI_Finalize();
  return all != 0;
}
