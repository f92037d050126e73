/* Several threads of a rank make communicators at the same time, of all ranks and of some, in an order that differs
 * from rank to rank, and call over them. Open MPI makes one at a time: Laconic's own must not come between.
 *
 *   making TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 5000, THREADS = 4, ROUNDS = 40 };

static int rank, size;
static double tolerance;
static float x[COUNT];
static MPI_Group everybody, some;

struct thread {
  pthread_t id;
  int number, wrong, calls;
  float y[COUNT];
};

static void check(struct thread* t, MPI_Comm comm, int blocking) {
  int own;
  MPI_Comm_rank(comm, &own);
  for (int i = 0; i < COUNT; ++i) t->y[i] = own == 0 ? x[i] : -1;
  if (blocking) {
    MPI_Bcast(t->y, COUNT, MPI_FLOAT, 0, comm);
  } else {
    MPI_Request request;
    MPI_Ibcast(t->y, COUNT, MPI_FLOAT, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  ++t->calls;
  for (int i = 0; i < COUNT; ++i)
    if (fabs(t->y[i] - x[i]) > tolerance + 1e-6 && t->wrong++ == 0) fprintf(stderr, "%.9g, not %.9g\n", t->y[i], x[i]);
}

static void make(struct thread* t, MPI_Group group, int round) {
  MPI_Comm comm;
  MPI_Comm_create_group(MPI_COMM_WORLD, group, t->number, &comm);
  for (int i = 0; i < 3; ++i) check(t, comm, (round + i) % 2);
  MPI_Comm_free(&comm);
}

static void* work(void* argument) {
  struct thread* const t = argument;
  for (int round = 0; round < ROUNDS; ++round) {
    if (rank < size - 1) make(t, some, round);
    make(t, everybody, round);
  }
  return NULL;
}

static MPI_Comm made;

static void* make_another(void* none) {
  usleep(100000);
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return none;
}

/* One makes a communicator while another waits for a late rank, for which Laconic will make one. */
static void wait_beside(struct thread* t, int round) {
  MPI_Comm comm;
  MPI_Request request;
  pthread_t other;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int two = rank == round % size;
  if (two) pthread_create(&other, NULL, make_another, NULL);
  if (!two) usleep(200000);
  const int first = !two && round % 2 == 0;
  if (first) make_another(NULL);
  check(t, comm, 1);
  if (!two && !first) make_another(NULL);
  if (two) pthread_join(other, NULL);
  check(t, made, 1);
  MPI_Comm_free(&made);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  static struct thread threads[THREADS];
  int provided, wrong = 0, calls = 0, all = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  MPI_Comm_group(MPI_COMM_WORLD, &everybody);
  MPI_Group_range_incl(everybody, 1, (int[1][3]){{0, size - 2, 1}}, &some);
  for (int round = 0; round < 6; ++round) wait_beside(&threads[0], round);
  for (int i = 0; i < THREADS; ++i) {
    threads[i].number = (i + rank) % THREADS;
    pthread_create(&threads[i].id, NULL, work, &threads[i]);
  }
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i].id, NULL);
    wrong += threads[i].wrong;
    calls += threads[i].calls;
  }
  MPI_Group_free(&some);
  MPI_Group_free(&everybody);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
