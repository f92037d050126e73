/* A program that a tool is linked into, which wraps some of MPI's functions and calls MPI's own from there: Laconic
 * never sees those. What a tool knows is older than MPI 4: it wraps what starts requests, not what makes persistent
 * collectives.
 *
 *   wrapped TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 30000, MANY = 300 };

static int started, freed;

int MPI_Start(MPI_Request* request) {
  ++started;
  return PMPI_Start(request);
}
int MPI_Startall(int count, MPI_Request requests[]) {
  started += count;
  return PMPI_Startall(count, requests);
}
int MPI_Comm_free(MPI_Comm* comm) {
  ++freed;
  return PMPI_Comm_free(comm);
}

int MPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* value) {
  return PMPI_T_pvar_read(session, handle, value);
}

static int rank, size, wrong, calls;
static double tolerance;
static float x[COUNT], sum[COUNT];

static void check(const char* what) {
  ++calls;
  for (int i = 0; i < COUNT; ++i) {
    if (fabs(sum[i] - size * sin(0.37 * i)) > size * tolerance + 1e-4 && wrong++ == 0)
      fprintf(stderr, "rank %d: %s: %g, not %g\n", rank, what, sum[i], size * sin(0.37 * i));
    sum[i] = 0;
  }
}

/* What Laconic knows of a variable, MPI's own functions do not. */
static void variables(void) {
  int provided, n = 0, ours = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_get_num(&n);
  for (int i = 0; i < n; ++i) {
    char name[256] = "";
    int room = sizeof name;
    if (MPI_T_pvar_get_info(i, name, &room, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_SUCCESS)
      ours += strncmp(name, "laconic_", 8) == 0;
  }
  MPI_T_finalize();
  ++calls;
  if (ours != 0 && wrong++ == 0) fprintf(stderr, "rank %d: %d variables that cannot be read\n", rank, ours);
}

/* More than are ever served at the same time. */
static void many(void) {
  int exact = 0;
  for (int round = 0; round < MANY; ++round) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < COUNT; ++i) sum[i] = rank == 0 ? x[i] : -1;
    MPI_Bcast(sum, COUNT, MPI_FLOAT, 0, comm);
    MPI_Ibcast(sum, COUNT, MPI_FLOAT, 0, comm, &request);
    if (round % 2 == 0) MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (round % 2 != 0) MPI_Comm_free(&comm);
    exact = 0;
    for (int i = 0; i < COUNT; ++i) exact += sum[i] == x[i];
  }
  ++calls;
  if (exact == COUNT && wrong++ == 0) fprintf(stderr, "rank %d: after many, a bcast is not served\n", rank);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  for (int round = 0; round < 3; ++round) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(x, sum, COUNT, MPI_FLOAT, MPI_SUM, comm);
    check("an allreduce");
    MPI_Iallreduce(x, sum, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check("an iallreduce");
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    MPI_Allreduce_init(x, sum, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check("a persistent allreduce");
    MPI_Startall(1, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check("a persistent allreduce, started with others");
    MPI_Request_free(&request);
    if (started != 2 * (round + 1) && wrong++ == 0) fprintf(stderr, "rank %d: the tool saw %d starts\n", rank, started);
#endif
    MPI_Comm_free(&comm);
    if (freed != round + 1 && wrong++ == 0) fprintf(stderr, "rank %d: the tool saw %d frees\n", rank, freed);
  }
  many();
  variables();
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
