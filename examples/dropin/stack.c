/* Image stacking, as many programs do it: every rank adds up its images, MPI_Allreduce adds up the ranks. Nothing here
 * knows of Laconic.
 *
 *   stack IMAGES.f32 VALUES_PER_IMAGE TILES REPETITIONS [OUT.f32]
 *
 * Each image is laid TILES times beside itself, to make it as large as images are. Rank 0 prints the median time of the
 * reduction in seconds and writes the stack. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void* need(void* p, const char* what) {
  if (p != NULL) return p;
  perror(what);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return NULL;
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 5) {
    if (rank == 0) fprintf(stderr, "stack: want IMAGES.f32 VALUES_PER_IMAGE TILES REPETITIONS [OUT.f32]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const size_t image = (size_t)atoll(argv[2]), tiles = (size_t)atoll(argv[3]), n = image * tiles;
  const int repetitions = atoi(argv[4]);
  float* one = need(malloc(image * sizeof *one), "stack");
  float* mine = need(calloc(n, sizeof *mine), "stack");
  float* all = need(malloc(n * sizeof *all), "stack");
  double* seconds = need(malloc((size_t)repetitions * sizeof *seconds), "stack");

  FILE* in = need(fopen(argv[1], "rb"), argv[1]);
  for (int k = 0; fread(one, sizeof *one, image, in) == image; ++k) {
    if (k % size != rank) continue;
    for (size_t i = 0; i < n; ++i) mine[i] += one[i % image];
  }
  fclose(in);

  for (int r = 0; r < repetitions; ++r) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Allreduce(mine, all, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double taken = MPI_Wtime() - start;
    MPI_Reduce(&taken, &seconds[r], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) {
    qsort(seconds, (size_t)repetitions, sizeof *seconds, by_value);
    printf("seconds %.6f\n", seconds[repetitions / 2]);
    if (argc > 5) {
      FILE* out = need(fopen(argv[5], "wb"), argv[5]);
      if (fwrite(all, sizeof *all, n, out) != n || fclose(out) != 0) need(NULL, argv[5]);
    }
  }
  MPI_Finalize();
  return 0;
}
