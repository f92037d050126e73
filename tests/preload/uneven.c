/* A program whose ranks have unlike parts in one call, all of which MPI takes: a share of nothing and no memory for it,
 * any number of elements with nothing in them, both halves in one array, counts of another group.
 *
 *   uneven 0          all of that
 *   uneven 0 let_go   a gatherv that its policy turns off: who has sent its part goes on
 *   uneven 0 bytes    MPI_BYTE on rank 0, numbers elsewhere, which MPI does not promise: the next call must not be
 * mixed up with that one, but may fail
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define ALLTOALLV_INIT MPIX_Alltoallv_init
#else
#define ALLTOALLV_INIT MPI_Alltoallv_init
#endif

enum { COUNT = 5000, MOST_RANKS = 16 };

static int rank, size, wrong, calls;

static void check(const char* what, const int* got, int n, int first, int step) {
  ++calls;
  for (int i = 0; i < n; ++i)
    if (got[i] != first + step * i && wrong++ < 5)
      fprintf(stderr, "rank %d, %s: element %d is %d, not %d\n", rank, what, i, got[i], first + step * i);
}

static int* count_up(int n, int first) {
  int* const x = malloc((size_t)n * sizeof(int));
  if (x == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 0; i < n; ++i) x[i] = first + i;
  return x;
}

/* The last rank gets nothing of the sum, and has no memory for that. */
static void a_share_of_nothing(void) {
  int counts[MOST_RANKS];
  for (int r = 0; r < size; ++r) counts[r] = r < size - 1 ? COUNT : 0;
  int* const x = count_up(COUNT * size, rank);
  for (int blocking = 0; blocking < 2; ++blocking) {
    int* const y = counts[rank] > 0 ? count_up(COUNT, -9) : NULL;
    MPI_Request request;
    if (blocking) {
      MPI_Reduce_scatter(x, y, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
      MPI_Ireduce_scatter(x, y, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check("reduce_scatter", y, counts[rank], size * COUNT * rank + size * (size - 1) / 2, size);
    free(y);
  }
  free(x);
}

/* The last rank sends seven elements with nothing in them. */
static void elements_of_nothing(void) {
  int counts[MOST_RANKS], places[MOST_RANKS];
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  for (int r = 0; r < size; ++r) counts[r] = r < size - 1 ? COUNT : 0, places[r] = r * COUNT;
  int *const x = count_up(COUNT, COUNT * rank), *const y = count_up(COUNT * size, -9);
  MPI_Allgatherv(x, rank < size - 1 ? COUNT : 7, rank < size - 1 ? MPI_INT : nothing, y, counts, places, MPI_INT,
                 MPI_COMM_WORLD);
  check("allgatherv", y, COUNT * (size - 1), 0, 1);
  MPI_Gatherv(x, rank < size - 1 ? COUNT : 7, rank < size - 1 ? MPI_INT : nothing, y, counts, places, MPI_INT, 0,
              MPI_COMM_WORLD);
  if (rank == 0) check("gatherv", y, COUNT * (size - 1), 0, 1);
  MPI_Type_free(&nothing);
  free(x);
  free(y);
}

/* Rank 0 has what it sends and what it gets in one array, told apart by displacements. */
static void halves_of_an_array(void) {
  int counts[MOST_RANKS], too[MOST_RANKS], from[MOST_RANKS],
      to[MOST_RANKS]; /* MPICH compares pointers to counts, too */
  for (int r = 0; r < size; ++r) {
    counts[r] = too[r] = COUNT;
    from[r] = r * COUNT;
    to[r] = (r + (rank == 0 ? size : 0)) * COUNT;
  }
  for (int form = 0; form < 3; ++form) {
    int *const x = count_up(2 * COUNT * size, rank * COUNT * size), *const other = count_up(COUNT * size, -9);
    int* const y = rank == 0 ? x : other;
    MPI_Request request;
    if (form == 0) {
      MPI_Alltoallv(x, counts, from, MPI_INT, y, too, to, MPI_INT, MPI_COMM_WORLD);
    } else if (form == 1) {
      MPI_Ialltoallv(x, counts, from, MPI_INT, y, too, to, MPI_INT, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      ALLTOALLV_INIT(x, counts, from, MPI_INT, y, too, to, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Request_free(&request);
    }
    for (int r = 0; r < size; ++r) check("alltoallv", y + to[r], COUNT, r * COUNT * size + rank * COUNT, 1);
    free(x);
    free(other);
  }
}

/* Between a large group and one rank: the many have one count, at the very end of their memory. */
static void counts_of_another_group(void) {
  const int many = rank < size - 1, page = (int)sysconf(_SC_PAGESIZE);
  MPI_Comm half, inter;
  int others;
  MPI_Comm_split(MPI_COMM_WORLD, many, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, many ? size - 1 : 0, 7, &inter);
  MPI_Comm_remote_size(inter, &others);
  char* const pages = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages + page, (size_t)page, PROT_NONE) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  int *const counts = (int*)(pages + page) - others, places[MOST_RANKS];
  for (int r = 0; r < others; ++r) counts[r] = COUNT, places[r] = r * COUNT;
  int *const x = count_up(COUNT, COUNT * rank), *const y = count_up(COUNT * size, -9);
  MPI_Allgatherv(x, COUNT, MPI_INT, y, counts, places, MPI_INT, inter);
  check("allgatherv between groups", y, COUNT * others, many ? COUNT * (size - 1) : 0, 1);
  munmap(pages, (size_t)page * 2);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
  free(x);
  free(y);
}

/* On rank 0 by absolute addresses, for which those must be small. */
static void at_the_bottom(void) {
  int counts[MOST_RANKS], places[MOST_RANKS];
  const size_t bytes = sizeof(int) * COUNT * (size_t)size;
  int* const y = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  int* const x = count_up(COUNT, COUNT * rank);
  const int first = rank == 0 ? (int)((size_t)y / sizeof(int)) : 0;
  for (int r = 0; r < size; ++r) counts[r] = r == 1 ? COUNT - 1 : COUNT, places[r] = first + r * COUNT;
  MPI_Allgatherv(x, counts[rank], MPI_INT, rank == 0 ? MPI_BOTTOM : y, counts, places, MPI_INT, MPI_COMM_WORLD);
  if (size > 1) y[2 * COUNT - 1] = 2 * COUNT - 1;
  check("allgatherv at MPI_BOTTOM", y, COUNT * size, 0, 1);
  memset(y, 0, bytes);
  MPI_Gatherv(x, counts[rank], MPI_INT, MPI_BOTTOM, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  if (size > 1) y[2 * COUNT - 1] = 2 * COUNT - 1;
  if (rank == 0) check("gatherv at MPI_BOTTOM", y, COUNT * size, 0, 1);
  free(x);
  munmap(y, bytes);
}

/* The root begins when another one, whose part is short, has gone on. */
static void let_go(void) {
  int counts[MOST_RANKS], places[MOST_RANKS], x[100], y[100 * MOST_RANKS];
  for (int r = 0; r < size; ++r) counts[r] = 100, places[r] = 100 * r;
  for (int i = 0; i < 100; ++i) x[i] = 100 * rank + i;
  for (int k = 0; k < 3; ++k) {
    if (rank == 0) MPI_Recv(NULL, 0, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Gatherv(x, 100, MPI_INT, y, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Send(NULL, 0, MPI_INT, 0, 3, MPI_COMM_WORLD);
    if (rank == 0) check("gatherv", y, 100 * size, 0, 1);
  }
}

static void bytes_here_and_numbers_there(void) {
  float first[400], second[400];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 400; ++i) first[i] = rank == 0 ? 1 : -1, second[i] = rank == 0 ? 2 : -2;
  const int one = rank == 0 ? MPI_Bcast(first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD)
                            : MPI_Bcast(first, 400, MPI_FLOAT, 0, MPI_COMM_WORLD);
  const int other = MPI_Bcast(second, 400, MPI_FLOAT, 0, MPI_COMM_WORLD);
  calls += 2;
  for (int i = 0; i < 400; ++i)
    wrong += (one == MPI_SUCCESS && first[i] != 1) || (other == MPI_SUCCESS && second[i] != 2);
  if (wrong != 0) fprintf(stderr, "rank %d: %g and %g with codes %d and %d\n", rank, first[9], second[9], one, other);
}

int main(int argc, char** argv) {
  int provided, all = 0;
  MPI_Comm results;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &results);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 2 && strcmp(argv[2], "let_go") == 0) {
    let_go();
  } else if (argc > 2) {
    bytes_here_and_numbers_there();
  } else {
    a_share_of_nothing();
    elements_of_nothing();
    halves_of_an_array();
    a_share_of_nothing(); /* whatever became of those, ranks have made as many */
    counts_of_another_group();
    at_the_bottom();
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, results);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
