/* A program that sends what it has to the root in each step, after small gathervs that say what it is, which no rule
 * asks for. The large ones must be served, with one small one between them or with fifty.
 *
 *   headers TOLERANCE [alone]
 *
 * "alone": without the small ones.
 *
 * Prints "N calls, all as they should be" on rank 0, or what was wrong, with exit status 1; the report says what was
 * served. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { FEW = 10, MANY = 60000, STEPS = 40, MOST_RANKS = 16 };

static int rank, size, wrong, calls;

static float value(int r, int i) { return sinf(1e-3f * (float)i) + (float)r; }

static void gather(const float* x, int n, float* all, double tolerance, MPI_Comm comm) {
  int counts[MOST_RANKS], places[MOST_RANKS];
  for (int r = 0; r < size; ++r) counts[r] = n, places[r] = r * n;
  ++calls;
  MPI_Gatherv(x, n, MPI_FLOAT, all, counts, places, MPI_FLOAT, 0, comm);
  for (int i = 0; rank == 0 && i < n * size; i += 7) wrong += fabs(all[i] - value(i / n, i % n)) > tolerance + 1e-6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double tolerance = argc > 1 ? atof(argv[1]) : 0;
  float* x = malloc(MANY * sizeof *x);
  float* all = malloc((size_t)size * MANY * sizeof *all);
  if (x == NULL || all == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 0; i < MANY; ++i) x[i] = value(rank, i);
  const int small_ones[] = {1, 3, 14, 50}; /* the last are more than ranks ask about at first */
  for (int k = 0; k < 4; ++k) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int step = 0; step < STEPS; ++step) {
      for (int s = 0; argc < 3 && s < small_ones[k]; ++s) gather(x, FEW, all, tolerance, comm);
      gather(x, MANY, all, tolerance, comm);
    }
    MPI_Comm_free(&comm);
  }
  if (rank == 0 && wrong == 0) printf("%d calls, all as they should be\n", calls);
  if (rank == 0 && wrong != 0) printf("%d elements are wrong\n", wrong);
  free(x);
  free(all);
  MPI_Finalize();
  return wrong != 0;
}
