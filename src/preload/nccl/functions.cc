// The NCCL functions that the drop-in library takes the place of: collectives, groups, messages, which only what is
// served in their group has to do with, and what makes and ends communicators. Whatever it does not serve goes to the
// library behind it, untouched: calls on a stream that is being captured, of types and operations that it does not
// have, and those that no rule is for.
#include <nccl.h>

#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/of_thread.h"
#include "core/thread.h"
#include "preload/nccl/deferred.h"
#include "preload/nccl/names.h"
#include "preload/nccl/next.h"
#include "preload/nccl/runtime.h"
#include "transport/nccl/types.h"

#define LACONIC_EXPORT __attribute__((visibility("default")))

namespace laconic::preload {
namespace {

/// What has no operation gives none.
struct Types {
  ncclDataType_t datatype;
  std::optional<ncclRedOp_t> op;
};

using Plain = std::function<ncclResult_t()>;

/// This thread's.
struct Group {
  int depth = 0;
  GroupCalls calls;
  std::vector<ncclComm_t> parents;  ///< of communicators that are split off

  /// Whether that ends the outermost one.
  bool leave() {
    if (depth == 0) return false;
    --depth;
    return depth == 0;
  }
};
Group& group() {
  thread_local OfThread<Group> open;
  return open.get();
}

/// Whether Laconic has the call's type and operation; they are in `call` then.
bool is_known(gpu::NcclCall& call, const Types& types) {
  const auto dtype = nccl::dtype_of(types.datatype);
  const auto op = types.op ? nccl::op_of(*types.op) : Op::none;
  if (!dtype || !op || *op == Op::product || (*op == Op::average && !is_float(*dtype))) return false;
  call.dtype = *dtype;
  call.op = *op;
  return true;
}

/// Of every call that NCCL makes: what is served in its group may have to do with its stream.
void note_given(ncclComm_t comm, cudaStream_t stream) {
  if (group().depth != 0) group().calls.given.push_back({comm, stream});
}

/// Every intercepted collective.
ncclResult_t take(gpu::NcclCall call, const Types& types, ncclComm_t comm, cudaStream_t stream, Plain plain) {
  NcclRuntime* const runtime = NcclRuntime::get();
  if (runtime == nullptr) return plain();
  if (!is_known(call, types)) {
    runtime->pass("a type or an operation that Laconic does not have");
    note_given(comm, stream);
    return plain();
  }
  const auto rule = runtime->may_serve(call, comm, stream);
  if (!rule) {
    note_given(comm, stream);
    return plain();
  }
  if (group().depth == 0) {
    const auto done = runtime->serve(call, *rule, comm, stream, true);
    return done ? *done : plain();
  }
  int device = 0;
  if (const ncclResult_t asked = pncclCommCuDevice(comm, &device); asked != ncclSuccess) return asked;
  group().calls.calls.push_back({call, *rule, comm, device, stream, std::move(plain), runtime->stop_of(comm)});
  return ncclSuccess;
}

/// Null: no rule asks for names.
NcclNames* names() {
  NcclRuntime* const runtime = NcclRuntime::get();
  return runtime == nullptr ? nullptr : runtime->names();
}

bool is_error(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }

/// After NCCL has made a communicator, which need not be ready yet.
void note_made(ncclResult_t result, const ncclComm_t* made, const ncclConfig_t* config) {
  NcclNames* const all = names();
  if (all == nullptr || is_error(result)) return;
  all->note(*made, config != nullptr ? name_in(*config) : std::string());
}

/// What has come of all that NCCL was to do with a communicator.
void note_outcome(ncclResult_t result, ncclComm_t comm) {
  NcclNames* const all = names();
  if (all == nullptr || result == ncclInProgress) return;
  if (result == ncclSuccess) return all->settle(comm);
  all->give_up(comm);
}

/// After one was split off, or is being. Without a config it has its parent's.
void note_split(ncclResult_t result, ncclComm_t parent, ncclComm_t* made, const ncclConfig_t* config) {
  NcclNames* const all = names();
  if (all == nullptr || is_error(result)) return;
  all->expect(parent, made, config != nullptr ? name_in(*config) : all->of(parent));
  if (group().depth == 0) return note_outcome(result, parent);
  group().parents.push_back(parent);
}

/// The outermost one. `plain` ends NCCL's, and with that what was split off in it.
ncclResult_t end_group(const Plain& plain) {
  GroupCalls calls = std::exchange(group().calls, {});
  const auto end = [&] {
    const ncclResult_t result = plain();
    for (const ncclComm_t parent : std::exchange(group().parents, {})) note_outcome(result, parent);
    return result;
  };
  return calls.calls.empty() ? end() : calls.make(*NcclRuntime::get(), end);
}

/// Before NCCL takes the communicator down. What Laconic has for it goes now, and would, in a thread with an open
/// group, go when that ends: so on another one there.
void release(ncclComm_t comm) {
  NcclRuntime* const runtime = NcclRuntime::get();
  if (runtime == nullptr) return;
  if (group().depth == 0) return runtime->release(comm);
  try {
    Thread([&] {
      int device = 0;
      if (pncclCommCuDevice(comm, &device) == ncclSuccess) cudaSetDevice(device);
      runtime->release(comm);
    });
  } catch (const std::system_error&) {
    runtime->abandon(comm);
  }
}

}  // namespace
}  // namespace laconic::preload

namespace preload = laconic::preload;
using laconic::Collective;

extern "C" {

LACONIC_EXPORT ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                          ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  static preload::Next<decltype(&ncclAllReduce)> plain("ncclAllReduce");
  return preload::take({.collective = Collective::allreduce, .send = sendbuff, .recv = recvbuff, .count = count},
                       {datatype, op}, comm, stream,
                       [=] { return preload::plainly(plain, sendbuff, recvbuff, count, datatype, op, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                       ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  static preload::Next<decltype(&ncclReduce)> plain("ncclReduce");
  return preload::take(
      {.collective = Collective::reduce, .send = sendbuff, .recv = recvbuff, .count = count, .root = root},
      {datatype, op}, comm, stream,
      [=] { return preload::plainly(plain, sendbuff, recvbuff, count, datatype, op, root, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                              ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                              cudaStream_t stream) {
  static preload::Next<decltype(&ncclReduceScatter)> plain("ncclReduceScatter");
  return preload::take(
      {.collective = Collective::reduce_scatter, .send = sendbuff, .recv = recvbuff, .count = recvcount},
      {datatype, op}, comm, stream,
      [=] { return preload::plainly(plain, sendbuff, recvbuff, recvcount, datatype, op, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  static preload::Next<decltype(&ncclAllGather)> plain("ncclAllGather");
  return preload::take({.collective = Collective::allgather, .send = sendbuff, .recv = recvbuff, .count = sendcount},
                       {datatype, {}}, comm, stream,
                       [=] { return preload::plainly(plain, sendbuff, recvbuff, sendcount, datatype, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                          int root, ncclComm_t comm, cudaStream_t stream) {
  static preload::Next<decltype(&ncclBroadcast)> plain("ncclBroadcast");
  return preload::take(
      {.collective = Collective::bcast, .send = sendbuff, .recv = recvbuff, .count = count, .root = root},
      {datatype, {}}, comm, stream,
      [=] { return preload::plainly(plain, sendbuff, recvbuff, count, datatype, root, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                                      cudaStream_t stream) {
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                                     ncclComm_t comm, cudaStream_t stream) {
  static preload::Next<decltype(&ncclSend)> plain("ncclSend");
  preload::note_given(comm, stream);
  return preload::plainly(plain, sendbuff, count, datatype, peer, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                                     cudaStream_t stream) {
  static preload::Next<decltype(&ncclRecv)> plain("ncclRecv");
  preload::note_given(comm, stream);
  return preload::plainly(plain, recvbuff, count, datatype, peer, comm, stream);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
LACONIC_EXPORT ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                         ncclComm_t comm, cudaStream_t stream) {
  static preload::Next<decltype(&ncclAlltoAll)> plain("ncclAlltoAll");
  preload::note_given(comm, stream);
  return preload::plainly(plain, sendbuff, recvbuff, count, datatype, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                       int root, ncclComm_t comm, cudaStream_t stream) {
  static preload::Next<decltype(&ncclGather)> plain("ncclGather");
  preload::note_given(comm, stream);
  return preload::plainly(plain, sendbuff, recvbuff, count, datatype, root, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                        int root, ncclComm_t comm, cudaStream_t stream) {
  static preload::Next<decltype(&ncclScatter)> plain("ncclScatter");
  preload::note_given(comm, stream);
  return preload::plainly(plain, sendbuff, recvbuff, count, datatype, root, comm, stream);
}
#endif

LACONIC_EXPORT ncclResult_t ncclGroupStart() {
  static preload::Next<decltype(&ncclGroupStart)> plain("ncclGroupStart");
  const ncclResult_t result = preload::plainly(plain);
  if (result == ncclSuccess) ++preload::group().depth;
  return result;
}

LACONIC_EXPORT ncclResult_t ncclGroupEnd() {
  static preload::Next<decltype(&ncclGroupEnd)> plain("ncclGroupEnd");
  const auto end = [] { return preload::plainly(plain); };
  return preload::group().leave() ? preload::end_group(end) : end();
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
/// Ends a group whose calls are not made.
LACONIC_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  static preload::Next<decltype(&ncclGroupSimulateEnd)> plain("ncclGroupSimulateEnd");
  auto& group = preload::group();
  if (group.leave()) {
    for (const ncclComm_t parent : std::exchange(group.parents, {})) preload::names()->give_up(parent);
    for (const auto& d : std::exchange(group.calls, {}).calls) d.plain();
  }
  return preload::plainly(plain, info);
}
#endif

LACONIC_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                                   ncclConfig_t* config) {
  static preload::Next<decltype(&ncclCommInitRankConfig)> plain("ncclCommInitRankConfig");
  const ncclResult_t result = preload::plainly(plain, comm, nranks, commId, rank, config);
  preload::note_made(result, comm, config);
  return result;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
LACONIC_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                                     ncclUniqueId* commIds, ncclConfig_t* config) {
  static preload::Next<decltype(&ncclCommInitRankScalable)> plain("ncclCommInitRankScalable");
  const ncclResult_t result = preload::plainly(plain, newcomm, nranks, myrank, nId, commIds, config);
  preload::note_made(result, newcomm, config);
  return result;
}
#endif

LACONIC_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                                          ncclConfig_t* config) {
  static preload::Next<decltype(&ncclCommSplit)> plain("ncclCommSplit");
  const ncclResult_t result = preload::plainly(plain, comm, color, key, newcomm, config);
  if (color != NCCL_SPLIT_NOCOLOR) preload::note_split(result, comm, newcomm, config);
  return result;
}

/// By which a program learns that what was split off is there, where it did not wait for that.
LACONIC_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  static preload::Next<decltype(&ncclCommGetAsyncError)> plain("ncclCommGetAsyncError");
  const ncclResult_t result = preload::plainly(plain, comm, asyncError);
  if (result == ncclSuccess) preload::note_outcome(*asyncError, comm);
  return result;
}

LACONIC_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  static preload::Next<decltype(&ncclCommFinalize)> plain("ncclCommFinalize");
  preload::release(comm);
  return preload::plainly(plain, comm);
}

LACONIC_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  static preload::Next<decltype(&ncclCommDestroy)> plain("ncclCommDestroy");
  preload::release(comm);
  return preload::plainly(plain, comm);
}

LACONIC_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  static preload::Next<decltype(&ncclCommAbort)> plain("ncclCommAbort");
  if (auto* const runtime = preload::NcclRuntime::get()) runtime->abandon(comm);
  return preload::plainly(plain, comm);
}

// The program's NCCL may be older than the header: it has no such functions then, and nothing is revoked.
#ifdef NCCL_REVOKE_DEFAULT
LACONIC_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  static preload::Next<decltype(&ncclCommRevoke)> plain("ncclCommRevoke");
  auto* const runtime = preload::NcclRuntime::get();
  if (plain.get() != nullptr && runtime != nullptr) runtime->revoke(comm);
  return preload::plainly(plain, comm, revokeFlags);
}
#endif

#ifdef NCCL_SHRINK_ABORT
/// The new communicator is like any other. The old one has nothing under way, or is told to end that: no more calls on
/// it are served then, since some of its ranks are gone.
LACONIC_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                                           ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  static preload::Next<decltype(&ncclCommShrink)> plain("ncclCommShrink");
  auto* const runtime = preload::NcclRuntime::get();
  if (plain.get() != nullptr && runtime != nullptr && (shrinkFlags & NCCL_SHRINK_ABORT) != 0) runtime->revoke(comm);
  const ncclResult_t result =
      preload::plainly(plain, comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags);
  preload::note_split(result, comm, newcomm, config);
  return result;
}
#endif

}  // extern "C"
