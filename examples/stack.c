/* Stacks the images of a raw f32 file over all ranks, and compares with MPI_Allreduce.
 *
 *   mpiexec -n 4 stack data/wave_computed_marmousi_rtm_shots_12x200x400.f32 80000 1e-3rel
 *
 * Every rank adds up its share of the images, Laconic adds up what the ranks have. */
#include <laconic/laconic_mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char* what) {
  fprintf(stderr, "stack: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Adds images rank, rank + size, ... of the file to `sum`. Returns how many there were. */
static size_t add_my_images(const char* path, size_t pixels, int rank, int size, float* sum) {
  size_t taken = 0;
  float* image = malloc(pixels * sizeof *image);
  FILE* file = fopen(path, "rb");
  if (file == NULL || image == NULL) fail("cannot read the images");
  for (size_t k = 0; fread(image, sizeof *image, pixels, file) == pixels; ++k) {
    if ((int)(k % (size_t)size) != rank) continue;
    for (size_t i = 0; i < pixels; ++i) sum[i] += image[i];
    ++taken;
  }
  fclose(file);
  free(image);
  return taken;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4 || strtoul(argv[2], NULL, 10) == 0) fail("usage: stack FILE PIXELS BOUND");
  const size_t pixels = strtoul(argv[2], NULL, 10);

  laconic_comm* comm = NULL;
  if (laconic_comm_from_mpi(MPI_COMM_WORLD, &comm) != LACONIC_OK) fail(laconic_last_error());
  const int rank = laconic_comm_rank(comm);

  float* mine = calloc(pixels, sizeof *mine);
  float* exact = calloc(pixels, sizeof *exact);
  float* stack = calloc(pixels, sizeof *stack);
  if (mine == NULL || exact == NULL || stack == NULL) fail("no memory");
  const size_t images = add_my_images(argv[1], pixels, rank, laconic_comm_size(comm), mine);

  laconic_options options = LACONIC_OPTIONS_INIT;
  options.bound = argv[3];
  if (laconic_allreduce(mine, stack, pixels, LACONIC_F32, LACONIC_SUM, comm, &options) != LACONIC_OK) {
    fail(laconic_last_error());
  }
  MPI_Allreduce(mine, exact, (int)pixels, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);

  double error = 0;
  for (size_t i = 0; i < pixels; ++i) error = fmax(error, fabs((double)stack[i] - exact[i]));
  laconic_stats stats = {.struct_size = sizeof stats};
  if (laconic_comm_last(comm, &stats) != LACONIC_OK) fail(laconic_last_error());
  if (rank == 0) {
    printf("rank 0 stacked %zu images; sent %.1f KB in place of %.1f KB; error %.3g, bound %.3g\n", images,
           (double)stats.wire_bytes / 1e3, (double)stats.original_bytes / 1e3, error, stats.result_bound);
  }

  free(mine);
  free(exact);
  free(stack);
  laconic_comm_free(comm);
  MPI_Finalize();
  return 0;
}
