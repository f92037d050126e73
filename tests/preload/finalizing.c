/* What MPI calls when it is finalised, a function that deletes an attribute of MPI_COMM_SELF, still makes calls of all
 * kinds.
 *
 *   finalizing TOLERANCE [past]
 *
 * past: by PMPI_Finalize, as tools do that are linked into the program.
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define ALLREDUCE_INIT MPIX_Allreduce_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#endif

enum { COUNT = 20000, REPEATS = 30 };

static int rank, size, wrong, calls;
static double tolerance;
static float x[COUNT], y[COUNT];
static MPI_Request kept, also_kept;
static float z[COUNT];
static int past;

static void check(const char* what) {
  int good = 1;
  for (int i = 0; i < COUNT; ++i) {
    const double off = y[i] - (size * (double)(i % 100) + size * (size - 1) / 2.0);
    good = good && off <= tolerance + 1e-6 && off >= -tolerance - 1e-6;
    y[i] = -1;
  }
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "rank %d: %s\n", rank, what);
}

static void sums(void) {
  MPI_Request request;
  MPI_Start(&kept);
  MPI_Wait(&kept, MPI_STATUS_IGNORE);
  check("a persistent sum");
  MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check("a sum");
  MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("a sum that does not block");
}

/* Persistent calls begin in any order, and wait for nobody. */
static void crosswise(void) {
  MPI_Request* const order[2] = {rank % 2 == 0 ? &kept : &also_kept, rank % 2 == 0 ? &also_kept : &kept};
  int token = 0;
  MPI_Start(order[0]);
  MPI_Start(order[1]);
  MPI_Wait(&kept, MPI_STATUS_IGNORE);
  check("a persistent sum of two");
  MPI_Wait(&also_kept, MPI_STATUS_IGNORE);
  memcpy(y, z, sizeof y);
  check("another, begun in another order");
  if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Start(&kept);
  if (rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  MPI_Wait(&kept, MPI_STATUS_IGNORE);
  check("a persistent sum that begins later elsewhere");
}

/* Rank 1 begins its part only when rank 0 has begun its own: a call that does not block waits for nobody. */
static void in_turn(void) {
  MPI_Request request;
  int token = 0;
  if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("a sum that begins later elsewhere");
}

static int at_the_end(MPI_Comm self, int key, void* value, void* extra) {
  (void)self, (void)key, (void)value, (void)extra;
  /* The others have not called MPI_Finalize so far. */
  for (int other = 1; rank == 0 && other < size; ++other) MPI_Send(NULL, 0, MPI_INT, other, 1, MPI_COMM_WORLD);
  for (int i = 0; i < REPEATS; ++i) sums();
  in_turn();
  if (!past) crosswise();
  MPI_Request_free(&kept);
  MPI_Request_free(&also_kept);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  return MPI_SUCCESS;
}

/* Of two more attributes, deleted before: the last set first, once each, whatever they return. */
static int deleted[3], order;

static int note(MPI_Comm self, int key, void* value, void* which) {
  (void)self, (void)key, (void)value;
  deleted[*(int*)which] = ++order;
  return MPI_SUCCESS;
}

static int at_the_end_of_all(MPI_Comm self, int key, void* value, void* extra) {
  if (deleted[2] != 1 || deleted[1] != 2 || deleted[0] != 0) fprintf(stderr, "rank %d: the order\n", rank), ++wrong;
  return at_the_end(self, key, value, extra);
}

static void set(MPI_Comm_delete_attr_function* function, void* extra) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, function, &key, extra);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Comm_free_keyval(&key);
}

int main(int argc, char** argv) {
  static int which[3] = {0, 1, 2};
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  past = argc > 2;
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)(i % 100 + rank);
  set(note, &which[0]);
  set(at_the_end_of_all, NULL);
  set(note, &which[1]);
  set(note, &which[2]);
  ALLREDUCE_INIT(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
  ALLREDUCE_INIT(x, z, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &also_kept);
  sums();
  in_turn();
  crosswise();
  if (rank != 0) MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  past ? PMPI_Finalize() : MPI_Finalize();
  return wrong != 0;
}
