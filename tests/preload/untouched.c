// Sums of floating-point numbers that nobody gave a bound are MPI's to the last bit, also where MPI chooses its
// algorithm by how many calls there were before over the communicator, as MPICH does: what Laconic asks among the ranks
// must not count as such a call. And a program that makes no non-blocking calls gets the thread level that it asked
// for, or its user in MPI's own variables.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { elements = 1000, calls = 12, most_ranks = 16 };

static int rank, size, mistakes;

static void check(int is_right, const char* what, int call) {
  if (is_right) return;
  printf("rank %d, call %d: %s\n", rank, call, what);
  ++mistakes;
}

static float values[elements], sums[elements], as_mpi_does[elements];

static void fill(int call) {
  unsigned state = 12345u + 977u * (unsigned)rank + 31u * (unsigned)call;
  for (int i = 0; i < elements; ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)(state >> 8) / 1e3F - 7e3F;
  }
}

/// A call that ranks have to be asked about, as the sizes of the parts differ.
static void gather(MPI_Comm comm, int (*call)(const void*, int, MPI_Datatype, void*, const int[], const int[],
                                              MPI_Datatype, int, MPI_Comm)) {
  static float all[most_ranks * elements];
  int counts[most_ranks], places[most_ranks];
  for (int r = 0, at = 0; r < size; at += counts[r], ++r) {
    counts[r] = elements - r;
    places[r] = at;
  }
  call(values, counts[rank], MPI_FLOAT, all, counts, places, MPI_FLOAT, 0, comm);
}

int main(int argc, char** argv) {
  int provided = -1, queried = -1;
  const int by_user = argc > 1 && strcmp(argv[1], "level_of_user") == 0;
  if (by_user)
    MPI_Init(&argc, &argv);
  else
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  PMPI_Query_thread(&queried);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && strcmp(argv[1], "level") == 0)
    check(queried == provided, "the thread level is not what the program asked for", 0);
  if (by_user) {
    MPI_Query_thread(&provided);
    check(queried == MPI_THREAD_MULTIPLE && provided == queried, "the thread level is not what the user asked for", 0);
  }

  MPI_Comm seen, unseen;  // by Laconic
  MPI_Comm_dup(MPI_COMM_WORLD, &seen);
  PMPI_Comm_dup(MPI_COMM_WORLD, &unseen);
  fill(0);
  gather(seen, MPI_Gatherv);
  gather(unseen, PMPI_Gatherv);
  for (int call = 1; call <= calls; ++call) {
    fill(call);
    MPI_Allreduce(values, sums, elements, MPI_FLOAT, MPI_SUM, seen);
    PMPI_Allreduce(values, as_mpi_does, elements, MPI_FLOAT, MPI_SUM, unseen);
    check(memcmp(sums, as_mpi_does, sizeof sums) == 0, "the sum is not MPI's", call);
  }
  PMPI_Comm_free(&unseen);
  MPI_Comm_free(&seen);

  int all = 0;
  PMPI_Allreduce(&mistakes, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d calls, all as they should be\n", calls);
  MPI_Finalize();
  return all != 0;
}
