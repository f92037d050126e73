/* Communicators that only MPICH has: one whose ranks are threads, and one that is tied to a stream. What is done over
 * them is MPI's own.
 *
 *   extensions 0
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { COUNT = 20000, THREADS = 2 };

static atomic_int wrong, calls;

static void expect(int good, const char* what) {
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "%s\n", what);
}

/* Sums, and a copy of rank 0's. */
static void collectives(MPI_Comm comm, int* x, int* y, const char* what) {
  int rank, size, good = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < COUNT; ++i) x[i] = rank + i;
  MPI_Allreduce(x, y, COUNT, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < COUNT; ++i) good = good && y[i] == size * i + size * (size - 1) / 2;
  MPI_Bcast(x, COUNT, MPI_INT, 0, comm);
  for (int i = 0; i < COUNT; ++i) good = good && x[i] == i;
  expect(good, what);
}

#ifdef MPIX_STREAM_NULL
static int numbers[2 * THREADS][COUNT];
static MPI_Comm threads;

static void* one_of_the_threads(void* which) {
  int *const x = numbers[2 * *(int*)which], *const y = numbers[2 * *(int*)which + 1];
  MPI_Comm copy;
  MPIX_Threadcomm_start(threads);
  collectives(threads, x, y, "over threads");
  MPI_Comm_dup(threads, &copy);
  collectives(copy, x, y, "over a duplicate of them");
  MPI_Comm_free(&copy);
  MPIX_Threadcomm_finish(threads);
  return NULL;
}

static void over_threads(void) {
  pthread_t thread[THREADS];
  int which[THREADS];
  MPIX_Threadcomm_init(MPI_COMM_WORLD, THREADS, &threads);
  for (int i = 0; i < THREADS; ++i) {
    which[i] = i;
    pthread_create(&thread[i], NULL, one_of_the_threads, &which[i]);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(thread[i], NULL);
  MPIX_Threadcomm_free(&threads);
}

/* Of all ranks, or of rank 0 alone. */
static void over_a_stream(int of_all) {
  MPIX_Stream stream = MPIX_STREAM_NULL;
  MPI_Comm comm, copy;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (of_all || rank == 0) MPIX_Stream_create(MPI_INFO_NULL, &stream);
  MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, &comm);
  collectives(comm, numbers[0], numbers[1], "over a stream");
  MPI_Comm_dup(comm, &copy);
  collectives(copy, numbers[0], numbers[1], "over a duplicate of what has a stream");
  MPI_Comm_free(&copy);
  MPI_Comm_free(&comm);
  if (stream != MPIX_STREAM_NULL) MPIX_Stream_free(&stream);
}
#else /* MPICH before 4.2 */
static int numbers[2][COUNT];
static void over_threads(void) {}
static void over_a_stream(void) {}
#endif

int main(int argc, char** argv) {
  int provided, rank, all = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  over_threads();
  over_a_stream(1);
  over_a_stream(0);
  collectives(MPI_COMM_WORLD, numbers[0], numbers[1], "over all");
  int mine = wrong;
  MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", (int)calls);
  MPI_Finalize();
  return mine != 0;
}
