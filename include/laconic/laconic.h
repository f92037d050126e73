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
  LACONIC_TRANSPORT = 6,        /* MPI failed, a rank died or did not come in time (60 s unless LACONIC_TIMEOUT of the
                                   environment says otherwise): the communicator cannot be used any more */
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
  LACONIC_AVERAGE = 2, /* of integers: the exact one, rounded toward zero */
  LACONIC_MIN = 3,     /* NaN where an operand is NaN; -0 below +0 */
  LACONIC_MAX = 4,
  /* Step by step (LACONIC_STEPWISE, which it takes by itself): of integers exactly, modulo 2^bits; of floating-point
   * dtypes within no bound of the result: "lossless" (each step rounds) or "operand:..." */
  LACONIC_PRODUCT = 5
} laconic_op;

/* Who talks to whom in an allreduce within a bound; in a reduce_scatter only whether it is direct; in a bcast, a reduce
 * and an allgather only whether it is on two levels. The result does not depend on it. */
typedef enum laconic_schedule LACONIC_ENUM_BASE {
  LACONIC_AUTOMATIC = 0, /* by size, number of ranks, and who shares a node */
  LACONIC_RING = 1,
  LACONIC_RECURSIVE_DOUBLING = 2,
  LACONIC_RABENSEIFNER = 3,
  LACONIC_TWO_LEVEL = 4, /* uncompressed within a node, a ring of nodes */
  LACONIC_DIRECT = 5     /* operands straight to the rank that sums them */
} laconic_schedule;

/* Whether a call compresses. Automatic: what is expected to be faster, judged by a model of link and codec, a sample of
 * the data, and what calls of the same kind took before. A call that goes plainly has no compression error, but the
 * plain library's own rounding. Once that has been decided, the next calls of its kind may go without any exchange
 * between ranks, unless laconic_options.check is set; what holds when ranks then disagree or die is what holds for the
 * plain library. When they ask again and turn out to be a call apart, that call is LACONIC_MISMATCH on all of them, and
 * the communicator cannot be used any more. */
typedef enum laconic_mode LACONIC_ENUM_BASE {
  LACONIC_MODE_DEFAULT = 0, /* not set; LACONIC_MODE, else automatic */
  LACONIC_MODE_AUTOMATIC = 1,
  LACONIC_MODE_COMPRESSED = 2, /* always compressed */
  LACONIC_MODE_PLAIN = 3       /* the plain library's own collective wherever it has one; its minima and maxima may
                                  lose a NaN, and not tell -0 from +0 */
} laconic_mode;

/* What encodes. The same on every rank. Only slice adds compressed arrays, so only it goes on the grid. */
typedef enum laconic_codec LACONIC_ENUM_BASE {
  LACONIC_CODEC_DEFAULT = 0, /* not set; slice */
  LACONIC_SLICE = 1,
  LACONIC_SZX = 2,
  LACONIC_FZLIGHT = 3,
  LACONIC_ZFP = 4,      /* this and the next ones only if Laconic was built with their library */
  LACONIC_ZFP_RATE = 5, /* keeps a ratio, "10x", with so many bits for each block, and no bound */
  LACONIC_LZ4 = 6,      /* from here on: lossless, whatever the bound */
  LACONIC_LZ4HC = 7,
  LACONIC_ZSTD = 8
} laconic_codec;

/* How a collective uses it. The same on every rank. */
typedef enum laconic_framework LACONIC_ENUM_BASE {
  LACONIC_FRAMEWORK_DEFAULT = 0, /* not set; on the grid with slice, else stepwise */
  LACONIC_ON_GRID = 1,           /* partial sums are added as they are, compressed: slice only */
  LACONIC_STEPWISE = 2,          /* reductions decompress, operate and compress in every step, as C-Coll and ZCCL do */
  LACONIC_POINT_TO_POINT = 3 /* every message is compressed and decompressed, the naive way; for comparisons. Results
                                of an allreduce, or of what goes over several ranks, may differ between ranks */
} laconic_framework;

/* A group of ranks. One thread at a time; every collective is called by all ranks in the same order. */
typedef struct laconic_comm laconic_comm;

/* As sendbuf (scatter: as the root's recvbuf): the operand lies in recvbuf, where MPI_IN_PLACE would have it. As any
 * other buffer that has elements it is LACONIC_INVALID_ARGUMENT, and so are counts and displacements of arrays of more
 * than PTRDIFF_MAX bytes. Otherwise the buffers of a call must not overlap. */
extern char laconic_in_place;
#ifdef __cplusplus
#define LACONIC_IN_PLACE (static_cast<void*>(&laconic_in_place))
#else
#define LACONIC_IN_PLACE ((void*)&laconic_in_place)
#endif

/* Begin with LACONIC_OPTIONS_INIT; what is not set then keeps its meaning in later versions: of a call over a
 * communicator it is the communicator's own (laconic_comm_set_options), of all others, and of a communicator's options,
 * the environment's (where that says nothing: what stands last below). The same where a call's options are NULL. */
typedef struct laconic_options {
  size_t struct_size;
  /* "1e-3" (absolute), "1e-4rel" (of the value range over all ranks), "80dB" (PSNR), "lossless", "10x" (a ratio in
   * place of a bound: nothing is promised of the error). "operand:" before a bound is of each operand in place of the
   * result; "6sigma:" (or another number from 2 on) gives operands of sums and averages more, so that the result keeps
   * the bound but where it errs by more than so many standard deviations of independent errors (averages of scans keep
   * it for certain). NULL: not set; LACONIC_BOUND, else lossless. */
  const char* bound;
  int threads;               /* codec threads of this rank, up to 1024; 0: not set; LACONIC_THREADS, else 1 */
  int unconfirmed;           /* 1: no closing exchange; then an error late in a call may be known to some ranks only.
                                -1: with it. 0: not set; with it */
  size_t segment;            /* elements that travel in one message; 0: not set; automatic */
  laconic_schedule schedule; /* the same on every rank; LACONIC_AUTOMATIC: not set */
  /* 1: collectives compute the exact result too, compare, and tell the achieved error (laconic_stats); a result that is
   * not what was promised is then LACONIC_INTERNAL on every rank. If one rank asks for it, all do it, but from the
   * first call of its kind on: calls that go to the plain library without asking anybody, after others did, are not
   * verified, nor are those of mode plain. Of a message the sender decides. -1: not, unless another rank does. 0: not
   * set; LACONIC_VERIFY, else not. */
  int verify;
  laconic_mode mode; /* the same on every rank */
  /* For comparisons: with another codec than slice, or a framework by name, no call is left to the plain library. But
   * on the grid, a floating-point sum without a bound is rounded in every step, as MPI's own. What cannot be (a codec
   * that was not built, that has no use for dtype or bound, or cannot add) is LACONIC_UNSUPPORTED on every rank, with
   * the reason. */
  laconic_codec codec;
  laconic_framework framework;
  int reserved; /* 0. Older structs end here, padded: what stands there says nothing. */
  /* 1: before every collective the ranks agree on it, also before one that the plain library is known to make. Then
   * what they differ in, and who does not come in time, is an error on every rank, in every mode; a short call takes
   * one exchange of a few hundred bytes longer. The same on every rank, or on some of them in every call of the
   * communicator: then all do it. -1: not, unless another rank does. 0: not set; LACONIC_CHECK, else not. */
  int check;
} laconic_options;
#define LACONIC_OPTIONS_INIT                                                                                    \
  {sizeof(laconic_options),   NULL, 0, 0, 0, LACONIC_AUTOMATIC, 0, LACONIC_MODE_DEFAULT, LACONIC_CODEC_DEFAULT, \
   LACONIC_FRAMEWORK_DEFAULT, 0,    0}

/* Set struct_size to sizeof(laconic_stats) before the call. */
typedef struct laconic_stats {
  size_t struct_size;
  uint64_t calls;
  uint64_t original_bytes; /* what the messages that this rank sent would be uncompressed */
  uint64_t wire_bytes;     /* what they were */
  double codec_seconds;
  double wire_seconds; /* waiting for other ranks; of short calls that go plainly one in a few is timed */
  double compute_seconds;
  double other_seconds;
  double operand_bound; /* absolute; of the last call; 0: lossless */
  /* Absolute, for certain; of the last call. 0: exact, rounded once. Infinite: nothing is, as of a floating-point sum
   * that the plain library made of data that nobody had looked at. Of a minimum or maximum that the plain library made
   * it says nothing where operands are NaN, which that may lose. */
  double result_bound;
  /* If the last call was verified: the largest absolute difference between its result on any rank and the exact one,
   * rounded to the type, and how many elements all ranks compared; else NaN and 0. What verifying sends is counted
   * nowhere. */
  double achieved_error;
  uint64_t verified;
  uint64_t plain_calls; /* of calls, those that the plain library made */
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
/* For calls from now on. What is not set becomes the environment's again; NULL: everything. Local: of a mistake here
 * the other ranks hear nothing. */
int laconic_comm_set_options(laconic_comm* comm, const laconic_options* options);
/* Of the last call that succeeded, or of all of them. */
int laconic_comm_last(const laconic_comm* comm, laconic_stats* stats);
int laconic_comm_total(const laconic_comm* comm, laconic_stats* stats);
/* Collective; NULL is allowed. Non-blocking calls are finished first: for messages that nobody answers that takes as
 * long as a rank waits (LACONIC_TIMEOUT). */
void laconic_comm_free(laconic_comm* comm);

/* recvbuf[i] = sum (average, min, max, product) over ranks of sendbuf[i], within the bound (plus half a unit in the
 * last place of the result), the same bytes on every rank. An error on one rank is an error on all; recvbuf then holds
 * anything. */
int laconic_allreduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                      laconic_comm* comm, const laconic_options* options);

/* Rank r gets its recvcounts[r] elements of the sum of arrays of recvcounts[0] + ... + recvcounts[size - 1]. In place:
 * the whole operand lies in recvbuf, the share comes to its front, and what lies behind it may then be anything. */
int laconic_reduce_scatter(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                           laconic_op op, laconic_comm* comm, const laconic_options* options);
int laconic_reduce_scatter_block(const void* sendbuf, void* recvbuf, size_t recvcount, laconic_dtype dtype,
                                 laconic_op op, laconic_comm* comm, const laconic_options* options);

/* The root gets what an allreduce would give; recvbuf is of interest there only. */
int laconic_reduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op, int root,
                   laconic_comm* comm, const laconic_options* options);

/* Rank r gets the sum (average, min, max, product) over ranks 0 .. r, or with exscan over ranks 0 .. r - 1, within the
 * bound; exscan does not write to rank 0's recvbuf, which may be NULL there if it is not the operand. */
int laconic_scan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                 laconic_comm* comm, const laconic_options* options);
int laconic_exscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                   laconic_comm* comm, const laconic_options* options);

/* Calls whose name ends in v: parts of different lengths. Counts and displacements are in elements, one for each rank.
 * displs[r]: where the part of rank r begins; NULL: parts lie one after the other, in rank order. What is between parts
 * of a result is not written. Parts of a result that overlap are LACONIC_INVALID_ARGUMENT. */

/* Every rank gets every rank's `count` elements, in rank order, within the bound. In place: this rank's part lies in
 * its place in recvbuf. allgatherv: recvcounts[r] elements of rank r, the same counts on every rank. */
int laconic_allgather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options);
int laconic_allgatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts, const size_t* displs,
                       laconic_dtype dtype, laconic_comm* comm, const laconic_options* options);

/* Every rank gets the root's array, within the bound, the same bytes on every rank: the root too holds afterwards what
 * the others got. */
int laconic_bcast(void* buf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                  const laconic_options* options);

/* Rank r gets the r-th share of the root's array, within the bound; the root's own share stays as it is. sendbuf and
 * sendcounts are of interest on the root only, where LACONIC_IN_PLACE as recvbuf leaves its share in sendbuf. A share
 * must be what its rank expects. */
int laconic_scatter(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                    const laconic_options* options);
int laconic_scatterv(const void* sendbuf, const size_t* sendcounts, const size_t* displs, void* recvbuf,
                     size_t recvcount, laconic_dtype dtype, int root, laconic_comm* comm,
                     const laconic_options* options);

/* The root gets every rank's array, in rank order, within the bound; its own part is as it was. recvbuf and recvcounts
 * are of interest on the root only, where LACONIC_IN_PLACE as sendbuf means that its part is in its place. */
int laconic_gather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, int root, laconic_comm* comm,
                   const laconic_options* options);
int laconic_gatherv(const void* sendbuf, size_t sendcount, void* recvbuf, const size_t* recvcounts,
                    const size_t* displs, laconic_dtype dtype, int root, laconic_comm* comm,
                    const laconic_options* options);

/* Block p of rank r's sendbuf becomes block r of rank p's recvbuf, within the bound; what a rank has for itself is as
 * it was. alltoall: all blocks have `count` elements. alltoallv: what r sends to p must be what p
 * expects from r; in place, sendcounts and sdispls are recvcounts and rdispls, or sendcounts is NULL. */
int laconic_alltoall(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_comm* comm,
                     const laconic_options* options);
int laconic_alltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                      const size_t* recvcounts, const size_t* rdispls, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options);

/* Non-blocking calls: the same, but they return at once; a thread of the communicator runs them one after the other, in
 * the order in which they were made, which is the same on every rank, and needs no help. (Where the system has no
 * thread to give, they run before they return, which a program may not expect of them.) Buffers belong to the call
 * until it is done (counts and options are copied). Other calls may be made meanwhile. MPI must have been initialised
 * with MPI_THREAD_MULTIPLE, else LACONIC_UNSUPPORTED. */
typedef struct laconic_request laconic_request;
/* Both return the call's own code once it is done, and *request is NULL then. Of NULL: done, LACONIC_OK. Every request
 * must be waited for, or tested until it is done, by the thread that uses the communicator; after laconic_comm_free it
 * is done, but in no statistics. */
int laconic_test(laconic_request** request, int* done);
int laconic_wait(laconic_request** request);
int laconic_iallreduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                       laconic_comm* comm, const laconic_options* options, laconic_request** request);
int laconic_ireduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op, int root,
                    laconic_comm* comm, const laconic_options* options, laconic_request** request);
int laconic_iscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                  laconic_comm* comm, const laconic_options* options, laconic_request** request);
int laconic_iexscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                    laconic_comm* comm, const laconic_options* options, laconic_request** request);
int laconic_ireduce_scatter(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                            laconic_op op, laconic_comm* comm, const laconic_options* options,
                            laconic_request** request);
int laconic_ireduce_scatter_block(const void* sendbuf, void* recvbuf, size_t recvcount, laconic_dtype dtype,
                                  laconic_op op, laconic_comm* comm, const laconic_options* options,
                                  laconic_request** request);
int laconic_ibcast(void* buf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                   const laconic_options* options, laconic_request** request);
int laconic_iscatter(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, int root,
                     laconic_comm* comm, const laconic_options* options, laconic_request** request);
int laconic_iscatterv(const void* sendbuf, const size_t* sendcounts, const size_t* displs, void* recvbuf,
                      size_t recvcount, laconic_dtype dtype, int root, laconic_comm* comm,
                      const laconic_options* options, laconic_request** request);
int laconic_igather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, int root, laconic_comm* comm,
                    const laconic_options* options, laconic_request** request);
int laconic_igatherv(const void* sendbuf, size_t sendcount, void* recvbuf, const size_t* recvcounts,
                     const size_t* displs, laconic_dtype dtype, int root, laconic_comm* comm,
                     const laconic_options* options, laconic_request** request);
int laconic_iallgather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, laconic_comm* comm,
                       const laconic_options* options, laconic_request** request);
int laconic_iallgatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts, const size_t* displs,
                        laconic_dtype dtype, laconic_comm* comm, const laconic_options* options,
                        laconic_request** request);
int laconic_ialltoall(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options, laconic_request** request);
int laconic_ialltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                       const size_t* recvcounts, const size_t* rdispls, laconic_dtype dtype, laconic_comm* comm,
                       const laconic_options* options, laconic_request** request);

/* A message to another rank, which must receive it with the same tag (0 to 32000), within the sender's bound; a
 * relative one is of this message's range. Returns when buf may be changed. What goes wrong on the receiver is known
 * there. */
int laconic_send(const void* buf, size_t count, laconic_dtype dtype, int dest, int tag, laconic_comm* comm,
                 const laconic_options* options);
/* At most `count` elements of the same dtype; *received (which may be NULL): how many came. */
int laconic_recv(void* buf, size_t count, laconic_dtype dtype, int source, int tag, size_t* received,
                 laconic_comm* comm, const laconic_options* options);
/* Both at the same time; dest and source may be this rank. */
int laconic_sendrecv(const void* sendbuf, size_t sendcount, laconic_dtype sendtype, int dest, int sendtag,
                     void* recvbuf, size_t recvcount, laconic_dtype recvtype, int source, int recvtag, size_t* received,
                     laconic_comm* comm, const laconic_options* options);
/* The same, but they return at once; see laconic_test and laconic_wait. A thread sees to all messages together, in
 * whatever order they can go; of one rank and tag they keep the order of the calls, those that block among them. Dest
 * and source may be this rank. *received is there when the call is done. A rank that does not answer is given up
 * (LACONIC_TIMEOUT) once laconic_wait has been called (for it, or for one behind it), or a message has begun to come;
 * laconic_test alone gives up nobody. MPI must have been initialised with MPI_THREAD_MULTIPLE, else
 * LACONIC_UNSUPPORTED, as of arrays in the memory of a GPU; where the system has no thread to give, LACONIC_INTERNAL.
 */
int laconic_isend(const void* buf, size_t count, laconic_dtype dtype, int dest, int tag, laconic_comm* comm,
                  const laconic_options* options, laconic_request** request);
int laconic_irecv(void* buf, size_t count, laconic_dtype dtype, int source, int tag, size_t* received,
                  laconic_comm* comm, const laconic_options* options, laconic_request** request);
int laconic_isendrecv(const void* sendbuf, size_t sendcount, laconic_dtype sendtype, int dest, int sendtag,
                      void* recvbuf, size_t recvcount, laconic_dtype recvtype, int source, int recvtag,
                      size_t* received, laconic_comm* comm, const laconic_options* options, laconic_request** request);

/* Compression of one array, without communication; any number of threads at a time. laconic_compress_capacity: most
 * bytes that it can take (at most 1.02 of the array's and 64), whatever the options; 0 for a dtype that is none, and
 * for an array of more than PTRDIFF_MAX bytes. *written: bytes of the stream. Of the options bound, threads and codec
 * count; a codec that was not built, or that has no use for dtype or bound, is LACONIC_UNSUPPORTED. */
size_t laconic_compress_capacity(size_t count, laconic_dtype dtype);
int laconic_compress(const void* data, size_t count, laconic_dtype dtype, void* stream, size_t capacity,
                     size_t* written, const laconic_options* options);
/* Looks at header, table and checksum: damage is seen. What somebody forged with the right checksum is
 * LACONIC_CORRUPT when it is decompressed. */
int laconic_inspect(const void* stream, size_t size, laconic_info* info);
/* count and dtype must be the stream's own. threads: 0: LACONIC_THREADS, else 1. */
int laconic_decompress(const void* stream, size_t size, void* data, size_t count, laconic_dtype dtype, int threads);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*) */
