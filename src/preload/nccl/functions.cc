// The NCCL functions that the drop-in library takes the place of: collectives, groups, and what makes and ends
// communicators. Whatever it does not serve goes to the library behind it, untouched: calls on a stream that is being
// captured, of types and operations that it does not have, and those that no rule is for.
#include <nccl.h>

#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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
  std::vector<Deferred> calls;
  std::vector<ncclComm_t> parents;  ///< of communicators that are split off

  /// Whether that ends the outermost one.
  bool leave() {
    if (depth == 0) return false;
    --depth;
    return depth == 0;
  }
};
Group& group() {
  thread_local Group open;
  return open;
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

ncclResult_t perform(NcclRuntime& runtime, const Deferred& d) {
  const auto done = runtime.serve(d.call, d.rule, d.comm, d.stream, true);
  return done ? *done : d.plain();
}

/// Every intercepted collective.
ncclResult_t take(gpu::NcclCall call, const Types& types, ncclComm_t comm, cudaStream_t stream, Plain plain) {
  NcclRuntime* const runtime = NcclRuntime::get();
  if (runtime == nullptr) return plain();
  if (!is_known(call, types)) {
    runtime->pass("a type or an operation that Laconic does not have");
    return plain();
  }
  const auto rule = runtime->may_serve(call, comm, stream);
  if (!rule) return plain();
  Deferred d{call, *rule, comm, stream, std::move(plain)};
  if (group().depth == 0) return perform(*runtime, d);
  group().calls.push_back(std::move(d));
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

/// When that of NCCL has ended so: with what was split off in it, and with what was put aside.
ncclResult_t end_group(ncclResult_t result) {
  for (const ncclComm_t parent : std::exchange(group().parents, {})) note_outcome(result, parent);
  const std::vector<Deferred> calls = std::exchange(group().calls, {});
  if (calls.empty()) return result;
  for (const Deferred& d : calls) result = awaited(result, d.comm);
  return worse(result, make_all(*NcclRuntime::get(), calls));
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
  static const auto plain = preload::next<decltype(&ncclAllReduce)>("ncclAllReduce");
  return preload::take({.collective = Collective::allreduce, .send = sendbuff, .recv = recvbuff, .count = count},
                       {datatype, op}, comm, stream,
                       [=] { return preload::plainly(plain, sendbuff, recvbuff, count, datatype, op, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                       ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  static const auto plain = preload::next<decltype(&ncclReduce)>("ncclReduce");
  return preload::take(
      {.collective = Collective::reduce, .send = sendbuff, .recv = recvbuff, .count = count, .root = root},
      {datatype, op}, comm, stream,
      [=] { return preload::plainly(plain, sendbuff, recvbuff, count, datatype, op, root, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                              ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                              cudaStream_t stream) {
  static const auto plain = preload::next<decltype(&ncclReduceScatter)>("ncclReduceScatter");
  return preload::take(
      {.collective = Collective::reduce_scatter, .send = sendbuff, .recv = recvbuff, .count = recvcount},
      {datatype, op}, comm, stream,
      [=] { return preload::plainly(plain, sendbuff, recvbuff, recvcount, datatype, op, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  static const auto plain = preload::next<decltype(&ncclAllGather)>("ncclAllGather");
  return preload::take({.collective = Collective::allgather, .send = sendbuff, .recv = recvbuff, .count = sendcount},
                       {datatype, {}}, comm, stream,
                       [=] { return preload::plainly(plain, sendbuff, recvbuff, sendcount, datatype, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                          int root, ncclComm_t comm, cudaStream_t stream) {
  static const auto plain = preload::next<decltype(&ncclBroadcast)>("ncclBroadcast");
  return preload::take(
      {.collective = Collective::bcast, .send = sendbuff, .recv = recvbuff, .count = count, .root = root},
      {datatype, {}}, comm, stream,
      [=] { return preload::plainly(plain, sendbuff, recvbuff, count, datatype, root, comm, stream); });
}

LACONIC_EXPORT ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                                      cudaStream_t stream) {
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

LACONIC_EXPORT ncclResult_t ncclGroupStart() {
  static const auto plain = preload::next<decltype(&ncclGroupStart)>("ncclGroupStart");
  const ncclResult_t result = preload::plainly(plain);
  if (result == ncclSuccess) ++preload::group().depth;
  return result;
}

LACONIC_EXPORT ncclResult_t ncclGroupEnd() {
  static const auto plain = preload::next<decltype(&ncclGroupEnd)>("ncclGroupEnd");
  const bool outermost = preload::group().leave();
  const ncclResult_t result = preload::plainly(plain);
  return outermost ? preload::end_group(result) : result;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
/// Ends a group whose calls are not made.
LACONIC_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  static const auto plain = preload::next<decltype(&ncclGroupSimulateEnd)>("ncclGroupSimulateEnd");
  auto& group = preload::group();
  if (group.leave()) {
    for (const ncclComm_t parent : std::exchange(group.parents, {})) preload::names()->give_up(parent);
    for (const auto& d : std::exchange(group.calls, {})) d.plain();
  }
  return preload::plainly(plain, info);
}
#endif

LACONIC_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                                   ncclConfig_t* config) {
  static const auto plain = preload::next<decltype(&ncclCommInitRankConfig)>("ncclCommInitRankConfig");
  const ncclResult_t result = preload::plainly(plain, comm, nranks, commId, rank, config);
  preload::note_made(result, comm, config);
  return result;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
LACONIC_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                                     ncclUniqueId* commIds, ncclConfig_t* config) {
  static const auto plain = preload::next<decltype(&ncclCommInitRankScalable)>("ncclCommInitRankScalable");
  const ncclResult_t result = preload::plainly(plain, newcomm, nranks, myrank, nId, commIds, config);
  preload::note_made(result, newcomm, config);
  return result;
}
#endif

LACONIC_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                                          ncclConfig_t* config) {
  static const auto plain = preload::next<decltype(&ncclCommSplit)>("ncclCommSplit");
  const ncclResult_t result = preload::plainly(plain, comm, color, key, newcomm, config);
  if (color != NCCL_SPLIT_NOCOLOR) preload::note_split(result, comm, newcomm, config);
  return result;
}

/// By which a program learns that what was split off is there, where it did not wait for that.
LACONIC_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  static const auto plain = preload::next<decltype(&ncclCommGetAsyncError)>("ncclCommGetAsyncError");
  const ncclResult_t result = preload::plainly(plain, comm, asyncError);
  if (result == ncclSuccess) preload::note_outcome(*asyncError, comm);
  return result;
}

LACONIC_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  static const auto plain = preload::next<decltype(&ncclCommFinalize)>("ncclCommFinalize");
  preload::release(comm);
  return preload::plainly(plain, comm);
}

LACONIC_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  static const auto plain = preload::next<decltype(&ncclCommDestroy)>("ncclCommDestroy");
  preload::release(comm);
  return preload::plainly(plain, comm);
}

LACONIC_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm) {
  static const auto plain = preload::next<decltype(&ncclCommAbort)>("ncclCommAbort");
  if (auto* const runtime = preload::NcclRuntime::get()) runtime->abandon(comm);
  return preload::plainly(plain, comm);
}

// The program's NCCL may be older than the header: it has no such functions then, and nothing is revoked.
#ifdef NCCL_REVOKE_DEFAULT
LACONIC_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  static const auto plain = preload::next<decltype(&ncclCommRevoke)>("ncclCommRevoke");
  auto* const runtime = preload::NcclRuntime::get();
  if (plain != nullptr && runtime != nullptr) runtime->revoke(comm);
  return preload::plainly(plain, comm, revokeFlags);
}
#endif

#ifdef NCCL_SHRINK_ABORT
/// The new communicator is like any other. The old one has nothing under way, or is told to end that: no more calls on
/// it are served then, since some of its ranks are gone.
LACONIC_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                                           ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  static const auto plain = preload::next<decltype(&ncclCommShrink)>("ncclCommShrink");
  auto* const runtime = preload::NcclRuntime::get();
  if (plain != nullptr && runtime != nullptr && (shrinkFlags & NCCL_SHRINK_ABORT) != 0) runtime->revoke(comm);
  const ncclResult_t result =
      preload::plainly(plain, comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags);
  preload::note_split(result, comm, newcomm, config);
  return result;
}
#endif

}  // extern "C"
