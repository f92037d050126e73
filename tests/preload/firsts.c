/* A program whose communicators are used without blocking first, with other collectives of MPI right behind: what
 * Laconic makes for a communicator must come in between nowhere, and must not touch what the program keeps with it.
 *
 *   firsts TOLERANCE [ROUNDS]
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 700, WAYS = 6 };

static int rank, size, wrong, calls, copied;
static double tolerance;
static float x[COUNT], y[COUNT], z[COUNT];

static int copy(MPI_Comm comm, int key, void* extra, void* value, void* out, int* flag) {
  (void)comm, (void)key, (void)extra, (void)value, (void)out;
  ++copied;
  *flag = 0;
  return MPI_SUCCESS;
}

static void expect(int good, const char* what, int round) {
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
}

static int is_sum(const float* sum) {
  for (int i = 0; i < COUNT; ++i) {
    double want = 0;
    for (int r = 0; r < size; ++r) want += i + 100 * r;
    if (fabs(sum[i] - want) > tolerance + 1e-4 * want) return 0;
  }
  return 1;
}

/* Right behind the first call, which is under way. */
static void something_else(int way, MPI_Comm comm, int round) {
  MPI_Comm other = MPI_COMM_NULL;
  MPI_Request request;
  int one = 1, all = 0;
  switch (way) {
    case 0:
      MPI_Allreduce(x, z, COUNT, MPI_FLOAT, MPI_SUM, comm);
      expect(is_sum(z), "allreduce", round);
      return;
    case 1:
      MPI_Comm_dup(comm, &other);
      break;
    case 2:
      MPI_Comm_split(comm, 0, rank, &other);
      break;
    case 3:
      MPI_Ibarrier(comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      return;
    case 4:
      MPI_Iscan(&one, &all, 1, MPI_INT, MPI_SUM, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      expect(all == size - rank, "iscan", round);
      return;
    default:
      MPI_Comm_idup(comm, &other, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Allreduce(x, z, COUNT, MPI_FLOAT, MPI_SUM, other);
  expect(is_sum(z), "allreduce over a copy", round);
  MPI_Comm_free(&other);
}

int main(int argc, char** argv) {
  int provided, key;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? size * atof(argv[1]) : 0;
  const int rounds = argc > 2 ? atoi(argv[2]) : 8 * WAYS;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)(i + 100 * rank);
  MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comm); /* the other way round */
    const int way = round % WAYS;
    const int copies = way == 1 || way == 5; /* the program's own */
    MPI_Comm_set_attr(comm, key, &key);
    copied = 0;
    MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
    something_else(way, comm, round);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(is_sum(y), "iallreduce", round);
    expect(copied == copies, "attributes were copied behind the program's back", round);
    MPI_Comm_free(&comm);
  }
  /* Orders that differ from rank to rank, as they may where a call does not wait for the others. */
  for (int round = 0; round < rounds / 2; ++round) {
    MPI_Comm comm, other;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank == 0) MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
    if (rank != 0) MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(is_sum(y), "iallreduce, in another order on rank 0", round);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&other);
  }
  /* Rank 0 makes a communicator while the others wait for a call that it began before. */
  for (int round = 0; round < 4; ++round) {
    MPI_Comm comm, other;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank != 0) usleep(100000);
    MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
    if (rank != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(round % 2 == 0 ? MPI_COMM_WORLD : comm, &other);
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(is_sum(y), "iallreduce, before a communicator is made", round);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&other);
  }
  MPI_Comm_free_keyval(&key);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
