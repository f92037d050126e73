/* Laconic over NCCL: on arrays in the memory of GPUs, between ranks of a communicator of the program's. Link
 * liblaconic-over-nccl. See docs/guide.md.
 *
 *   laconic_nccl_allreduce(gradients, gradients, n, ncclFloat32, ncclAvg, comm, stream, &options);
 */
/* NOLINTBEGIN(modernize-*): this is C */
#ifndef LACONIC_LACONIC_NCCL_H
#define LACONIC_LACONIC_NCCL_H

#include <laconic/laconic_gpu.h>
#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over `nccl`, which is split and need not live longer than this call. NCCL must have nothing under way on
 * it: what `stream` has been given is waited for, other streams are the caller's affair. Arrays lie in the memory of
 * the current device, which must be the communicator's; see laconic_comm_use_device. On failure *comm is NULL. There
 * are no messages between two ranks. The first non-blocking call waits for that of the other ranks: what such calls
 * need is made then. While one is under way its NCCL kernels wait on the GPU beside those of blocking calls and of the
 * program's own, and ranks may begin these in different orders: the GPU must be able to run both (so not with
 * CUDA_DEVICE_MAX_CONNECTIONS=1), or none may be made meanwhile. */
int laconic_comm_from_nccl(ncclComm_t nccl, laconic_stream stream, laconic_comm** comm);

/* NCCL's collectives, with its arguments, within a bound: ncclFloat32, ncclFloat64, ncclFloat16, ncclBfloat16 and 32
 * and 64 bit integers; ncclSum, ncclAvg, ncclMin, ncclMax. They work on `stream` after what that has been given before,
 * and what it is given afterwards finds the result. What is compressed is there when they return; what is left to NCCL
 * is an operation of `comm`'s own, and may still be under way (or stuck, where that is why a later call fails with
 * LACONIC_TRANSPORT: as with NCCL's own calls, only aborting `comm` ends it, and laconic_nccl_abandon is to be called
 * before, not laconic_nccl_release). So not between ncclGroupStart and ncclGroupEnd, and not
 * while the stream is being captured. What they need for a communicator is made in the first call and freed by
 * laconic_nccl_release; until that call, NCCL must have nothing under way on other streams than `stream`. NULL options:
 * the environment's. Return a laconic_error. Thread safe for different communicators. */
int laconic_nccl_allreduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, laconic_stream stream, const laconic_options* options);
/* recvbuff is of interest on the root only. */
int laconic_nccl_reduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, laconic_stream stream, const laconic_options* options);
/* In place: recvbuff == sendbuff + rank * recvcount. */
int laconic_nccl_reduce_scatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, laconic_stream stream, const laconic_options* options);
/* sendbuff is of interest on the root only; the root too holds afterwards what the others got. */
int laconic_nccl_broadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, laconic_stream stream, const laconic_options* options);
/* In place: sendbuff == recvbuff + rank * sendcount. */
int laconic_nccl_allgather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, laconic_stream stream, const laconic_options* options);

/* Of the last call on `comm` that succeeded, or of all of them. */
int laconic_nccl_last(ncclComm_t comm, laconic_stats* stats);
int laconic_nccl_total(ncclComm_t comm, laconic_stats* stats);

/* To be called by all ranks before ncclCommDestroy; a communicator that Laconic has nothing for is allowed. */
int laconic_nccl_release(ncclComm_t comm);
/* The same before ncclCommAbort or ncclCommRevoke, from any thread: waits for nobody. A call that waits for other ranks
 * there ends at once with LACONIC_TRANSPORT. What there was is freed when there is next something to be made for a
 * communicator. */
int laconic_nccl_abandon(ncclComm_t comm);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*) */
