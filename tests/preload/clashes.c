/* A program that has functions which are called like those of the libraries that Laconic's codecs need, and shows them
 * to the libraries that it loads: they are not called, and nothing of those libraries is seen here (a plugin of the
 * program's would take it for its own).
 *
 *   clashes TOLERANCE
 *
 * Prints "calls, all as they should be" on rank 0, or what was wrong, with exit status 1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 20011 };

static int wrong;
static const char* called;

unsigned crc32_iscsi(unsigned char* p, int n, unsigned crc);
void* stream_open(void* p, size_t n);
void zfp_stream_rewind(void* stream);
int LZ4_compressBound(int n);
size_t ZSTD_compressBound(size_t n);

unsigned crc32_iscsi(unsigned char* p, int n, unsigned crc) {
  (void)p, (void)n, (void)crc;
  called = "crc32_iscsi";
  return (unsigned)rand();
}
void* stream_open(void* p, size_t n) {
  (void)p, (void)n;
  called = "stream_open";
  return NULL;
}
void zfp_stream_rewind(void* stream) {
  (void)stream;
  called = "zfp_stream_rewind";
}
int LZ4_compressBound(int n) {
  (void)n;
  called = "LZ4_compressBound";
  return 1;
}
size_t ZSTD_compressBound(size_t n) {
  (void)n;
  called = "ZSTD_compressBound";
  return 1;
}

int main(int argc, char** argv) {
  static float x[COUNT], y[COUNT];
  int rank = 0, size = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  const double tolerance = atof(argv[1]);
  float* all = malloc(sizeof(float) * COUNT * (size_t)size);
  for (int i = 0; i < COUNT; ++i) x[i] = (float)sin(1e-3 * i);
  MPI_Allreduce(x, y, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allgather(x, COUNT, MPI_FLOAT, all, COUNT, MPI_FLOAT, MPI_COMM_WORLD);
  MPI_Bcast(x, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; ++i) {
    const double want = sin(1e-3 * i);
    if (fabs(y[i] - size * want) > tolerance + 1e-5 || fabs(all[(size - 1) * COUNT + i] - want) > tolerance + 1e-5 ||
        fabs(x[i] - want) > tolerance + 1e-5)
      ++wrong;
  }
  if (wrong != 0) fprintf(stderr, "rank %d: %d elements are wrong\n", rank, wrong);
  if (called != NULL && ++wrong != 0) fprintf(stderr, "rank %d: Laconic called the program's %s\n", rank, called);
  const char* const theirs[] = {"crc16_t10dif", "stream_close", "zfp_compress", "LZ4_compress_default",
                                "ZSTD_createCCtx"};
  for (int i = 0; i < 5; ++i)
    if (dlsym(RTLD_DEFAULT, theirs[i]) != NULL && ++wrong != 0)
      fprintf(stderr, "rank %d: the program sees %s\n", rank, theirs[i]);
  free(all);
  int all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all_wrong == 0) printf("3 calls, all as they should be\n");
  MPI_Finalize();
  return wrong != 0;
}
