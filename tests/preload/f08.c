/* What a Fortran program that uses mpi_f08 calls under MPICH: entry points that go round MPI's functions for C, but for
 * those with a buffer. All that it does is to be served: with f08.toml.
 *
 *   f08 TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include "f08.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20011, ROUNDS = 3 };

static int rank, size, wrong, calls;
static double tolerance;
static float x[COUNT], y[COUNT];
static const int count = COUNT, type = MPI_FLOAT, op = MPI_SUM, info = MPI_INFO_NULL;

static void check(const char* what) {
  int exact = 0;
  for (int i = 0; i < COUNT; ++i) {
    exact += y[i] == (float)size * x[i];
    if (fabs(y[i] - size * (double)x[i]) > tolerance + size * 1e-6 && wrong++ < 5)
      fprintf(stderr, "rank %d: %s: %.9g, not %.9g\n", rank, what, y[i], size * (double)x[i]);
    y[i] = -1;
  }
  ++calls;
  if (exact == COUNT && wrong++ < 20) fprintf(stderr, "rank %d: %s: is not served\n", rank, what);
}

/* Exported, so that it has a name. */
__attribute__((noinline)) void sums_of_fields(const int* comm);
void sums_of_fields(const int* comm) {
  int code, request;
  mpi_iallreduce_f08ts_(x, y, &count, &type, &op, comm, &request, &code);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("without blocking");
  mpi_allreduce_f08ts_(x, y, &count, &type, &op, comm, NULL);
  check("blocking");
  mpi_allreduce_init_f08ts_(x, y, &count, &type, &op, comm, &info, &request, &code);
  mpi_start_f08_(&request, &code);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("persistent");
  const int one = 1;
  mpi_startall_f08_(&one, &request, NULL);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("persistent, again");
  mpi_request_free_f08_(&request, &code);
}

static int copied, deleted;

static void copy_attribute(const int* comm, const int* keyval, MPI_Aint* extra, MPI_Aint* in, MPI_Aint* out, int* flag,
                           int* code) {
  copied += *comm == MPI_COMM_WORLD && *keyval != MPI_KEYVAL_INVALID && *extra == 17 && *in == 4;
  *out = *in + 1;
  *flag = 1;
  *code = MPI_SUCCESS;
}
static void delete_attribute(const int* comm, const int* keyval, MPI_Aint* value, MPI_Aint* extra, int* code) {
  deleted += *comm != MPI_COMM_WORLD && *keyval != MPI_KEYVAL_INVALID && *extra == 17 && *value == 5;
  *code = MPI_SUCCESS;
}

/* Attributes whose functions are Fortran's. */
static void attributes(const int* world) {
  int keyval, code = -1, copy, found = 0;
  MPI_Aint extra = 17;
  void* value = NULL;
  mpi_comm_create_keyval_(copy_attribute, delete_attribute, &keyval, &extra, &code);
  MPI_Comm_set_attr(*world, keyval, (void*)4);
  mpi_comm_dup_f08_(world, &copy, &code);
  MPI_Comm_get_attr(copy, keyval, &value, &found);
  mpi_comm_free_f08_(&copy, &code);
  if (code != MPI_SUCCESS || found == 0 || (MPI_Aint)value != 5 || copied != 1 || deleted != 1) {
    ++wrong;
    fprintf(stderr, "rank %d: an attribute of Fortran's: code %d, found %d, copied %d, deleted %d\n", rank, code, found,
            copied, deleted);
  }
}

int main(int argc, char** argv) {
  const int required = MPI_THREAD_MULTIPLE, world = MPI_COMM_WORLD, zero = 0, undefined = MPI_UNDEFINED;
  int provided, code;
  mpi_init_thread_f08_(&required, &provided, &code);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  for (int round = 0; round < ROUNDS; ++round) {
    int copy, part, none = -1;
    mpi_comm_dup_f08_(&world, &copy, &code);
    sums_of_fields(&copy);
    mpi_comm_split_f08_(&copy, &zero, &rank, &part, &code);
    sums_of_fields(&part);
    mpi_comm_split_f08_(&part, &undefined, &rank, &none, NULL);
    if (none != MPI_COMM_NULL && wrong++ == 0) fprintf(stderr, "rank %d: a communicator of nobody\n", rank);
    mpi_comm_free_f08_(&part, &code);
    mpi_comm_free_f08_(&copy, NULL);
  }
  attributes(&world);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, world);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  mpi_finalize_f08_(&code);
  return wrong != 0;
}
