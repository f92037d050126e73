/* A program that frees what a call was given as soon as MPI lets it: derived datatypes, its own operation, the
 * communicator; right after it began a call without blocking, or made a persistent one. What it then makes may well get
 * the same handles.
 *
 *   frees TOLERANCE [ROUNDS [late]]    late: communicators are freed when their calls are done
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 600, KINDS = 6 };

static int rank, size, wrong, calls;
static double tolerance;
static int *counts, *places;

static const char* const names[KINDS] = {"ibcast",     "iallgather", "igatherv of what Laconic does not understand",
                                         "ialltoallv", "iallreduce", "iallreduce by an operation of the program's"};

/* Every second element of `base`. */
static MPI_Datatype spread(MPI_Datatype base) {
  MPI_Datatype vector, type;
  MPI_Aint low, extent;
  MPI_Type_vector(COUNT, 1, 2, base, &vector);
  MPI_Type_get_extent(base, &low, &extent);
  MPI_Type_create_resized(vector, 0, 2 * COUNT * extent, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&vector);
  return type;
}

/* Other types at the handles of those that are gone: three times as far apart. */
static void reuse(MPI_Datatype* others, int n, MPI_Datatype base) {
  for (int i = 0; i < n; ++i) {
    MPI_Type_vector(COUNT / 3, 1, 5, base, &others[i]);
    MPI_Type_commit(&others[i]);
  }
}

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((float*)inout)[i] += ((float*)in)[i];
}

static double value(int r, int block, int i) { return 50 * r + 7 * block + i; }

static void expect(double got, double want, double allowed, int kind, const char* form, int round) {
  if (fabs(got - want) <= allowed) return;
  if (wrong++ < 5)
    fprintf(stderr, "rank %d, round %d: %s%s: %.9g, not %.9g\n", rank, round, form, names[kind], got, want);
}

struct buffers {
  float *x, *y;
  short *s, *t;
};

static void fill(const struct buffers* b) {
  for (int r = 0; r < size; ++r) {
    for (int i = 0; i < COUNT; ++i) {
      const int at = 2 * (r * COUNT + i);
      b->x[at] = (float)value(rank, r, i);
      b->s[at] = (short)value(rank, r, i);
      b->x[at + 1] = b->y[at] = b->y[at + 1] = -1;
      b->s[at + 1] = b->t[at] = b->t[at + 1] = -1;
    }
  }
}

static void check(int kind, const char* form, int round, const struct buffers* b) {
  ++calls;
  const int blocks = kind == 1 || kind == 2 || kind == 3 ? size : 1;
  for (int r = 0; r < blocks; ++r) {
    for (int i = 0; i < COUNT; ++i) {
      const int at = 2 * (r * COUNT + i);
      if (kind == 0) expect(b->x[at], value(0, 0, i), tolerance, kind, form, round);
      if (kind == 1) expect(b->y[at], value(r, 0, i), tolerance, kind, form, round);
      if (kind == 2 && rank == 0) expect(b->t[at], value(r, 0, i), 0, kind, form, round);
      if (kind == 3) expect(b->y[at], value(r, rank, i), tolerance, kind, form, round);
      if (kind == 1 || kind == 3) expect(b->y[at + 1], -1, 0, kind, form, round);
      if (kind == 2) expect(b->t[at + 1], -1, 0, kind, form, round);
      double sum = 0;
      for (int q = 0; q < size; ++q) sum += value(q, 0, i);
      if (kind >= 4) expect(b->y[i], sum, size * tolerance, kind, form, round);
    }
  }
}

#if MPI_VERSION >= 4 /* Open MPI 5, which does not say so, forgets the types of persistent calls by itself */
#define HAS_PERSISTENT 1
#define BEGIN(Name, name, ...) \
  (persistent ? MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, request) : MPI_I##name(__VA_ARGS__, request))
#else
#define HAS_PERSISTENT 0
#define BEGIN(Name, name, ...) MPI_I##name(__VA_ARGS__, request)
#endif

static void begin(int kind, int persistent, const struct buffers* b, MPI_Comm comm, MPI_Request* request) {
  MPI_Datatype type = spread(kind == 2 ? MPI_SHORT : MPI_FLOAT), other = spread(kind == 2 ? MPI_SHORT : MPI_FLOAT);
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  (void)persistent;
  switch (kind) {
    case 0:
      BEGIN(Bcast, bcast, b->x, 1, type, 0, comm);
      break;
    case 1:
      BEGIN(Allgather, allgather, b->x, 1, type, b->y, 1, other, comm);
      break;
    case 2:
      BEGIN(Gatherv, gatherv, b->s, 1, type, b->t, counts, places, other, 0, comm);
      break;
    case 3:
      BEGIN(Alltoallv, alltoallv, b->x, counts, places, type, b->y, counts, places, other, comm);
      break;
    default: /* reductions are defined for MPI's own types only */
      for (int i = 0; i < COUNT; ++i) b->x[i] = (float)value(rank, 0, i);
      BEGIN(Allreduce, allreduce, b->x, b->y, COUNT, MPI_FLOAT, kind == 4 ? MPI_SUM : own, comm);
  }
  MPI_Op_free(&own);
  MPI_Type_free(&type);
  MPI_Type_free(&other);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? atof(argv[1]) + 1e-5 * atof(argv[1]) : 0;
  const int rounds = argc > 2 ? atoi(argv[2]) : 4 * KINDS;
  const int late = argc > 3;
  const size_t n = 2 * (size_t)size * COUNT;
  counts = malloc((size_t)size * sizeof *counts);
  places = malloc((size_t)size * sizeof *places);
  for (int r = 0; r < size; ++r) {
    counts[r] = 1;
    places[r] = r;
  }
  struct buffers b[2];
  for (int k = 0; k < 2; ++k) {
    b[k] = (struct buffers){malloc(n * sizeof(float)), malloc(n * sizeof(float)), malloc(n * sizeof(short)),
                            malloc(n * sizeof(short))};
  }
  for (int persistent = 0; persistent <= HAS_PERSISTENT; ++persistent) {
    const char* const form = persistent ? "persistent " : "";
    for (int round = 0; round < rounds; ++round) {
      const int kind = round % KINDS;
      MPI_Comm comm;
      MPI_Request requests[2];
      MPI_Datatype others[8];
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      for (int k = 0; k < 2; ++k) {
        fill(&b[k]);
        begin(kind, persistent, &b[k], comm, &requests[k]);
        reuse(others + 4 * k, 4, MPI_DOUBLE);
      }
      if (!late && (round + (persistent ? round / KINDS : 0)) % 3 == 0) MPI_Comm_free(&comm);
      if (persistent) MPI_Startall(2, requests);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      for (int k = 0; k < 2; ++k) check(kind, form, round, &b[k]);
      for (int k = 0; k < 8; ++k) MPI_Type_free(&others[k]);
      if (persistent) MPI_Request_free(&requests[0]);
      if (persistent) MPI_Request_free(&requests[1]);
      if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    }
  }
  for (int k = 0; k < 2; ++k) {
    free(b[k].x);
    free(b[k].y);
    free(b[k].s);
    free(b[k].t);
  }
  free(counts);
  free(places);
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
