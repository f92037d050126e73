/* A program that makes communicators in all ways that MPI has, and begins with a call that does not block: that must be
 * served, lossily, so that it shows. What is made without blocking is served from the first call on that blocks.
 *
 *   made TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 5000, MANY = 1200 };

static int rank, size, wrong, calls;
static double tolerance;
static float x[COUNT], y[COUNT];

static void check(const char* what, int round) {
  int exact = 0;
  for (int i = 0; i < COUNT; ++i) {
    exact += y[i] == x[i];
    if (fabs(y[i] - x[i]) > tolerance + 1e-6 && wrong++ == 0) fprintf(stderr, "%s: %.9g, not %.9g\n", what, y[i], x[i]);
  }
  ++calls;
  if (exact == COUNT && wrong++ < 20) fprintf(stderr, "rank %d: %s, call %d: is not served\n", rank, what, round);
}

static void use_some(const char* what, MPI_Comm comm, int members, int first) {
  int n = 0;
  if (comm != MPI_COMM_NULL) MPI_Comm_size(comm, &n);
  if (n != (rank < members ? members : 0) && wrong++ < 20) fprintf(stderr, "rank %d: %s: %d ranks\n", rank, what, n);
  for (int round = 0; round < 2 && n > 1; ++round) {
    MPI_Request request;
    for (int i = 0; i < COUNT; ++i) y[i] = rank == 0 ? x[i] : -1;
    if (first && round == 0) MPI_Bcast(y, COUNT, MPI_FLOAT, 0, comm);
    if (!first || round > 0) MPI_Ibcast(y, COUNT, MPI_FLOAT, 0, comm, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(what, round);
  }
  if (n > 0) MPI_Comm_free(&comm);
}
static void use(const char* what, MPI_Comm comm, int first) { use_some(what, comm, size, first); }

/* What has the first ranks alone. */
#define USE_SOME(what, members, ...)  \
  do {                                \
    MPI_Comm made = MPI_COMM_NULL;    \
    __VA_ARGS__;                      \
    use_some(what, made, members, 0); \
  } while (0)
#define USE(what, ...) USE_SOME(what, size, __VA_ARGS__)

static void in_c(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const int one[1] = {size}, fewer[1] = {size - 1}, no[1] = {0}, keep[1] = {1};
  int *ends = calloc((size_t)size, sizeof(int)), *edges = calloc(1, sizeof(int));
  MPI_Group all;
  MPI_Request request;
  MPI_Comm_group(world, &all);
  USE("dup", MPI_Comm_dup(world, &made));
  USE("dup_with_info", MPI_Comm_dup_with_info(world, MPI_INFO_NULL, &made));
  USE("create", MPI_Comm_create(world, all, &made));
  USE("create_group", MPI_Comm_create_group(world, all, 3, &made));
  USE("split", MPI_Comm_split(world, 0, rank, &made));
  USE("split_type", MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
  USE("cart_create", MPI_Cart_create(world, 1, one, no, 1, &made));
  USE("graph_create", MPI_Graph_create(world, size, ends, edges, 0, &made));
  /* MPICH 5 has the parent's group for these. */
  USE_SOME("a smaller grid", size - 1, MPI_Cart_create(world, 1, fewer, no, 0, &made));
  USE_SOME("a smaller graph", size - 1, MPI_Graph_create(world, size - 1, ends, edges, 0, &made));
  USE_SOME("a smaller grid's duplicate", size - 1, MPI_Comm grid; MPI_Cart_create(world, 1, fewer, no, 0, &grid);
           if (grid != MPI_COMM_NULL) MPI_Comm_dup(grid, &made), MPI_Comm_free(&grid));
  USE("dist_graph_create", MPI_Dist_graph_create(world, 0, ends, ends, ends, ends, MPI_INFO_NULL, 0, &made));
  USE("dist_graph_create_adjacent",
      MPI_Dist_graph_create_adjacent(world, 0, ends, ends, 0, ends, ends, MPI_INFO_NULL, 0, &made));
  USE("cart_sub", MPI_Comm grid; MPI_Cart_create(world, 1, one, no, 1, &grid); MPI_Cart_sub(grid, keep, &made);
      MPI_Comm_free(&grid));
  USE("intercomm_merge", MPI_Comm half; MPI_Comm between; MPI_Comm_split(world, rank == 0, rank, &half);
      MPI_Intercomm_create(half, 0, world, rank == 0 ? 1 : 0, 5, &between);
      MPI_Intercomm_merge(between, rank != 0, &made); MPI_Comm_free(&between); MPI_Comm_free(&half));
  MPI_Comm made;
  MPI_Comm_idup(world, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use("idup", made, 1);
  MPI_Group_free(&all);
  free(ends);
  free(edges);
}

/* MPICH has 2048 at a time: Laconic must not take half of them. What it has none for is MPI's own. */
static void many(void) {
  static MPI_Comm all[MANY];
  for (int i = 0; i < MANY; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &all[i]);
  for (int i = 0; i < MANY; ++i) {
    MPI_Request request;
    int one = rank == 0 ? i : -1;
    MPI_Ibcast(&one, 1, MPI_INT, 0, all[i], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += one != i;
    MPI_Comm_free(&all[i]);
  }
  USE("dup after many", MPI_Comm_dup(MPI_COMM_WORLD, &made));
}

/* Open MPI's Fortran goes round its C functions. Laconic's entry points are there without Fortran's libraries. */
static void in_fortran(void) {
#ifdef OPEN_MPI
  typedef void making(const void* comm, const void*, const void*, const void*, const void*, MPI_Fint* made,
                      MPI_Fint* code);
  typedef void dup(const void* comm, MPI_Fint* made, MPI_Fint* code);
  typedef void split(const void* comm, const void* color, const void* key, MPI_Fint* made, MPI_Fint* code);
  const MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), zero = 0, one = 1, yes = -1; /* as some compilers have it */
  MPI_Fint made = 0, code = 0;
  ((dup*)dlsym(RTLD_DEFAULT, "mpi_comm_dup_"))(&world, &made, &code);
  use("Fortran's dup", MPI_Comm_f2c(made), 0);
  ((dup*)dlsym(RTLD_DEFAULT, "ompi_comm_dup_f"))(&world, &made, &code);
  use("dup of mpi_f08", MPI_Comm_f2c(made), 0);
  ((split*)dlsym(RTLD_DEFAULT, "mpi_comm_split_"))(&world, &zero, &rank, &made, &code);
  use("Fortran's split", MPI_Comm_f2c(made), 0);
  ((making*)dlsym(RTLD_DEFAULT, "mpi_cart_create_"))(&world, &one, &size, &zero, &yes, &made, &code);
  use("Fortran's cart_create", MPI_Comm_f2c(made), 0);
#endif
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(0.37 * i);
  in_c();
  many();
  in_fortran();
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
