/* Thousands of irregular calls, blocking or not, of parts that are uneven or empty, with gaps between them: first small
 * ones, then small and large ones in turn, then a large one now and then, then all sizes. Ranks ask each other about
 * few of them, by rules that want them large, or leave them to MPI.
 *
 *   irregular TOLERANCE CALLS SEED
 *
 * Prints "N calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40000, SMALL = 60, GAP = 2, UNTOUCHED = 0x5a, MOST_RANKS = 16 };

static int rank, size;
static unsigned long seed;
static double tolerance;
static long wrong;

/* The same on all ranks, which draw alike. */
static int draw(int below) {
  seed = seed * 6364136223846793005UL + 1442695040888963407UL;
  return (int)((seed >> 33) % (unsigned long)below);
}

static float value(int from, int to, int i) { return 3.0F * (float)from + (float)to + sinf(0.01F * (float)i); }

/* Of one call: elements for each pair of ranks. */
struct call {
  int counts[MOST_RANKS][MOST_RANKS];
};

static struct call draw_call(int phase) {
  struct call c = {{{0}}};
  const int is_large = phase == 0 ? 0 : phase == 1 ? draw(2) : phase == 2 ? draw(40) == 0 : draw(4) == 0;
  const int most = 1 + draw(is_large ? MOST : phase == 3 ? 3000 : SMALL);
  for (int from = 0; from < size; ++from)
    for (int to = 0; to < size; ++to) {
      const int share = draw(5);
      c.counts[from][to] = share == 0 ? 0 : share == 1 ? most / 2 : most;
    }
  return c;
}

/* Blocks for all ranks, one behind the other, with a gap behind each. */
struct blocks {
  int counts[MOST_RANKS], places[MOST_RANKS];
};
static struct blocks blocks_of(const struct call* c, int sends, int other) {
  struct blocks b = {{0}, {0}};
  for (int r = 0, at = 0; r < size; ++r) {
    b.counts[r] = other >= 0 ? c->counts[r][other] : sends ? c->counts[rank][r] : c->counts[r][rank];
    b.places[r] = at;
    at += b.counts[r] + GAP;
  }
  return b;
}
static void fill(float* x, int from, int to, int count) {
  for (int i = 0; i < count; ++i) x[i] = value(from, to, i);
}
static void check(const float* x, int from, int to, int count) {
  static const unsigned char untouched[GAP * sizeof(float)] = {UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED,
                                                               UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED};
  for (int i = 0; i < count; ++i) wrong += !(fabsf(x[i] - value(from, to, i)) <= tolerance + 1e-5);
  wrong += memcmp(x + count, untouched, sizeof untouched) != 0;
}

static void gather(const struct call* c, int root, int later, MPI_Comm comm, float* x, float* y, MPI_Request* done) {
  const struct blocks b = blocks_of(c, 0, 0);
  const int mine = b.counts[rank];
  fill(x, rank, 0, mine);
  if (later) MPI_Igatherv(x, mine, MPI_FLOAT, y, b.counts, b.places, MPI_FLOAT, root, comm, done);
  if (later) MPI_Wait(done, MPI_STATUS_IGNORE);
  if (!later) MPI_Gatherv(x, mine, MPI_FLOAT, y, b.counts, b.places, MPI_FLOAT, root, comm);
  for (int r = 0; rank == root && r < size; ++r) check(y + b.places[r], r, 0, b.counts[r]);
}
static void scatter(const struct call* c, int root, int later, MPI_Comm comm, float* x, float* y, MPI_Request* done) {
  const struct blocks b = blocks_of(c, 0, 0);
  const int mine = b.counts[rank];
  for (int r = 0; r < size; ++r) fill(x + b.places[r], r, 1, b.counts[r]);
  if (later) MPI_Iscatterv(x, b.counts, b.places, MPI_FLOAT, y, mine, MPI_FLOAT, root, comm, done);
  if (later) MPI_Wait(done, MPI_STATUS_IGNORE);
  if (!later) MPI_Scatterv(x, b.counts, b.places, MPI_FLOAT, y, mine, MPI_FLOAT, root, comm);
  check(y, rank, 1, mine);
}
static void exchange(const struct call* c, int later, MPI_Comm comm, float* x, float* y, MPI_Request* done) {
  const struct blocks out = blocks_of(c, 1, -1), in = blocks_of(c, 0, -1);
  for (int r = 0; r < size; ++r) fill(x + out.places[r], rank, r, out.counts[r]);
  if (later)
    MPI_Ialltoallv(x, out.counts, out.places, MPI_FLOAT, y, in.counts, in.places, MPI_FLOAT, comm, done);
  else
    MPI_Alltoallv(x, out.counts, out.places, MPI_FLOAT, y, in.counts, in.places, MPI_FLOAT, comm);
  if (later) MPI_Wait(done, MPI_STATUS_IGNORE);
  for (int r = 0; r < size; ++r) check(y + in.places[r], r, rank, in.counts[r]);
}

int main(int argc, char** argv) {
  int given = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t room = (size_t)size * (MOST + GAP) * sizeof(float);
  float *const x = malloc(room), *const y = malloc(room);
  if (argc < 4 || size > MOST_RANKS || x == NULL || y == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  tolerance = atof(argv[1]);
  const int calls = atoi(argv[2]);
  seed = strtoul(argv[3], NULL, 10);
  MPI_Comm comms[2];
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int k = 0; k < calls; ++k) {
    const struct call c = draw_call(4 * k / calls);
    const int kind = draw(3), root = draw(size), later = draw(3) == 0;
    const MPI_Comm comm = comms[draw(8) == 0];
    MPI_Request done = MPI_REQUEST_NULL;
    memset(y, UNTOUCHED, room);
    if (kind == 0) gather(&c, root, later, comm, x, y, &done);
    if (kind == 1) scatter(&c, root, later, comm, x, y, &done);
    if (kind == 2) exchange(&c, later, comm, x, y, &done);
  }
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && wrong == 0) printf("%d calls, all as they should be\n", calls);
  if (rank == 0 && wrong != 0) printf("%ld elements are wrong\n", wrong);
  free(x);
  free(y);
  MPI_Finalize();
  return wrong != 0;
}
