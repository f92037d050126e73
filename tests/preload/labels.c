/* A program whose ranks make a call in different functions, or under different labels: with labels.toml.
 *
 *   labels TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__GNUC__)
#define OWN_FUNCTION __attribute__((noinline))
#else
#define OWN_FUNCTION
#endif

enum { COUNT = 30000 };

__attribute__((weak)) void laconic_label(const char* label);

static int rank, size, wrong, calls;
static double tolerance;
static float x[COUNT];

/* What x lies away from the sum at most. */
static double error(void) {
  double worst = 0;
  for (int i = 0; i < COUNT; ++i) worst = fmax(worst, fabs(x[i] - (double)size * (float)sin(i * 1e-3)));
  return worst;
}

static void check(const char* what, int exact) {
  const double worst = error(), rounding = size * 1e-6;
  ++calls;
  if ((worst > tolerance + rounding || (exact ? worst > rounding : worst <= rounding)) && wrong++ < 5)
    fprintf(stderr, "rank %d, %s: %g off\n", rank, what, worst);
}

static void fill(void) {
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(i * 1e-3);
}

/* In the function that has it: who makes the call is its label. */
#define ADD_UP(later)                                                                       \
  do {                                                                                      \
    MPI_Request request = MPI_REQUEST_NULL;                                                 \
    fill();                                                                                 \
    if (later)                                                                              \
      MPI_Iallreduce(MPI_IN_PLACE, x, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request); \
    else                                                                                    \
      MPI_Allreduce(MPI_IN_PLACE, x, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);            \
    MPI_Wait(&request, MPI_STATUS_IGNORE);                                                  \
  } while (0)

static volatile int exact; /* what is alike would become one function */

/* Only the program itself knows these names: it exports none (those of Fortran's test are exported). */
OWN_FUNCTION static void exactly_here(int later) {
  ADD_UP(later);
  exact = 1;
}
OWN_FUNCTION static void about_there(int later) {
  ADD_UP(later);
  exact = 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tolerance = argc > 1 ? atof(argv[1]) : 0;
  for (int later = 0; later < 2; ++later) {
    exactly_here(later);
    check("all under the rule that is off", 1);
    about_there(later);
    check("all under the other rule", 0);
    rank == 0 ? exactly_here(later) : about_there(later);
    check("by functions of different rules", 1);
    if (laconic_label == NULL) continue;
    for (int who = 0; who < 3; ++who) { /* nobody, one rank, all */
      laconic_label(who == 2 || (who == 1 && rank == 0) ? "exactly so" : "about so");
      ADD_UP(later);
      check("under what they are called", who != 0);
    }
    laconic_label(NULL);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && wrong == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return wrong != 0;
}
