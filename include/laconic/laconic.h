/* Laconic: collectives that compress what they send, within an error bound that the caller states for the result.
 *
 * The C interface, stable across versions. Communicators come from <laconic/laconic_mpi.h>. See docs/guide.md.
 *
 *   laconic_options options = LACONIC_OPTIONS_INIT;
 *   options.bound = "1e-3rel";
 *   if (laconic_allreduce(LACONIC_IN_PLACE, image, n, LACONIC_F32, LACONIC_SUM, comm, &options) != LACONIC_OK)
 *     fprintf(stderr, "%s\n", laconic_last_error());
 */
/* NOLINTBEGIN(modernize-*): this is C */
#ifndef LACONIC_LACONIC_H
#define LACONIC_LACONIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
/* So that a C++ compiler, too, lets the library see (and refuse) a value that is none of the names. */
#define LACONIC_ENUM_BASE : int
#else
#define LACONIC_ENUM_BASE
#endif

/* What functions return. */
typedef enum laconic_error LACONIC_ENUM_BASE {
  LACONIC_OK = 0,
  LACONIC_INVALID_ARGUMENT = 1, /* something that can never work; the text names the argument */
  LACONIC_UNSUPPORTED = 2,      /* valid, but not offered; the text says what would work */
  LACONIC_MISMATCH = 3,         /* ranks disagree; the text names rank, argument and both values */
  LACONIC_CORRUPT = 4,          /* a stream or a message failed its checks */
  LACONIC_TOO_SMALL = 5,        /* the output buffer cannot hold the result */
  LACONIC_TRANSPORT = 6,        /* MPI failed, a rank died, a timeout: the communicator cannot be used any more */
  LACONIC_IO = 7,
  LACONIC_INTERNAL = 8 /* a defect of Laconic */
} laconic_error;

typedef enum laconic_dtype LACONIC_ENUM_BASE {
  LACONIC_F32 = 1,
  LACONIC_F64 = 2,
  LACONIC_F16 = 3,
  LACONIC_BF16 = 4,
  LACONIC_I32 = 5,
  LACONIC_I64 = 6,
  LACONIC_U32 = 7,
  LACONIC_U64 = 8
} laconic_dtype;

typedef enum laconic_op LACONIC_ENUM_BASE {
  LACONIC_SUM = 1,
  LACONIC_AVERAGE = 2 /* floating-point dtypes */
} laconic_op;

/* A group of ranks. One thread at a time; every collective is called by all ranks in the same order. */
typedef struct laconic_comm laconic_comm;

/* As sendbuf: the operand lies in recvbuf, where MPI_IN_PLACE would have it. */
extern const char laconic_in_place;
#define LACONIC_IN_PLACE ((const void*)&laconic_in_place)

/* Begin with LACONIC_OPTIONS_INIT; what is not set then keeps its meaning in later versions. Where a call takes
 * options, NULL means the communicator's own (laconic_comm_set_options), which begin with the environment's. */
typedef struct laconic_options {
  size_t struct_size;
  /* "1e-3" (absolute), "1e-4rel" (of the value range over all ranks), "80dB" (PSNR), "lossless"; "operand:" before it
   * bounds each operand in place of the result. NULL: LACONIC_BOUND of the environment, else lossless. */
  const char* bound;
  int threads;     /* codec threads of this rank; 0: LACONIC_THREADS of the environment, else 1 */
  int unconfirmed; /* 1: no closing exchange; then an error late in a call may be known to some ranks only */
  size_t segment;  /* elements that travel in one message; 0: automatic */
} laconic_options;
#define LACONIC_OPTIONS_INIT \
  { sizeof(laconic_options), NULL, 0, 0, 0 }

/* Set struct_size to sizeof(laconic_stats) before the call. */
typedef struct laconic_stats {
  size_t struct_size;
  uint64_t calls;
  uint64_t original_bytes; /* what the messages that this rank sent would be uncompressed */
  uint64_t wire_bytes;     /* what they were */
  double codec_seconds;
  double wire_seconds; /* waiting for other ranks */
  double compute_seconds;
  double other_seconds;
  double operand_bound; /* absolute; of the last call; 0: lossless */
  double result_bound;  /* absolute; of the last call; 0: exact, rounded once */
} laconic_stats;

/* What a compressed stream says of itself. Set struct_size before the call. */
typedef struct laconic_info {
  size_t struct_size;
  int dtype;
  uint32_t operands; /* arrays that were summed into it */
  uint64_t count;    /* elements */
  uint64_t bytes;    /* of the stream */
  double bound;      /* absolute, per operand; 0: lossless */
} laconic_info;

/* "1.2.3" */
const char* laconic_version(void);
/* Why the last call of this thread that failed did; valid until the next call on this thread. Never NULL. */
const char* laconic_last_error(void);
/* "invalid argument", ... */
const char* laconic_error_name(int error);

int laconic_comm_rank(const laconic_comm* comm); /* -1 for NULL */
int laconic_comm_size(const laconic_comm* comm); /* -1 for NULL */
int laconic_comm_set_options(laconic_comm* comm, const laconic_options* options);
/* Of the last call that succeeded, or of all of them. */
int laconic_comm_last(const laconic_comm* comm, laconic_stats* stats);
int laconic_comm_total(const laconic_comm* comm, laconic_stats* stats);
/* Collective; NULL is allowed. */
void laconic_comm_free(laconic_comm* comm);

/* recvbuf[i] = sum (average) over ranks of sendbuf[i], within the bound (plus half a unit in the last place of the
 * result), the same bytes on every rank. An error on one rank is an error on all; recvbuf then holds anything. */
int laconic_allreduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                      laconic_comm* comm, const laconic_options* options);

/* Rank r gets its recvcounts[r] elements of the sum of arrays of recvcounts[0] + ... + recvcounts[size - 1]. In place:
 * the whole operand lies in recvbuf, the share comes to its front. */
int laconic_reduce_scatter(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                           laconic_op op, laconic_comm* comm, const laconic_options* options);
int laconic_reduce_scatter_block(const void* sendbuf, void* recvbuf, size_t recvcount, laconic_dtype dtype,
                                 laconic_op op, laconic_comm* comm, const laconic_options* options);

/* Every rank gets every rank's `count` elements, in rank order, within the bound. In place: this rank's part lies in
 * its place in recvbuf. allgatherv: recvcounts[r] elements of rank r, one after the other. */
int laconic_allgather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options);
int laconic_allgatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                       laconic_comm* comm, const laconic_options* options);

/* Compression of one array, without communication. laconic_compress_capacity: most bytes that it can take (at most
 * 1.02 of the array's and 64); 0 for a dtype that is none. *written: bytes of the stream. */
size_t laconic_compress_capacity(size_t count, laconic_dtype dtype);
int laconic_compress(const void* data, size_t count, laconic_dtype dtype, void* stream, size_t capacity,
                     size_t* written, const laconic_options* options);
/* Validates the whole stream. */
int laconic_inspect(const void* stream, size_t size, laconic_info* info);
/* count and dtype must be the stream's own. threads: 0: LACONIC_THREADS, else 1. */
int laconic_decompress(const void* stream, size_t size, void* data, size_t count, laconic_dtype dtype, int threads);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*) */
