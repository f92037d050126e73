/* A program whose threads call MPI at once, each on a communicator of its own.
 *
 *   threads TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 12, COUNT = 20011 };

static int rank, size;
static double tolerance;

struct job {
  int thread;
  MPI_Comm comm;
  int wrong;
  float x[COUNT], y[COUNT];
};

static float value(int r, int thread, int i) { return sinf(1e-3F * (float)i) + (float)(r + 10 * thread); }

static void check(struct job* job, const char* what) {
  for (int i = 0; i < COUNT; ++i) {
    double want = 0;
    for (int r = 0; r < size; ++r) want += value(r, job->thread, i);
    if (fabs(job->y[i] - want) <= tolerance + 1e-4) continue;
    if (job->wrong++ == 0)
      fprintf(stderr, "rank %d, thread %d: %s: element %d is %.9g, not %.9g\n", rank, job->thread, what, i, job->y[i],
              want);
  }
}

static void* work(void* argument) {
  struct job* job = argument;
  for (int i = 0; i < COUNT; ++i) job->x[i] = value(rank, job->thread, i);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < COUNT; ++i) job->y[i] = -1;
    if (round % 3 == 0) {
      MPI_Allreduce(job->x, job->y, COUNT, MPI_FLOAT, MPI_SUM, job->comm);
      check(job, "allreduce");
    } else if (round % 3 == 1) {
      MPI_Request request;
      MPI_Iallreduce(job->x, job->y, COUNT, MPI_FLOAT, MPI_SUM, job->comm, &request);
      for (int done = 0; !done; sched_yield()) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      check(job, "iallreduce");
    } else {
      MPI_Comm mine; /* communicators come and go meanwhile */
      MPI_Comm_dup(job->comm, &mine);
      MPI_Reduce(job->x, job->y, COUNT, MPI_FLOAT, MPI_SUM, 0, mine);
      MPI_Bcast(job->y, COUNT, MPI_FLOAT, 0, mine);
      MPI_Comm_free(&mine);
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 2 || provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) fprintf(stderr, "threads: want TOLERANCE, and an MPI that threads may call at once\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  tolerance = atof(argv[1]);

  struct job* jobs = calloc(THREADS, sizeof *jobs);
  pthread_t threads[THREADS];
  if (jobs == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int t = 0; t < THREADS; ++t) {
    jobs[t].thread = t;
    MPI_Comm_dup(MPI_COMM_WORLD, &jobs[t].comm);
  }
  for (int t = 0; t < THREADS; ++t) pthread_create(&threads[t], NULL, work, &jobs[t]);
  int wrong = 0, all = 0;
  for (int t = 0; t < THREADS; ++t) {
    pthread_join(threads[t], NULL);
    wrong += jobs[t].wrong;
    MPI_Comm_free(&jobs[t].comm);
  }
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", THREADS * (ROUNDS + ROUNDS / 3));
  free(jobs);
  MPI_Finalize();
  return all != 0;
}
