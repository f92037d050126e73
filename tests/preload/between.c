/* A program whose ranks give no datatypes where MPI does not look at them: at the root's side of calls between groups.
 *
 *   between 0
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20000 }; /* floats */

static int rank, wrong, calls;
static float x[COUNT], all[8 * COUNT];

static void check(const char* what, const float* got, float want) {
  ++calls;
  for (int i = 0; i < COUNT; ++i)
    if (got[i] != want + (float)i && wrong++ < 5)
      fprintf(stderr, "rank %d, %s: element %d is %g, not %g\n", rank, what, i, got[i], want + (float)i);
}

int main(int argc, char** argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int side = rank % 2; /* side 0 has the root: its first rank */
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 7, &between);
  int own = 0;
  MPI_Comm_rank(half, &own);
  const int root = side == 1 ? 0 : own == 0 ? MPI_ROOT : MPI_PROC_NULL;
  const MPI_Datatype none = (MPI_Datatype)0;
  for (int i = 0; i < COUNT; ++i) x[i] = (float)i;
  for (int i = 0; i < 8 * COUNT; ++i) all[i] = (float)(i % COUNT);

  if (root == MPI_ROOT)
    MPI_Gather(NULL, 0, none, all, COUNT, MPI_FLOAT, root, between), check("gather", all, 0);
  else
    MPI_Gather(side == 1 ? x : NULL, side == 1 ? COUNT : 0, side == 1 ? MPI_FLOAT : none, NULL, 0, none, root, between);

  if (root == MPI_ROOT)
    MPI_Scatter(all, COUNT, MPI_FLOAT, NULL, 0, none, root, between);
  else
    MPI_Scatter(NULL, 0, none, side == 1 ? x : NULL, side == 1 ? COUNT : 0, side == 1 ? MPI_FLOAT : none, root,
                between);
  if (side == 1) check("scatter", x, 0);

  if (root == MPI_ROOT)
    MPI_Reduce(NULL, x, COUNT, MPI_FLOAT, MPI_MAX, root, between), check("reduce", x, 0);
  else if (side == 1)
    MPI_Reduce(x, NULL, COUNT, MPI_FLOAT, MPI_MAX, root, between);
  else
    MPI_Reduce(NULL, NULL, 0, MPI_FLOAT, MPI_MAX, root, between);

  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && wrong == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
