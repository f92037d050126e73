// What Laconic itself calls of NCCL, under the names that nobody intercepts: looked up when called, so that the drop-in
// library can be loaded into programs that have no NCCL, or not yet.
#include "preload/nccl/next.h"

using laconic::preload::Next;
using laconic::preload::plainly;

// NOLINTBEGIN(cppcoreguidelines-macro-usage,bugprone-macro-parentheses): parameters and arguments are lists
#define LACONIC_FORWARD(name, parameters, ...)           \
  ncclResult_t name parameters {                         \
    static Next<decltype(&name)> function(#name);        \
    return plainly(function __VA_OPT__(, ) __VA_ARGS__); \
  }
// NOLINTEND(cppcoreguidelines-macro-usage,bugprone-macro-parentheses)

extern "C" {

LACONIC_FORWARD(pncclGetVersion, (int* version), version)
LACONIC_FORWARD(pncclCommCount, (ncclComm_t comm, int* count), comm, count)
LACONIC_FORWARD(pncclCommCuDevice, (ncclComm_t comm, int* device), comm, device)
LACONIC_FORWARD(pncclCommUserRank, (ncclComm_t comm, int* rank), comm, rank)
LACONIC_FORWARD(pncclCommSplit, (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config), comm,
                color, key, newcomm, config)
LACONIC_FORWARD(pncclCommFinalize, (ncclComm_t comm), comm)
LACONIC_FORWARD(pncclCommDestroy, (ncclComm_t comm), comm)
LACONIC_FORWARD(pncclCommAbort, (ncclComm_t comm), comm)
LACONIC_FORWARD(pncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError), comm, asyncError)
LACONIC_FORWARD(pncclGroupStart, ())
LACONIC_FORWARD(pncclGroupEnd, ())
LACONIC_FORWARD(pncclSend,
                (const void* sendbuff, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                 cudaStream_t stream),
                sendbuff, count, type, peer, comm, stream)
LACONIC_FORWARD(pncclRecv,
                (void* recvbuff, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),
                recvbuff, count, type, peer, comm, stream)
LACONIC_FORWARD(pncclAllGather,
                (const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream),
                send, recv, count, type, comm, stream)
LACONIC_FORWARD(pncclAllReduce,
                (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                 cudaStream_t stream),
                send, recv, count, type, op, comm, stream)
LACONIC_FORWARD(pncclReduce,
                (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                 ncclComm_t comm, cudaStream_t stream),
                send, recv, count, type, op, root, comm, stream)
LACONIC_FORWARD(pncclBroadcast,
                (const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                 cudaStream_t stream),
                send, recv, count, type, root, comm, stream)
LACONIC_FORWARD(pncclReduceScatter,
                (const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                 cudaStream_t stream),
                send, recv, count, type, op, comm, stream)

const char* pncclGetErrorString(ncclResult_t result) {
  static Next<decltype(&pncclGetErrorString)> next("pncclGetErrorString");
  const auto function = next.get();
  return function == nullptr ? "an error of NCCL's" : function(result);
}

const char* pncclGetLastError(ncclComm_t comm) {
  static Next<decltype(&pncclGetLastError)> next("pncclGetLastError");
  const auto function = next.get();
  return function == nullptr ? "" : function(comm);
}

}  // extern "C"
