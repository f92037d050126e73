/* Several threads of a rank make communicators at the same time, of all ranks and of some, in an order that differs
 * from rank to rank, and what has one inside, and call over them. Open MPI makes one at a time: Laconic's own must not
 * come between.
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

enum { DUP, WINDOW, FILE_OF_ALL, KINDS };

static MPI_Comm made;
static MPI_Win window;
static void* memory;
static MPI_File file;
static char path[64];

/* A window and a file have a communicator of their own inside. */
static void* make_another(void* kind) {
  usleep(100000);
  if (*(int*)kind == DUP) MPI_Comm_dup(MPI_COMM_WORLD, &made);
  if (*(int*)kind == WINDOW) /* Open MPI 4 has no others for several threads */
    MPI_Win_allocate_shared(COUNT, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  if (*(int*)kind == FILE_OF_ALL)
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file);
  return NULL;
}

static void free_another(struct thread* t, int kind) {
  if (kind == DUP) {
    check(t, made, 1);
    MPI_Comm_free(&made);
  }
  if (kind == WINDOW) MPI_Win_free(&window);
  if (kind == FILE_OF_ALL) MPI_File_close(&file);
}

/* One makes something while another waits for a late rank, for which Laconic will make a communicator. */
static void wait_beside(struct thread* t, int round, int kind) {
  MPI_Comm comm;
  MPI_Request request;
  pthread_t other;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const int two = rank == round % size;
  if (two) pthread_create(&other, NULL, make_another, &kind);
  if (!two) usleep(200000);
  const int first = !two && round % 2 == 0;
  if (first) make_another(&kind);
  check(t, comm, 1);
  if (!two && !first) make_another(&kind);
  if (two) pthread_join(other, NULL);
  free_another(t, kind);
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
  snprintf(path, sizeof path, "/tmp/laconic-making.%d", (int)getpid());
  MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int kind = 0; kind < KINDS; ++kind)
    for (int round = 0; round < 4; ++round) wait_beside(&threads[0], round, kind);
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
