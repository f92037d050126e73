/* What a gatherv, scatterv and alltoallv take that are best left to MPI, with liblaconic-mpi.so preloaded and a rule
 * that asks for them, beside MPI's own by their PMPI names: in turn, in one run. Knows nothing of Laconic.
 *
 *   mpiexec -n 2 env LD_PRELOAD=... LACONIC_BOUND=1e-3rel irregular_call_<mpi> [WARM_UP]
 *
 * Prints microseconds a call on the slowest rank: medians of 21 batches of each way, after WARM_UP calls (3000). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 21, MOST = 1 << 18, SMALLEST = 1 << 10 };

struct work {
  int ranks, count;
  float *one, *all;
  int *counts, *places;
};

static void gather(const struct work* w) {
  MPI_Gatherv(w->one, w->count, MPI_FLOAT, w->all, w->counts, w->places, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void plain_gather(const struct work* w) {
  PMPI_Gatherv(w->one, w->count, MPI_FLOAT, w->all, w->counts, w->places, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void scatter(const struct work* w) {
  MPI_Scatterv(w->all, w->counts, w->places, MPI_FLOAT, w->one, w->count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void plain_scatter(const struct work* w) {
  PMPI_Scatterv(w->all, w->counts, w->places, MPI_FLOAT, w->one, w->count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void exchange(const struct work* w) {
  MPI_Alltoallv(w->one, w->counts, w->places, MPI_FLOAT, w->all, w->counts, w->places, MPI_FLOAT, MPI_COMM_WORLD);
}
static void plain_exchange(const struct work* w) {
  PMPI_Alltoallv(w->one, w->counts, w->places, MPI_FLOAT, w->all, w->counts, w->places, MPI_FLOAT, MPI_COMM_WORLD);
}

static double batch(void (*call)(const struct work*), const struct work* w, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call(w);
  double us = (MPI_Wtime() - start) / calls * 1e6;
  PMPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return us;
}

static int by_size(const void* a, const void* b) {
  const double d = *(const double*)a - *(const double*)b;
  return (d > 0) - (d < 0);
}

static void compare(const char* name, void (*call)(const struct work*), void (*plain)(const struct work*),
                    const struct work* w, int warm_up) {
  double ours[BATCHES], its[BATCHES];
  int rank = 0;
  const int calls = w->count > 20000 ? 50 : 300;
  for (int i = 0; i < warm_up; ++i) call(w);
  for (int b = 0; b < BATCHES; ++b) {
    its[b] = batch(plain, w, calls);
    ours[b] = batch(call, w, calls);
  }
  qsort(ours, BATCHES, sizeof *ours, by_size);
  qsort(its, BATCHES, sizeof *its, by_size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    printf("%-9s %5d KiB from each  plain %8.2f us  preloaded %8.2f us  %.3f\n", name, w->count / 256, its[BATCHES / 2],
           ours[BATCHES / 2], ours[BATCHES / 2] / its[BATCHES / 2]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct work w = {0};
  const int warm_up = argc > 1 ? atoi(argv[1]) : 3000;
  MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
  const size_t ranks = (size_t)w.ranks;
  w.one = malloc(ranks * MOST * sizeof *w.one);
  w.all = malloc(ranks * MOST * sizeof *w.all);
  w.counts = malloc(ranks * sizeof *w.counts);
  w.places = malloc(ranks * sizeof *w.places);
  if (w.one == NULL || w.all == NULL || w.counts == NULL || w.places == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  for (size_t i = 0; i < ranks * MOST; ++i) w.one[i] = w.all[i] = (float)(rand() % 1000) * (float)(i % 97);
  for (w.count = SMALLEST; w.count <= MOST; w.count *= 4) {
    for (int r = 0; r < w.ranks; ++r) w.counts[r] = w.count, w.places[r] = r * w.count;
    compare("gatherv", gather, plain_gather, &w, warm_up);
    compare("scatterv", scatter, plain_scatter, &w, warm_up);
    compare("alltoallv", exchange, plain_exchange, &w, warm_up);
  }
  MPI_Finalize();
  return 0;
}
