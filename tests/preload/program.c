/* A program that knows nothing of Laconic: every collective, in every form that MPI has, on all types and layouts that
 * matter; each result is compared with what MPI promises.
 *
 *   program TOLERANCE [ELEMENTS]      largest error allowed in floating-point results; elements a rank
 *
 * Prints what MPI it runs over and "N calls, all as they should be" on rank 0, or what was wrong, with exit status 1.
 */
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/sleeping.h"

static int rank, size, root, wrong, calls;
static double tolerance;
static size_t count = 20011; /* odd, and large enough to be served */
static const char* doing = "";

/* What rank r has at i: smooth, so that it compresses. The sines once, for all the values that are compared with it. */
static double* sines;
static double value(int r, size_t i) { return sines[i] + r; }

static void expect(double got, double want, double allowed, size_t i) {
  if (fabs(got - want) <= allowed) return;
  if (wrong++ < 5) fprintf(stderr, "rank %d: %s: element %zu is %.9g, not %.9g\n", rank, doing, i, got, want);
}

/* Five decimals: f32 results of sums over few ranks. */
static double allowed(void) { return tolerance + 1e-5; }

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static const char* const form_names[] = {"", "i", "persistent "};

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name, ...) MPIX_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define FORMS_OF(library) (strstr(library, "Open MPI v4") != NULL ? FORMS : PERSISTENT)
#else
#define INIT(name, ...) MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#define FORMS_OF(library) FORMS
#endif

/* CALL(form, Allreduce, allreduce, arguments): makes the call in that form, persistent ones twice, and waits for it. */
#define CALL(form, Name, name, ...)                     \
  do {                                                  \
    MPI_Request request = MPI_REQUEST_NULL;             \
    ++calls;                                            \
    if ((form) == BLOCKING) MPI_##Name(__VA_ARGS__);    \
    if ((form) == NONBLOCKING) {                        \
      MPI_I##name(__VA_ARGS__, &request);               \
      MPI_Wait(&request, MPI_STATUS_IGNORE);            \
    }                                                   \
    if ((form) == PERSISTENT) {                         \
      INIT(Name, __VA_ARGS__);                          \
      for (int again = 0; again < 2; ++again) {         \
        MPI_Start(&request);                            \
        int done = 0;                                   \
        while (!done) {                                 \
          MPI_Test(&request, &done, MPI_STATUS_IGNORE); \
          sched_yield();                                \
        }                                               \
      }                                                 \
      MPI_Request_free(&request);                       \
    }                                                   \
  } while (0)

static void* memory(size_t bytes) {
  void* p = malloc(bytes + 1);
  if (p == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  memset(p, 0x5a, bytes + 1);
  return p;
}

static void make_sines(size_t n) {
  sines = memory(n * sizeof *sines);
  for (size_t i = 0; i < n; ++i) sines[i] = sin(1e-3 * (double)i);
}

static float* operand(size_t n) {
  float* x = memory(n * sizeof *x);
  for (size_t i = 0; i < n; ++i) x[i] = (float)value(rank, i);
  return x;
}

static double sum_at(size_t i) { return size * sines[i] + size * (size - 1) / 2.0; }

static void reductions(enum form form) {
  const int n = (int)count;
  float* x = operand(count * (size_t)size);
  float* y = memory(count * (size_t)size * sizeof *y);
  doing = "allreduce";
  CALL(form, Allreduce, allreduce, x, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(y[i], sum_at(i), size * allowed(), i);
  if (form != PERSISTENT) { /* which, in place and twice, would sum twice */
    doing = "allreduce in place";
    memcpy(y, x, count * sizeof *y);
    CALL(form, Allreduce, allreduce, MPI_IN_PLACE, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; ++i) expect(y[i], sum_at(i), size * allowed(), i);
    doing = "reduce in place";
    memcpy(y, x, count * sizeof *y);
    CALL(form, Reduce, reduce, rank == root ? MPI_IN_PLACE : (void*)y, rank == root ? y : NULL, n, MPI_FLOAT, MPI_MAX,
         root, MPI_COMM_WORLD);
    if (rank == root)
      for (size_t i = 0; i < count; ++i) expect(y[i], value(size - 1, i), allowed(), i);
    doing = "reduce_scatter_block in place";
    memcpy(y, x, count * (size_t)size * sizeof *y);
    CALL(form, Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; ++i) expect(y[i], sum_at((size_t)rank * count + i), size * allowed(), i);
  }
  doing = "reduce";
  CALL(form, Reduce, reduce, x, y, n, MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD);
  if (rank == root)
    for (size_t i = 0; i < count; ++i) expect(y[i], sum_at(i), size * allowed(), i);
  doing = "reduce_scatter_block";
  CALL(form, Reduce_scatter_block, reduce_scatter_block, x, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(y[i], sum_at((size_t)rank * count + i), size * allowed(), i);
  doing = "reduce_scatter";
  int* counts = memory((size_t)size * sizeof *counts);
  size_t first = 0, total = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = r == 1 ? 0 : n - r;
    if (r < rank) first += (size_t)counts[r];
    total += (size_t)counts[r];
  }
  CALL(form, Reduce_scatter, reduce_scatter, x, y, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < (size_t)counts[rank]; ++i) expect(y[i], sum_at(first + i), size * allowed(), i);
  free(counts);
  free(x);
  free(y);
  (void)total;
}

static void movement(enum form form) {
  const int n = (int)count;
  const size_t all = count * (size_t)size;
  float* x = operand(all);
  float* y = memory(all * sizeof *y);
  doing = "bcast";
  memcpy(y, x, count * sizeof *y);
  CALL(form, Bcast, bcast, y, n, MPI_FLOAT, root, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(y[i], value(root, i), allowed(), i);
  doing = "allgather";
  CALL(form, Allgather, allgather, x, n, MPI_FLOAT, y, n, MPI_FLOAT, MPI_COMM_WORLD);
  for (size_t i = 0; i < all; ++i) expect(y[i], value((int)(i / count), i % count), allowed(), i);
  doing = "allgather in place";
  memset(y, 0, all * sizeof *y);
  memcpy(y + (size_t)rank * count, x, count * sizeof *y);
  CALL(form, Allgather, allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, y, n, MPI_FLOAT, MPI_COMM_WORLD);
  for (size_t i = 0; i < all; ++i) expect(y[i], value((int)(i / count), i % count), 2 * allowed(), i);
  doing = "gather";
  CALL(form, Gather, gather, x, n, MPI_FLOAT, rank == root ? y : NULL, n, MPI_FLOAT, root, MPI_COMM_WORLD);
  if (rank == root)
    for (size_t i = 0; i < all; ++i) expect(y[i], value((int)(i / count), i % count), allowed(), i);
  doing = "scatter";
  CALL(form, Scatter, scatter, rank == root ? x : NULL, n, MPI_FLOAT, y, n, MPI_FLOAT, root, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(y[i], value(root, (size_t)rank * count + i), allowed(), i);
  doing = "scatter in place";
  CALL(form, Scatter, scatter, x, n, MPI_FLOAT, rank == root ? MPI_IN_PLACE : (void*)y, n, MPI_FLOAT, root,
       MPI_COMM_WORLD);
  if (rank != root)
    for (size_t i = 0; i < count; ++i) expect(y[i], value(root, (size_t)rank * count + i), allowed(), i);
  doing = "alltoall";
  CALL(form, Alltoall, alltoall, x, n, MPI_FLOAT, y, n, MPI_FLOAT, MPI_COMM_WORLD);
  for (size_t i = 0; i < all; ++i)
    expect(y[i], value((int)(i / count), (size_t)rank * count + i % count), allowed(), i);
  free(x);
  free(y);
}

/* Counts that differ, gaps between the parts, the last part first, a rank with nothing. */
static void irregular(enum form form) {
  int* counts = memory((size_t)size * sizeof *counts);
  int* places = memory((size_t)size * sizeof *places);
  size_t room = 0;
  for (int r = size - 1; r >= 0; --r) {
    counts[r] = r == 1 && size > 2 ? 0 : (int)count - 3 * r;
    places[r] = (int)room;
    room += (size_t)counts[r] + 2;
  }
  const int n = counts[rank];
  float* x = operand(room > count * (size_t)size ? room : count * (size_t)size);
  float* y = memory(room * sizeof *y);
  static const float gap = -77;
#define CHECK_PARTS(source, index)                                                                      \
  for (int r = 0; r < size; ++r) {                                                                      \
    const float* part = y + places[r];                                                                  \
    for (size_t i = 0; i < (size_t)counts[r]; ++i) expect(part[i], value(source, index), allowed(), i); \
    expect(part[counts[r]], gap, 0, (size_t)counts[r]);                                                 \
  }
#define CLEAR() \
  for (size_t i = 0; i < room; ++i) y[i] = gap
  CLEAR();
  doing = "allgatherv";
  CALL(form, Allgatherv, allgatherv, x, n, MPI_FLOAT, y, counts, places, MPI_FLOAT, MPI_COMM_WORLD);
  CHECK_PARTS(r, i)
  CLEAR();
  doing = "gatherv";
  CALL(form, Gatherv, gatherv, x, n, MPI_FLOAT, y, counts, places, MPI_FLOAT, root, MPI_COMM_WORLD);
  if (rank == root) CHECK_PARTS(r, i)
  doing = "scatterv";
  CLEAR();
  CALL(form, Scatterv, scatterv, x, counts, places, MPI_FLOAT, y, n, MPI_FLOAT, root, MPI_COMM_WORLD);
  for (size_t i = 0; i < (size_t)n; ++i) expect(y[i], value(root, (size_t)places[rank] + i), allowed(), i);
  expect(y[n], gap, 0, (size_t)n);
  doing = "alltoallv"; /* everybody sends n to each */
  int* sends = memory((size_t)size * sizeof *sends);
  int* starts = memory((size_t)size * sizeof *starts);
  for (int r = 0; r < size; ++r) {
    sends[r] = n;
    starts[r] = r;
  }
  CLEAR();
  CALL(form, Alltoallv, alltoallv, x, sends, starts, MPI_FLOAT, y, counts, places, MPI_FLOAT, MPI_COMM_WORLD);
  CHECK_PARTS(r, (size_t)rank + i)
  free(sends);
  free(starts);
  free(counts);
  free(places);
  free(x);
  free(y);
}

static void integers(void) {
  int* x = memory(count * sizeof *x);
  int* y = memory(count * sizeof *y);
  for (size_t i = 0; i < count; ++i) x[i] = (int)i * (rank + 1);
  doing = "allreduce of integers";
  ++calls;
  MPI_Allreduce(x, y, (int)count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(y[i], (double)i * size * (size + 1) / 2, 0, i);
  doing = "product of integers"; /* never served */
  ++calls;
  for (size_t i = 0; i < count; ++i) x[i] = 2;
  MPI_Allreduce(x, y, (int)count, MPI_INT, MPI_PROD, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(y[i], 1 << size, 0, i);
  free(x);
  free(y);
}

static void twice(void* in, void* inout, int* n, MPI_Datatype* type) {
  const float* a = in;
  float* b = inout;
  (void)type;
  for (int i = 0; i < *n; ++i) b[i] = a[i] + b[i];
}

/* Doubles, complex numbers, a program's own operation; a column of a matrix, a struct, MPI_BOTTOM; a reversed type. */
static void types(void) {
  const int n = (int)count;
  doing = "allreduce of doubles";
  double* d = memory(2 * count * sizeof *d);
  double* e = memory(2 * count * sizeof *e);
  for (size_t i = 0; i < 2 * count; ++i) d[i] = value(rank, i);
  ++calls;
  MPI_Allreduce(d, e, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(e[i], sum_at(i), size * allowed(), i);
  doing = "allreduce of complex numbers";
  ++calls;
  MPI_Allreduce(d, e, n, MPI_C_DOUBLE_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < 2 * count; ++i) expect(e[i], sum_at(i), size * allowed(), i);
  doing = "allgather of values and where they are"; /* which are no values, though Fortran has only reals for them */
  int pair_size = 0;
  MPI_Type_size(MPI_2DOUBLE_PRECISION, &pair_size);
  if (pair_size == 2 * (int)sizeof *d) {
    double* all = memory((size_t)size * 2 * count * sizeof *all);
    for (size_t i = 0; i < count; ++i) d[2 * i + 1] = (double)(rank + 1) * (double)i + 0.1234567;
    ++calls;
    MPI_Allgather(d, n, MPI_2DOUBLE_PRECISION, all, n, MPI_2DOUBLE_PRECISION, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r)
      for (size_t i = 0; i < count; ++i)
        expect(all[2 * ((size_t)r * count + i) + 1], (double)(r + 1) * (double)i + 0.1234567, 0, i);
    free(all);
  }
  doing = "own operation";
  MPI_Op own;
  MPI_Op_create(twice, 1, &own);
  float* x = operand(3 * count);
  float* y = memory(3 * count * sizeof *y);
  ++calls;
  MPI_Allreduce(x, y, n, MPI_FLOAT, own, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(y[i], sum_at(i), size * 1e-5, i);
  MPI_Op_free(&own);

  doing = "bcast of a column"; /* every third value, at absolute addresses; the others get it dense */
  MPI_Datatype column, absolute;
  MPI_Type_vector(n, 1, 3, MPI_FLOAT, &column);
  MPI_Aint at;
  MPI_Get_address(x, &at);
  const int one = 1;
  MPI_Type_create_struct(1, &one, &at, &column, &absolute);
  MPI_Type_commit(&absolute);
  ++calls;
  if (rank == root) {
    MPI_Bcast(MPI_BOTTOM, 1, absolute, root, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(y, n, MPI_FLOAT, root, MPI_COMM_WORLD);
    for (size_t i = 0; i < count; ++i) expect(y[i], value(root, 3 * i), allowed(), i);
  }
  for (size_t i = 0; i < 3 * count; ++i) expect(x[i], value(rank, i), i % 3 == 0 ? allowed() : 1e-6, i);
  doing = "gather into columns";
  MPI_Datatype wide;
  MPI_Type_create_resized(column, 0, sizeof(float), &wide);
  MPI_Type_commit(&wide);
  float* z = memory(3 * count * sizeof *z);
  for (size_t i = 0; i < 3 * count; ++i) z[i] = -1;
  MPI_Comm few;
  MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? 0 : MPI_UNDEFINED, 0, &few);
  if (few != MPI_COMM_NULL) {
    int members;
    MPI_Comm_size(few, &members);
    ++calls;
    MPI_Gather(x, n, MPI_FLOAT, z, 1, wide, 0, few);
    if (rank == 0)
      for (size_t i = 0; i < 3 * count; ++i)
        expect(z[i], (int)(i % 3) < members ? value((int)(i % 3), i / 3) : -1, 2 * allowed(), i);
    MPI_Comm_free(&few);
  }
  MPI_Type_free(&column);
  MPI_Type_free(&absolute);
  MPI_Type_free(&wide);
  doing = "elements in another order";
  int* back = memory(2 * sizeof *back);
  back[0] = 1;
  back[1] = 0;
  const int ones[2] = {1, 1};
  MPI_Datatype swapped;
  MPI_Type_indexed(2, ones, back, MPI_FLOAT, &swapped);
  MPI_Type_commit(&swapped);
  ++calls;
  for (size_t i = 0; i < 2 * count; ++i) x[i] = (float)value(rank, i);
  if (rank == root) {
    MPI_Bcast(x, n, swapped, root, MPI_COMM_WORLD);
  } else {
    MPI_Bcast(y, 2 * n, MPI_FLOAT, root, MPI_COMM_WORLD);
    for (size_t i = 0; i < 2 * count; ++i) expect(y[i], value(root, i ^ 1), allowed(), i);
  }
  MPI_Type_free(&swapped);
  free(back);
  free(d);
  free(e);
  free(x);
  free(y);
  free(z);
}

/* Other communicators, counts of nothing, constant data, errors. */
static void corners(void) {
  const int n = (int)count;
  float* x = operand(count);
  float* y = memory(count * sizeof *y);
  doing = "nothing";
  ++calls;
  MPI_Allreduce(NULL, NULL, 0, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Bcast(NULL, 0, MPI_FLOAT, root, MPI_COMM_WORLD);
  doing = "MPI_COMM_SELF";
  ++calls;
  MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
  for (size_t i = 0; i < count; ++i) expect(y[i], x[i], 0, i);
  doing = "a split communicator";
  MPI_Comm half, copy;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_dup(half, &copy);
  int members;
  MPI_Comm_size(half, &members);
  for (int again = 0; again < 3; ++again) {
    ++calls;
    MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, again == 1 ? copy : half);
    for (size_t i = 0; i < count; ++i) {
      double want = 0;
      for (int r = rank % 2; r < size; r += 2) want += value(r, i);
      expect(y[i], want, members * allowed(), i);
    }
  }
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  if (size > 1) {
    doing = "an inter-communicator";
    MPI_Comm local, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter);
    ++calls;
    MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, inter);
    for (size_t i = 0; i < count; ++i) {
      double want = 0;
      for (int r = 1 - rank % 2; r < size; r += 2) want += value(r, i);
      expect(y[i], want, size * 1e-5, i);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
  }
#ifdef OPEN_MPI /* MPICH may be built without any checks */
  doing = "an error handler";
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  ++calls;
  if (MPI_Allreduce(x, y, -n, MPI_FLOAT, MPI_SUM, own) == MPI_SUCCESS) expect(0, 1, 0, 0);
  if (MPI_Bcast(y, n, MPI_FLOAT, size, own) == MPI_SUCCESS) expect(0, 2, 0, 0);
  MPI_Comm_free(&own);
#endif
  free(x);
  free(y);
}

/* Several at a time, waited for in another order than they were begun, between blocking ones. */
static void several(void) {
  enum { many = 4 };
  float* x = operand(count);
  float* y[many];
  MPI_Request requests[many];
  doing = "several at a time";
  for (int k = 0; k < many; ++k) {
    y[k] = memory(count * sizeof **y);
    ++calls;
    MPI_Iallreduce(x, y[k], (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[k]);
    float token = 1, sum;
    MPI_Allreduce(&token, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    expect(sum, size, size * tolerance, 0); /* within the bound, where even one number is served */
  }
  MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
  MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
  for (int k = 0; k < many; ++k) {
    for (size_t i = 0; i < count; ++i) expect(y[k][i], sum_at(i), size * allowed(), i);
    free(y[k]);
  }
  free(x);
}

/* Two layouts of one buffer that have nothing in common: every second number goes, those between come. */
static void interleaved(void) {
  const int n = (int)count;
  const MPI_Aint one_on = sizeof(float), extent = (MPI_Aint)(2 * count * sizeof(float));
  float* x = memory((size_t)size * (size_t)extent);
  MPI_Datatype every_second, even, between, odd;
  doing = "two layouts of one buffer";
  for (size_t i = 0; i < (size_t)size * count; ++i) {
    x[2 * i] = (float)value(rank, i);
    x[2 * i + 1] = -1;
  }
  MPI_Type_vector(n, 1, 2, MPI_FLOAT, &every_second);
  MPI_Type_create_resized(every_second, 0, extent, &even);
  MPI_Type_create_hindexed(1, (const int[]){1}, &one_on, every_second, &between);
  MPI_Type_create_resized(between, 0, extent, &odd);
  MPI_Type_commit(&even);
  MPI_Type_commit(&odd);
  ++calls;
  MPI_Alltoall(x, 1, even, x, 1, odd, MPI_COMM_WORLD);
  for (size_t i = 0; i < (size_t)size * count; ++i)
    expect(x[2 * i + 1], value((int)(i / count), (size_t)rank * count + i % count), allowed(), i);
  MPI_Type_free(&every_second);
  MPI_Type_free(&even);
  MPI_Type_free(&between);
  MPI_Type_free(&odd);
  free(x);
}

/* Some ranks wait for each call, the others for all of them at the end; then the other way round. Small gathers may be
 * left to MPI without any exchange after the first, large broadcasts where compression does not pay. */
static void ahead(void) {
  enum { many = 60, few = 10 };
  float *x = operand(few), *gathered[many], *data[many];
  int* counts = memory((size_t)size * sizeof *counts);
  int* places = memory((size_t)size * sizeof *places);
  MPI_Request requests[2 * many];
  for (int r = 0; r < size; ++r) {
    counts[r] = few;
    places[r] = r * few;
  }
  doing = "some ranks ahead of others";
  for (int leader = 0; leader < 2; ++leader) {
    for (int k = 0; k < many; ++k) {
      gathered[k] = memory((size_t)(size * few) * sizeof **gathered);
      data[k] = rank == root ? operand(count) : memory(count * sizeof **data);
      calls += 2;
      MPI_Igatherv(x, few, MPI_FLOAT, gathered[k], counts, places, MPI_FLOAT, 0, MPI_COMM_WORLD, &requests[2 * k]);
      MPI_Ibcast(data[k], (int)count, MPI_FLOAT, root, MPI_COMM_WORLD, &requests[2 * k + 1]);
      if (rank % 2 != leader) MPI_Waitall(2, &requests[2 * k], MPI_STATUSES_IGNORE);
    }
    MPI_Waitall(2 * many, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < many; ++k) {
      for (size_t i = 0; rank == 0 && i < (size_t)(size * few); ++i)
        expect(gathered[k][i], value((int)i / few, i % few), allowed(), i);
      for (size_t i = 0; i < count; i += 97) expect(data[k][i], value(root, i), allowed(), i);
      free(gathered[k]);
      free(data[k]);
    }
  }
  free(counts);
  free(places);
  free(x);
}

#if MPI_VERSION >= 4
static void large_counts(void) {
  float* x = operand(count);
  float* y = memory(count * sizeof *y);
  doing = "large-count allreduce";
  ++calls;
  MPI_Allreduce_c(x, y, (MPI_Count)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (size_t i = 0; i < count; ++i) expect(y[i], sum_at(i), size * allowed(), i);
  doing = "large-count allgatherv";
  MPI_Count* counts = memory((size_t)size * sizeof *counts);
  MPI_Aint* places = memory((size_t)size * sizeof *places);
  for (int r = 0; r < size; ++r) {
    counts[r] = (MPI_Count)count / size;
    places[r] = (MPI_Aint)(r * counts[r]);
  }
  ++calls;
  MPI_Allgatherv_c(x, counts[rank], MPI_FLOAT, y, counts, places, MPI_FLOAT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r)
    for (MPI_Count i = 0; i < counts[r]; ++i) expect(y[places[r] + i], value(r, (size_t)i), allowed(), (size_t)i);
  free(counts);
  free(places);
  free(x);
  free(y);
}
#else
static void large_counts(void) {}
#endif

/* What MPI reports stays reported. MPICH gives MPI_COMM_SELF the handler of MPI_COMM_WORLD, and looks for buffers that
 * are used twice. */
#ifdef MPICH_VERSION
static void mistakes(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  doing = "a name that nobody published";
  char port[MPI_MAX_PORT_NAME];
  expect(MPI_Lookup_name("tests.preload.nobody", MPI_INFO_NULL, port) != MPI_SUCCESS, 1, 0, 0);
  float* x = operand(count);
  MPI_Request request = MPI_REQUEST_NULL;
  doing = "one buffer twice";
  expect(MPI_Allreduce(x, x, (int)count, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS, 1, 0, 0);
  expect(MPI_Iallreduce(x, x, (int)count, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD, &request) != MPI_SUCCESS, 1, 0, 0);
  free(x);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
#else
static void mistakes(void) {}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  sleeping_barrier(); /* a rank without Laconic is here seconds before the others, which wait for it */
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int level;
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_SINGLE && getenv("LD_PRELOAD") != NULL) expect(level, MPI_THREAD_SINGLE, 0, 0);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  if (argc > 2) count = (size_t)atoll(argv[2]);
  root = size - 1;
  make_sines((count + 2) * (size_t)(size > 3 ? size : 3));
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, all = 0;
  MPI_Get_library_version(library, &length);
  /* Open MPI 5 may be without version 4's extension. */
  const int forms = FORMS_OF(library);
  for (int f = BLOCKING; f < forms; ++f) {
    reductions((enum form)f);
    movement((enum form)f);
    irregular((enum form)f);
    if (rank == 0 && wrong > 0) fprintf(stderr, "(in %sform)\n", form_names[f]);
  }
  integers();
  types();
  corners();
  several();
  interleaved();
  ahead();
  large_counts();
  mistakes();
  free(sines);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    if (all == 0)
      printf("%.*s: %d calls, all as they should be\n", (int)strcspn(library, ",\n"), library, calls);
    else
      printf("%d elements are wrong\n", all);
  }
  MPI_Finalize();
  return wrong != 0;
}
