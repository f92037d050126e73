/* A program whose ranks say the same thing by different types: MPI asks only that what they are made of be the same.
 *
 *   signatures 0
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 600 }; /* pairs */

static int rank, size, wrong, calls;

static void check(const char* what, const int* got, int n, int first) {
  ++calls;
  for (int i = 0; i < n; ++i)
    if (got[i] != first + i && wrong++ < 5)
      fprintf(stderr, "rank %d, %s: element %d is %d, not %d\n", rank, what, i, got[i], first + i);
}

static void count_up(int* x, int n, int first) {
  for (int i = 0; i < n; ++i) x[i] = first + i;
}

/* Rank 0 says 2 COUNT numbers by `type`, so many of it, the others by MPI_INT. */
static void broadcast(const char* what, int elements, MPI_Datatype type) {
  int x[2 * COUNT];
  for (int blocking = 0; blocking < 2; ++blocking) {
    MPI_Request request;
    const int n = rank == 0 ? elements : 2 * COUNT;
    const MPI_Datatype t = rank == 0 ? type : MPI_INT;
    count_up(x, 2 * COUNT, rank == 0 ? 7 : -9999);
    if (blocking)
      MPI_Bcast(x, n, t, 0, MPI_COMM_WORLD);
    else
      MPI_Ibcast(x, n, t, 0, MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(what, x, 2 * COUNT, 7);
  }
}

/* Odd ranks say it by pairs. */
static void all_kinds_of_pairs(void) {
  const MPI_Datatype type = rank % 2 != 0 ? MPI_2INT : MPI_INT, other = rank % 2 == 0 ? MPI_2INT : MPI_INT;
  const int n = rank % 2 != 0 ? COUNT : 2 * COUNT, m = rank % 2 == 0 ? COUNT : 2 * COUNT;
  int* const own = malloc(2 * COUNT * sizeof(int));
  int* const all = malloc(2 * COUNT * sizeof(int) * (size_t)size);
  int* const back = malloc(2 * COUNT * sizeof(int) * (size_t)size);
  if (own == NULL || all == NULL || back == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  count_up(own, 2 * COUNT, 2 * COUNT * rank);
  MPI_Allgather(own, n, type, all, m, other, MPI_COMM_WORLD);
  check("allgather", all, 2 * COUNT * size, 0);
  count_up(all, 2 * COUNT * size, -1);
  MPI_Gather(own, n, type, all, m, other, size - 1, MPI_COMM_WORLD);
  if (rank == size - 1) check("gather", all, 2 * COUNT * size, 0);
  count_up(all, 2 * COUNT * size, 0);
  MPI_Scatter(all, n, type, own, m, other, 0, MPI_COMM_WORLD);
  check("scatter", own, 2 * COUNT, 2 * COUNT * rank);
  for (int r = 0; r < size; ++r) count_up(all + 2 * COUNT * r, 2 * COUNT, 10000 * rank + 2 * COUNT * r);
  MPI_Alltoall(all, n, type, back, m, other, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) check("alltoall", back + 2 * COUNT * r, 2 * COUNT, 10000 * r + 2 * COUNT * rank);
  free(own);
  free(all);
  free(back);
}

static MPI_Datatype with_something_empty(MPI_Datatype empty, int of_it) {
  const int lengths[3] = {of_it, 2 * COUNT, of_it};
  const MPI_Aint places[3] = {0, 0, 8 * COUNT};
  const MPI_Datatype types[3] = {empty, MPI_INT, empty};
  MPI_Datatype made;
  MPI_Type_create_struct(3, lengths, places, types, &made);
  MPI_Type_commit(&made);
  return made;
}

/* None of one type is none of another. */
static void nothing(void) {
  double x = 5;
  MPI_Bcast(&x, 0, rank == 0 ? MPI_CHAR : rank == 1 ? MPI_DOUBLE : MPI_INT, 0, MPI_COMM_WORLD);
  ++calls;
  wrong += x != 5;
}

int main(int argc, char** argv) {
  MPI_Datatype empty, none, type;
  int provided, all = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Type_contiguous(0, MPI_CHAR, &empty);
  MPI_Type_commit(&empty);
  MPI_Type_vector(3, 0, 1, MPI_DOUBLE, &none);
  MPI_Type_commit(&none);
  broadcast("pairs", COUNT, MPI_2INT);
  broadcast("with empty parts", 1, type = with_something_empty(empty, 2));
  MPI_Type_free(&type);
  broadcast("with empty vectors", 1, type = with_something_empty(none, 1));
  MPI_Type_free(&type);
  broadcast("with none of another type", 1, type = with_something_empty(MPI_DOUBLE, 0));
  MPI_Type_free(&type);
  all_kinds_of_pairs();
  nothing();
  broadcast("after that", 2 * COUNT, MPI_INT);
  MPI_Type_free(&none);
  MPI_Type_free(&empty);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
