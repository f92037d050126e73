/* A program that has floating-point exceptions end it, as with gfortran's -ffpe-trap=invalid,zero,overflow, and rounds
 * upwards, while its data have NaN, infinities and fill values: no call of Laconic's is such an exception, nor is any
 * when it begins or ends, and what the MPI library sums is summed as the program has chosen.
 *
 *   environment TOLERANCE [plain]
 *
 * plain: two ranks' data without any of that, and sums that are MPI's own.
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 30000, SIGNALS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW };

static int rank, size, wrong, calls;
static double tolerance;
static int plain;
static float x[COUNT], y[COUNT];

static void expect(int good, const char* what) {
  ++calls;
  if (!good && wrong++ < 5) fprintf(stderr, "rank %d: %s\n", rank, what);
}

static double quotient(double a, double b) {
  const volatile double p = a, q = b;
  return p / q;
}

/* Whether the program computes as it has chosen. */
static int is_chosen(void) {
  static double upwards;
  if (upwards == 0) upwards = quotient(2, 3);
  return quotient(2, 3) == upwards && fegetexcept() == SIGNALS && !fetestexcept(SIGNALS);
}

static float value(int i, int of) { return (float)(i % 1000) / 1000 + (float)of; }

static void fill(void) {
  for (int i = 0; i < COUNT; ++i) {
    x[i] = value(i, rank);
    y[i] = 0;
    if (plain) continue;
    if (i % 501 == 0) x[i] = NAN;
    if (i % 502 == 0) x[i] = rank % 2 == 0 ? INFINITY : -INFINITY;
    if (i % 503 == 0) x[i] = 1e30F;
    if (i % 504 == 0) x[i] = 1e-42F;
    if (i % 505 == 0) x[i] = FLT_MAX;
  }
}

/* Those of the sum that are like the others. (Not by the program's own operations, which end it.) */
static void check(const char* what, int ranks) {
  int good = 1;
  for (int i = 0; i < COUNT; ++i) {
    if (i % 501 == 0 || i % 502 == 0 || i % 503 == 0 || i % 504 == 0 || i % 505 == 0) continue;
    double sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value(i, r);
    good = good && (plain ? y[i] == (float)sum : fabs(y[i] - sum) <= tolerance + 1e-5 * size);
  }
  expect(good, what);
  expect(is_chosen(), what);
}

static int chosen_in_operation = 1;

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  chosen_in_operation = chosen_in_operation && is_chosen();
  for (int i = 0; i < *n; ++i) ((double*)inout)[i] += ((double*)in)[i];
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  plain = argc > 2;
  tolerance = atof(argv[1]);
  feenableexcept(SIGNALS);
  fesetround(FE_UPWARD);
  is_chosen();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  fill();
  for (int i = 0; i < 3; ++i) {
    MPI_Request request;
    MPI_Iallreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check("a non-blocking sum", size);
    fill();
    MPI_Bcast(x, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD);
    for (int k = 0; k < COUNT; ++k) y[k] = x[k];
    check("a broadcast", 1);
    fill();
    MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    check("a sum", size);
  }
  MPI_Op operation;
  MPI_Op_create(add, 1, &operation);
  double one = 1, ones = 0;
  MPI_Allreduce(&one, &ones, 1, MPI_DOUBLE, operation, MPI_COMM_WORLD);
  expect(ones == size && chosen_in_operation, "an operation of the program's own");
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (int i = 0; i < 10; ++i) { /* MPI carries it on while Laconic waits */
    MPI_Request request;
    fill();
    if (rank == i % 2) usleep(10000);
    MPI_Iallreduce(&one, &ones, 1, MPI_DOUBLE, operation, other, &request);
    MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    check("a sum", size);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(ones == size && chosen_in_operation, "an operation of the program's own, begun before");
  }
  MPI_Comm_free(&other);
  MPI_Op_free(&operation);
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (!is_chosen()) all_wrong = 1;
  if (rank == 0 && all_wrong == 0) printf("%d calls, all as they should be\n", calls);
  return all_wrong != 0;
}
