/* A program whose datatypes were made by MPI-4's constructors with large counts: bcast and gather of each.
 *
 *   large_types TOLERANCE
 *
 * Prints "N calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 6000, ALL = 3 * N, KINDS = 13 };

static float x[ALL], y[ALL], dense[N + 1], marks[ALL];
static int rank, wrong, calls;

static float value(int r, int i) { return (float)(sin(1e-3 * i) + r); }

/* The kind-th type, of about N floats in 3 N. */
static MPI_Datatype type_of(int kind) {
  MPI_Datatype t = MPI_DATATYPE_NULL, part;
  const MPI_Count lengths[2] = {N / 4, N / 2}, places[2] = {7, N}, bytes[2] = {0, 4 * N};
  const MPI_Count sizes[2] = {300, 60}, inner[2] = {100, 60}, starts[2] = {50, 0};
  const MPI_Datatype floats[2] = {MPI_FLOAT, MPI_FLOAT};
  switch (kind) {
    case 0:
      MPI_Type_contiguous_c(N, MPI_FLOAT, &t);
      break;
    case 1:
      MPI_Type_vector_c(N, 1, 3, MPI_FLOAT, &t);
      break;
    case 2:
      MPI_Type_vector_c(N / 4, 4, 4, MPI_FLOAT, &t);
      break; /* dense */
    case 3:
      MPI_Type_create_hvector_c(N / 2, 2, 12, MPI_FLOAT, &t);
      break;
    case 4:
      MPI_Type_create_hvector_c(N / 2, 2, 8, MPI_FLOAT, &t);
      break; /* dense */
    case 5:
      MPI_Type_indexed_c(2, lengths, places, MPI_FLOAT, &t);
      break;
    case 6:
      MPI_Type_create_hindexed_c(2, lengths, bytes, MPI_FLOAT, &t);
      break;
    case 7:
      MPI_Type_create_indexed_block_c(2, N / 2, places, MPI_FLOAT, &t);
      break;
    case 8:
      MPI_Type_create_struct_c(2, lengths, bytes, floats, &t);
      break;
    case 9:
      MPI_Type_create_subarray_c(2, sizes, inner, starts, MPI_ORDER_C, MPI_FLOAT, &t);
      break;
    case 10:
      MPI_Type_create_hindexed_block_c(2, N / 2, bytes, MPI_FLOAT, &t);
      break;
    case 11: {
      const int one[2] = {1, 1}, distributed[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
      const int as_it_comes[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
      MPI_Type_create_darray_c(1, 0, 2, inner, distributed, as_it_comes, one, MPI_ORDER_C, MPI_FLOAT, &t);
      break;
    }
    default: /* a large one within one that is not */
      MPI_Type_vector_c(N / 4, 1, 2, MPI_FLOAT, &part);
      MPI_Type_create_resized_c(part, 0, 4 * N, &t);
      MPI_Type_free(&part);
      part = t;
      MPI_Type_contiguous(2, part, &t);
      MPI_Type_free(&part);
  }
  MPI_Type_commit(&t);
  return t;
}

static void expect(const char* doing, int kind, int i, double got, double want, double allowed) {
  if (fabs(got - want) <= allowed || wrong++ > 5) return;
  fprintf(stderr, "rank %d: %s of type %d: element %d is %.9g, not %.9g\n", rank, doing, kind, i, got, want);
}

/* What rank 0 has under the type reaches the others' same places, and nothing else changes; then, dense, rank 0 gets
 * what the last rank has there. */
static void pass(int kind, int last, double tolerance) {
  MPI_Datatype t = type_of(kind);
  MPI_Count bytes;
  MPI_Type_size_c(t, &bytes);
  const int n = (int)(bytes / (MPI_Count)sizeof(float));
  for (int i = 0; i < ALL; ++i) marks[i] = 0;
  for (int i = 0; i < n; ++i) dense[i] = 1;
  MPI_Sendrecv(dense, n, MPI_FLOAT, 0, 0, marks, 1, t, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  for (int i = 0; i < ALL; ++i) y[i] = x[i] = value(rank, i);
  ++calls;
  MPI_Bcast(y, 1, t, 0, MPI_COMM_WORLD);
  int changed = 0;
  for (int i = 0; i < ALL; ++i) {
    const int moved = marks[i] != 0;
    expect("bcast", kind, i, y[i], moved ? value(0, i) : x[i], moved ? tolerance : 0);
    changed += moved && y[i] != value(0, i);
  }
  if (tolerance > 0) expect("serving", kind, 0, changed != 0, 1, 0); /* MPI would have left every bit */
  float* all = malloc((size_t)(last + 1) * (size_t)n * sizeof *all);
  if (all == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  ++calls;
  MPI_Gather(x, 1, t, all, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
  const float* theirs = all + (size_t)last * (size_t)n;
  for (int i = 0, k = 0; rank == 0 && i < ALL; ++i) {
    if (marks[i] != 0) expect("gather", kind, i, theirs[k++], value(last, i), tolerance);
  }
  free(all);
  MPI_Type_free(&t);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int size, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int kind = 0; kind < KINDS; ++kind) pass(kind, size - 1, atof(argv[1]));
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return all != 0;
}
