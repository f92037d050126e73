// The NCCL functions that the drop-in library takes the place of. Whatever it does not serve goes to the library behind
// it, untouched: calls within a group, on a stream that is being captured, of types and operations that it does not
// have, and those that no rule is for.
#include <dlfcn.h>
#include <nccl.h>

#include "preload/nccl/runtime.h"

#define LACONIC_EXPORT __attribute__((visibility("default")))

namespace laconic::preload {
namespace {

/// ncclGroupStart less ncclGroupEnd of this thread.
int& group_depth() {
  thread_local int depth = 0;
  return depth;
}

/// Of the same name, in the program's NCCL. That may have been loaded for one library alone (as Python loads its
/// modules' libraries), where nobody else finds it.
template <typename Function>
Function next(const char* name) {
  if (void* const found = ::dlsym(RTLD_NEXT, name)) return reinterpret_cast<Function>(found);
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, (std::string("p") + name).c_str()));
}

/// Before NCCL's own functions are called from here for the first time.
void find_nccl() {
  static const bool once = [] {
    return ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) != nullptr;
  }();
  static_cast<void>(once);
}

/// What has no operation gives none.
struct Types {
  ncclDataType_t datatype;
  std::optional<ncclRedOp_t> op;
};

std::optional<ncclResult_t> serve(gpu::NcclCall call, const Types& types, ncclComm_t comm, cudaStream_t stream) {
  find_nccl();
  NcclRuntime* const runtime = NcclRuntime::get();
  if (runtime == nullptr) return std::nullopt;
  if (group_depth() != 0) {
    runtime->pass("within ncclGroupStart and ncclGroupEnd");
    return std::nullopt;
  }
  const auto dtype = gpu::dtype_of(types.datatype);
  const auto op = types.op ? gpu::op_of(*types.op) : Op::none;
  if (!dtype || !op || (*op == Op::average && !is_float(*dtype))) {
    runtime->pass("a type or an operation that Laconic does not have");
    return std::nullopt;
  }
  call.dtype = *dtype;
  call.op = *op;
  return runtime->serve(call, comm, stream);
}

}  // namespace
}  // namespace laconic::preload

namespace preload = laconic::preload;
using laconic::Collective;

extern "C" {

LACONIC_EXPORT ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                          ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  if (const auto done = preload::serve(
          {.collective = Collective::allreduce, .send = sendbuff, .recv = recvbuff, .count = count}, {datatype, op},
          comm, stream)) {
    return *done;
  }
  static const auto plain = preload::next<decltype(&ncclAllReduce)>("ncclAllReduce");
  return plain(sendbuff, recvbuff, count, datatype, op, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                       ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  if (const auto done = preload::serve(
          {.collective = Collective::reduce, .send = sendbuff, .recv = recvbuff, .count = count, .root = root},
          {datatype, op}, comm, stream)) {
    return *done;
  }
  static const auto plain = preload::next<decltype(&ncclReduce)>("ncclReduce");
  return plain(sendbuff, recvbuff, count, datatype, op, root, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                              ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                              cudaStream_t stream) {
  if (const auto done = preload::serve(
          {.collective = Collective::reduce_scatter, .send = sendbuff, .recv = recvbuff, .count = recvcount},
          {datatype, op}, comm, stream)) {
    return *done;
  }
  static const auto plain = preload::next<decltype(&ncclReduceScatter)>("ncclReduceScatter");
  return plain(sendbuff, recvbuff, recvcount, datatype, op, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  if (const auto done = preload::serve(
          {.collective = Collective::allgather, .send = sendbuff, .recv = recvbuff, .count = sendcount},
          {datatype, {}}, comm, stream)) {
    return *done;
  }
  static const auto plain = preload::next<decltype(&ncclAllGather)>("ncclAllGather");
  return plain(sendbuff, recvbuff, sendcount, datatype, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                          int root, ncclComm_t comm, cudaStream_t stream) {
  if (const auto done = preload::serve(
          {.collective = Collective::bcast, .send = sendbuff, .recv = recvbuff, .count = count, .root = root},
          {datatype, {}}, comm, stream)) {
    return *done;
  }
  static const auto plain = preload::next<decltype(&ncclBroadcast)>("ncclBroadcast");
  return plain(sendbuff, recvbuff, count, datatype, root, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                                      cudaStream_t stream) {
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclGroupStart() {
  static const auto plain = preload::next<decltype(&ncclGroupStart)>("ncclGroupStart");
  ++preload::group_depth();
  return plain();
}

LACONIC_EXPORT ncclResult_t ncclGroupEnd() {
  static const auto plain = preload::next<decltype(&ncclGroupEnd)>("ncclGroupEnd");
  if (preload::group_depth() > 0) --preload::group_depth();
  return plain();
}

LACONIC_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  static const auto plain = preload::next<decltype(&ncclCommFinalize)>("ncclCommFinalize");
  if (auto* const runtime = preload::NcclRuntime::get()) runtime->release(comm);
  return plain(comm);
}

LACONIC_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  static const auto plain = preload::next<decltype(&ncclCommDestroy)>("ncclCommDestroy");
  if (auto* const runtime = preload::NcclRuntime::get()) runtime->release(comm);
  return plain(comm);
}

LACONIC_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  static const auto plain = preload::next<decltype(&ncclCommAbort)>("ncclCommAbort");
  if (auto* const runtime = preload::NcclRuntime::get()) runtime->abandon(comm);
  return plain(comm);
}

}  // extern "C"
