/* A program whose threads have little stack, enough for MPI: threads with small ones of their own, coroutines, and the
 * first thread under a small limit (ulimit -s).
 *
 *   stacks TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

enum { COUNT = 40007, SMALL = 64 << 10, FIRST_THREADS = 192 << 10, PAGE = 4096 };

static int rank, size, wrong, served, calls;
static double tolerance;
static float x[COUNT], y[COUNT], all[8 * COUNT];
static double dx[COUNT], dy[COUNT];
static long long ix[COUNT], iy[8 * COUNT];

static void fill(void) {
  for (int i = 0; i < COUNT; ++i) {
    x[i] = (float)(sin(0.01 * i) + 0.001 * (i * 79L % 101) + rank); /* noise, too */
    if (i % 1013 == 7) x[i] = 1e30F;                                /* and what no grid holds */
    dx[i] = cos(0.003 * i) * 1000;
    ix[i] = i * 31L % 977 + rank;
  }
}

/* Element i of an allreduce, or of a bcast from rank 0. */
static void check(const char* what, double have, double want, int i) {
  if (fabs(have - want) > tolerance + 1e-6 * (1 + fabs(want)) && wrong++ < 5)
    fprintf(stderr, "rank %d: %s: element %d is %.9g, not %.9g\n", rank, what, i, have, want);
  served += have != want;
}

static void call_everything(MPI_Comm comm) {
  memset(y, 0, sizeof y);
  MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm);
  for (int i = 0; i < COUNT; ++i) {
    if (i % 1013 == 7) continue;
    check("allreduce", y[i], size * (x[i] - (float)rank) + size * (size - 1) / 2.0, i);
  }
  MPI_Allreduce(dx, dy, COUNT, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < COUNT; ++i) check("allreduce of doubles", dy[i], size * dx[i], i);
  for (int i = 0; i < COUNT; ++i) dy[i] = rank == 0 ? dx[i] : -1;
  MPI_Bcast(dy, COUNT, MPI_DOUBLE, 0, comm);
  for (int i = 0; i < COUNT; ++i) check("bcast", dy[i], dx[i], i);
  MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_MAX, comm);
  MPI_Allgather(x, COUNT, MPI_FLOAT, all, COUNT, MPI_FLOAT, comm);
  MPI_Alltoall(x, COUNT / size, MPI_FLOAT, all, COUNT / size, MPI_FLOAT, comm);
  MPI_Reduce_scatter_block(dx, dy, COUNT / size, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Gather(ix, COUNT, MPI_LONG_LONG, iy, COUNT, MPI_LONG_LONG, 0, comm);
  for (int i = 0; rank == 0 && i < COUNT; ++i) check("gather", (double)iy[i], (double)ix[i], i);
  MPI_Request request;
  MPI_Iallreduce(dx, dy, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < COUNT; ++i) check("iallreduce", dy[i], size * dx[i], i);
  calls += 9;
}

/* So that its first call is made here, too. */
static void call_over_a_new_one(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  call_everything(comm);
  MPI_Comm_free(&comm);
}

static void* work(void* unused) {
  call_over_a_new_one();
  return unused;
}

/* Below it is a page that ends the program: it goes to the end of the memory. */
static char* new_stack(void) {
  char* memory = mmap(NULL, PAGE + SMALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE) != 0) exit(2);
  return memory + PAGE;
}

static void on_small_thread(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, new_stack(), SMALL);
  if (pthread_create(&thread, &attributes, work, NULL) != 0) exit(2);
  pthread_join(thread, NULL);
}

static void in_coroutine(void) {
  ucontext_t here, there;
  getcontext(&there);
  there.uc_stack.ss_sp = new_stack();
  there.uc_stack.ss_size = SMALL;
  there.uc_link = &here;
  makecontext(&there, call_over_a_new_one, 0);
  swapcontext(&here, &there);
}

/* The first thread has so much as the limit said when the program began. */
static void begin_again_with_a_small_limit(char** argv) {
  struct rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur == FIRST_THREADS) return;
  limit.rlim_cur = FIRST_THREADS;
  if (setrlimit(RLIMIT_STACK, &limit) == 0) execv("/proc/self/exe", argv);
  exit(2);
}

int main(int argc, char** argv) {
  begin_again_with_a_small_limit(argv);
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  fill();
  call_over_a_new_one();
  on_small_thread();
  in_coroutine();
  if (served == 0 && tolerance > 0 && wrong++ == 0) fprintf(stderr, "rank %d: nothing was served\n", rank);
  int sum = 0;
  MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && sum == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
