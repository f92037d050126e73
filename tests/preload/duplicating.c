/* Ranks begin to duplicate one communicator without blocking, and call over another one for the first time, in
 * different orders, as they may: the one waits for nobody. Open MPI makes one communicator at a time, so Laconic must
 * make none then; once what was made is in use, it may.
 *
 *   duplicating TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define BCAST_INIT MPIX_Bcast_init
#else
#define BCAST_INIT MPI_Bcast_init
#endif

enum { COUNT = 5000 };

static int rank, wrong, calls;
static double tolerance;
static float x[COUNT], y[COUNT];

static void fill(void) {
  for (int i = 0; i < COUNT; ++i) y[i] = rank == 0 ? x[i] : -1;
}

/* Whether a call was served: then it is not exact on the other ranks. */
static int check(const char* what) {
  int exact = 0;
  for (int i = 0; i < COUNT; ++i) {
    exact += y[i] == x[i];
    if (fabs(y[i] - x[i]) > tolerance + 1e-6 && wrong++ == 0) fprintf(stderr, "%s: %.9g, not %.9g\n", what, y[i], x[i]);
  }
  ++calls;
  return exact != COUNT;
}

static int bcast(const char* what, MPI_Comm comm) {
  fill();
  MPI_Bcast(y, COUNT, MPI_FLOAT, 0, comm);
  return check(what);
}

static int persistent_bcast(const char* what, MPI_Comm comm) {
  MPI_Request request;
  BCAST_INIT(y, COUNT, MPI_FLOAT, 0, comm, MPI_INFO_NULL, &request);
  fill();
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  return check(what);
}

static MPI_Comm copy_of(MPI_Comm comm, int blocking) {
  MPI_Comm made;
  MPI_Request request;
  if (blocking) {
    MPI_Comm_dup(comm, &made);
    return made;
  }
  MPI_Comm_idup(comm, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return made;
}

/* `first` begins to duplicate before the call, the others behind it. What it made is called over, or only freed. */
static void cross(int first, int blocking, int (*call)(const char*, MPI_Comm), const char* what, int used) {
  MPI_Comm made, other = copy_of(MPI_COMM_WORLD, blocking);
  MPI_Request request;
  if (rank == first) MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
  call(what, other);
  if (rank != first) MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (used) bcast("what was made", made);
  MPI_Comm_free(&made);
  int served = 0;
  for (int i = 0; i < 3; ++i) served += bcast("once it is made", other);
  if (served == 0 && rank != 0 && wrong++ < 20) fprintf(stderr, "rank %d: %s: never served again\n", rank, what);
  MPI_Comm_free(&other);
}

static MPI_Comm part_of(MPI_Comm comm, int split) {
  MPI_Comm made;
  if (!split) return copy_of(comm, 1);
  MPI_Comm_split(comm, 0, rank, &made);
  return made;
}

/* The same beside a call that makes a communicator. */
static void cross_making(int first, int split) {
  MPI_Comm made, other, old = copy_of(MPI_COMM_WORLD, 1);
  MPI_Request request;
  if (rank == first) MPI_Comm_idup(old, &made, &request);
  other = part_of(MPI_COMM_WORLD, split);
  if (rank != first) MPI_Comm_idup(old, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  bcast("what was made beside", other);
  bcast("what was made", made);
  int served = 0;
  for (int i = 0; i < 3; ++i) served += bcast("once more", other);
  if (served == 0 && rank != 0 && wrong++ < 20) fprintf(stderr, "rank %d: made beside: never served\n", rank);
  MPI_Comm_free(&other);
  MPI_Comm_free(&made);
  MPI_Comm_free(&old);
}

static int heard;

static void hear(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++heard;
}

/* One rank's is refused, and it goes on; its handler hears of it once. */
static void refuse(void) {
  MPI_Comm made, comm = copy_of(MPI_COMM_WORLD, 1);
  MPI_Request request;
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  heard = 0;
  if (rank == 1) MPI_Comm_idup(comm, NULL, &request);
  for (int i = 0; i < 3; ++i)
    if (!bcast("after a refused one", comm) && rank != 0 && wrong++ < 20)
      fprintf(stderr, "rank %d: not served\n", rank);
#ifdef OPEN_MPI /* MPICH looks at what is no communicator */
  if (rank == 2) MPI_Comm_idup((MPI_Comm)0, &made, &request);
  if (heard != (rank > 0) && wrong++ < 20) fprintf(stderr, "rank %d heard of %d errors\n", rank, heard);
#else
  (void)made;
  if (heard != (rank == 1) && wrong++ < 20) fprintf(stderr, "rank %d heard of %d errors\n", rank, heard);
#endif
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  for (int round = 0; round < 40; ++round) {
    const int first = round % 3, used = round / 3 % 2;
    cross(first, 1, bcast, "blocking, first over what MPI_Comm_dup made", used);
    cross(first, 0, bcast, "blocking, first over what MPI_Comm_idup made", used);
    cross(first, 1, persistent_bcast, "persistent", used);
    cross(first, 0, persistent_bcast, "persistent, over what MPI_Comm_idup made", used);
    cross_making(first, used);
    refuse();
  }
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
