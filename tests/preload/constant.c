/* A program that broadcasts from memory that may only be read: contiguous, with gaps, by absolute addresses.
 *
 *   constant TOLERANCE [older]
 *
 * older: on a kernel that knows no MADV_POPULATE_WRITE, as those before Linux 5.14 and some sandboxes.
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNT = 20000 }; /* floats */

static int rank, wrong, calls, older;
static double tolerance;

/* In place of the C library's, for all of the process. */
int madvise(void* first, size_t bytes, int advice) {
  enum { POPULATE_WRITE = 23 };
  if (!older || advice != POPULATE_WRITE) return (int)syscall(SYS_madvise, first, bytes, advice);
  errno = EINVAL;
  return -1;
}

static float value(int i) { return (float)sin(i * 1e-3); }

/* x[0], x[stride] ...: what rank 0 has, and the others got. */
static void check(const char* what, const float* x, int stride) {
  ++calls;
  for (int i = 0; i < COUNT; ++i)
    if (!(fabs(x[(size_t)i * (size_t)stride] - value(i)) <= tolerance) && wrong++ < 5)
      fprintf(stderr, "rank %d, %s: element %d is %g, not %g\n", rank, what, i, x[(size_t)i * (size_t)stride],
              value(i));
}

/* Elements that are `stride` apart, in memory that rank 0 may write only if `writable`. */
static void broadcast(const char* what, int stride, int absolute, int writable, int blocking) {
  const size_t bytes = (size_t)COUNT * (size_t)stride * sizeof(float);
  float* const x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (x == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 0; i < COUNT; ++i) x[(size_t)i * (size_t)stride] = rank == 0 ? value(i) : -7;
  if (rank == 0 && !writable) mprotect(x, bytes, PROT_READ);
  MPI_Datatype vector, type;
  MPI_Type_vector(COUNT, 1, stride, MPI_FLOAT, &vector);
  if (absolute) {
    MPI_Aint place;
    const int one = 1;
    MPI_Get_address(x, &place);
    MPI_Type_create_hindexed(1, &one, &place, vector, &type);
  } else {
    MPI_Type_dup(vector, &type);
  }
  MPI_Type_commit(&type);
  MPI_Request request;
  if (blocking)
    MPI_Bcast(absolute ? MPI_BOTTOM : x, 1, type, 0, MPI_COMM_WORLD);
  else
    MPI_Ibcast(absolute ? MPI_BOTTOM : x, 1, type, 0, MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(what, x, stride);
  if (writable) { /* then the root has what the others have; ranks are even in number */
    float* const others = malloc(COUNT * sizeof(float));
    float* const mine = malloc(COUNT * sizeof(float));
    if (others == NULL || mine == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < COUNT; ++i) mine[i] = x[(size_t)i * (size_t)stride];
    MPI_Status status;
    MPI_Sendrecv(mine, COUNT, MPI_FLOAT, rank ^ 1, 5, others, COUNT, MPI_FLOAT, rank ^ 1, 5, MPI_COMM_WORLD, &status);
    for (int i = 0; i < COUNT; ++i)
      if (mine[i] != others[i] && wrong++ < 5) fprintf(stderr, "rank %d, %s: ranks differ at %d\n", rank, what, i);
    free(others);
    free(mine);
  }
  MPI_Type_free(&vector);
  MPI_Type_free(&type);
  munmap(x, bytes);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  older = argc > 2;
  for (int blocking = 0; blocking < 2; ++blocking)
    for (int writable = 0; writable < 2; ++writable)
      for (int absolute = 0; absolute < 2; ++absolute) {
        broadcast("contiguous", 1, absolute, writable, blocking);
        broadcast("with gaps", 3, absolute, writable, blocking);
      }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && wrong == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
