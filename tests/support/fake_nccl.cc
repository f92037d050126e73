#include "support/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "support/fake_cuda.h"
#include "support/fake_nccl_group.h"

namespace laconic::fake {
namespace {

std::atomic<std::size_t> communicators = 0;
std::atomic<std::size_t> sends = 0, sent_bytes = 0, all_gathers = 0, senders = 0, lone_aborts = 0;

ncclResult_t worse(ncclResult_t a, ncclResult_t b) { return b == ncclSuccess ? a : b; }

ncclComm_t handle_of(const MemberPtr& member);
const MemberPtr& member_of(ncclComm_t comm);

// --- issuing it ---

void let_wait(cudaStream_t stream, cudaStream_t for_other) {
  cudaEvent_t now = nullptr;
  cudaEventCreate(&now);
  cudaEventRecord(now, for_other);
  cudaStreamWaitEvent(stream, now, 0);
  cudaEventDestroy(now);
}

/// After what all streams have been given; and they wait for its end.
void issue(const MemberPtr& m, const std::vector<cudaStream_t>& streams, const std::shared_ptr<Unit>& unit) {
  {
    const std::lock_guard lock(m->group->mutex);
    m->units.push_back(unit);
  }
  const cudaStream_t first = streams.front();
  for (std::size_t k = 1; k < streams.size(); ++k) let_wait(first, streams[k]);
  enqueue(first, [m, unit] { return advance(*m, unit); });
  for (std::size_t k = 1; k < streams.size(); ++k) let_wait(streams[k], first);
}

/// Calls of this thread since ncclGroupStart, by communicator.
struct OpenGroup {
  struct Calls {
    MemberPtr member;
    std::vector<cudaStream_t> streams;
    std::shared_ptr<Unit> unit;
  };
  struct Splitting {
    MemberPtr parent;
    ncclComm_t* place;
  };
  int depth = 0;
  std::vector<Calls> all;
  std::vector<MemberPtr> finalized;  ///< of those that do not block
  std::vector<MemberPtr> joining;    ///< so are these; and of those that block, which are waited for when it ends
  std::vector<Splitting> splitting;
};
thread_local OpenGroup open_group;

ncclResult_t launch(const OpenGroup::Calls& calls) {
  const MemberPtr& m = calls.member;
  if (m->blocking) {
    issue(m, calls.streams, calls.unit);
    return ncclSuccess;
  }
  m->launching.emplace_back(calls.streams, calls.unit);
  m->delay = 1;
  return ncclInProgress;
}

void require_reachable(const void* pointer) {
  cudaPointerAttributes a{};
  cudaPointerGetAttributes(&a, pointer);
  if (a.type == cudaMemoryTypeUnregistered) give_up("a buffer at %p that is neither device nor pinned memory", pointer);
}

/// Operand and result may be the same array, or lie in each other where NCCL says, and not overlap otherwise.
void require_in_place_or_apart(const Op& op, const Member& m) {
  const auto ranks = static_cast<std::size_t>(m.group->size), rank = static_cast<std::size_t>(m.rank);
  const std::size_t bytes = op.bytes();
  const auto from = reinterpret_cast<std::uintptr_t>(op.from), to = reinterpret_cast<std::uintptr_t>(op.to);
  const std::size_t read = op.kind == Kind::reduce_scatter ? ranks * bytes : bytes;
  const std::size_t written = op.kind == Kind::all_gather ? ranks * bytes : bytes;
  if (from + read <= to || to + written <= from) return;
  const std::uintptr_t place = op.kind == Kind::reduce_scatter ? from + rank * bytes : from;
  if (op.kind == Kind::all_gather ? from != to + rank * bytes : to != place) {
    give_up("operand and result of a collective overlap");
  }
}

ncclResult_t call(const Op& op, ncclComm_t comm, cudaStream_t stream) {
  const MemberPtr& m = member_of(comm);
  if (*m->error != ncclSuccess) return *m->error;
  if (is_withdrawn(*m)) return ncclInvalidUsage;
  if (op.peer < 0 || op.peer >= m->group->size || size_of(op.type) == 0) return ncclInvalidArgument;
  if (!m->launching.empty() || m->child != nullptr || m->group->missing > 0)
    give_up("a call while the one before it is in progress");
  const bool reads = op.kind != Kind::recv && (op.kind != Kind::broadcast || m->rank == op.peer);
  const bool writes = op.kind != Kind::send && (op.kind != Kind::reduce || m->rank == op.peer);
  if (reads && op.count != 0) require_reachable(op.from);
  if (writes && op.count != 0) require_reachable(op.to);
  if (reads && writes) require_in_place_or_apart(op, *m);
  if (op.kind == Kind::send) {
    ++sends, sent_bytes += op.bytes();
    if (!m->group->has_sent.exchange(true)) ++senders;
  }
  if (op.kind == Kind::all_gather) ++all_gathers;

  auto& all = open_group.all;
  auto calls = all.begin();
  while (calls != all.end() && calls->member != m) ++calls;
  if (calls == all.end()) calls = all.insert(all.end(), {m, {}, std::make_shared<Unit>()});
  if (std::ranges::find(calls->streams, stream) == calls->streams.end()) calls->streams.push_back(stream);
  calls->unit->ops.push_back(op);
  ++calls->unit->left;
  if (open_group.depth > 0) return ncclSuccess;
  const auto alone = std::exchange(all, {});
  return launch(alone.front());
}

// --- communicators ---

ncclComm_t handle_or_null(const MemberPtr& m) { return m == nullptr ? nullptr : handle_of(m); }

/// What the ranks join that have this number.
std::shared_ptr<Group> group_of(const ncclUniqueId& id, int ranks) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::uint64_t, std::weak_ptr<Group>>;
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  const std::lock_guard lock(mutex);
  auto group = all[number].lock();
  if (group == nullptr) {
    group = std::make_shared<Group>(ranks);
    group->missing = ranks;
    all[number] = group;
  }
  return group;
}

bool is_refused(const ncclConfig_t* config) { return config != nullptr && config->magic != 0xcafebeef; }

/// What a config says, or this.
bool blocks(const ncclConfig_t* config, bool otherwise) {
  return config != nullptr && config->blocking != NCCL_CONFIG_UNDEF_INT ? config->blocking != 0 : otherwise;
}

ncclResult_t await_all_ranks(const Member& m) {
  const double since = now();
  while (m.blocking && m.group->missing > 0) keep_waiting(since, "ncclCommInitRankConfig");
  return m.blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t join(ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank, const ncclConfig_t* config) {
  if (ranks < 1 || rank < 0 || rank >= ranks || is_refused(config)) return ncclInvalidArgument;
  const auto member = std::make_shared<Member>();
  member->group = group_of(id, ranks);
  member->rank = rank;
  member->blocking = blocks(config, true);
  cudaGetDevice(&member->device);
  *comm = handle_of(member);
  --member->group->missing;
  if (open_group.depth == 0) return await_all_ranks(*member);
  open_group.joining.push_back(member);
  return ncclSuccess;
}

/// Waits for the ranks where that was split off a communicator that blocks.
ncclResult_t await_split(const MemberPtr& m, ncclComm_t* place) {
  if (!m->blocking) return ncclInProgress;
  const double since = now();
  MemberPtr made;
  const bool revoked = is_withdrawn(*m);
  while (!try_split(*m, m->splits - 1, made)) {
    if (!revoked && is_withdrawn(*m)) return ncclInternalError;  // aborted meanwhile, by another thread
    keep_waiting(since, "ncclCommSplit");
  }
  *place = handle_or_null(made);
  return ncclSuccess;
}

/// Of ncclCommSplit and ncclCommShrink: by so many of the communicator's ranks.
ncclResult_t split(const MemberPtr& m, std::size_t callers, Split::Wish wish, ncclComm_t* child,
                   const ncclConfig_t* config) {
  if (!m->launching.empty() || m->child != nullptr) give_up("a split while a call is in progress");
  if (!idle(*m)) give_up("a split while operations are under way");
  if (is_refused(config)) return ncclInvalidArgument;
  wish.blocking = blocks(config, config != nullptr || m->blocking);
  const std::uint64_t number = m->splits++;
  {
    const std::lock_guard lock(m->group->mutex);
    Split& whole = m->group->splits[number];
    whole.callers = callers;
    whole.wishes[m->rank] = wish;
  }
  *child = nullptr;
  if (!m->blocking) m->child = child;
  if (open_group.depth == 0) return await_split(m, child);
  open_group.splitting.push_back({m, child});
  return ncclSuccess;
}

ncclResult_t progress(const MemberPtr& m) {
  if (m->is_held && !m->launching.empty()) return ncclInProgress;
  if (m->delay > 0) {
    --m->delay;
    return ncclInProgress;
  }
  for (const auto& [streams, unit] : std::exchange(m->launching, {})) issue(m, streams, unit);
  if (m->group->missing > 0) return ncclInProgress;
  if (m->child != nullptr) {
    MemberPtr child;
    if (!try_split(*m, m->splits - 1, child)) return ncclInProgress;
    *std::exchange(m->child, nullptr) = handle_or_null(child);
  }
  return ncclSuccess;
}

}  // namespace

void set_async_error(ncclComm_t comm, ncclResult_t error) { *member_of(comm)->error = error; }
void hold_launches(ncclComm_t comm) { member_of(comm)->is_held = true; }
std::size_t live_communicators() { return communicators; }
Traffic traffic() { return {sends, sent_bytes, all_gathers, senders, lone_aborts}; }

}  // namespace laconic::fake

using namespace laconic::fake;  // NOLINT(google-build-using-namespace): the functions of a C API

struct ncclComm {
  MemberPtr member;
};

namespace laconic::fake {
namespace {
ncclComm_t handle_of(const MemberPtr& member) {
  ++communicators;
  return new ncclComm{member};
}
const MemberPtr& member_of(ncclComm_t comm) {
  if (comm == nullptr) give_up("a call without a communicator");
  if (comm->member == nullptr) give_up("a call on a communicator that is gone");
  return comm->member;
}

/// Its memory is kept, so that whoever uses it after that is found out.
void release(ncclComm_t comm) {
  static std::mutex mutex;
  static auto& gone = *new std::vector<ncclComm_t>;
  --communicators;
  comm->member = nullptr;
  const std::lock_guard lock(mutex);
  gone.push_back(comm);
}
}  // namespace
}  // namespace laconic::fake

ncclResult_t pncclGetVersion(int* version) {
  const char* const said = std::getenv("FAKE_NCCL_VERSION");  // NOLINT(concurrency-mt-unsafe)
  *version = said != nullptr ? std::atoi(said) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* pncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "an error that the fake NCCL has no name for";
  }
}
const char* pncclGetLastError(ncclComm_t) { return "the fake NCCL keeps no last error"; }

ncclResult_t pncclCommInitAll(ncclComm_t* comms, int ranks, const int* devices) {
  if (ranks < 1) return ncclInvalidArgument;
  const auto group = std::make_shared<Group>(ranks);
  int device_count = 1;
  cudaGetDeviceCount(&device_count);
  for (int r = 0; r < ranks; ++r) {
    const auto member = std::make_shared<Member>();
    member->group = group;
    member->rank = r;
    member->device = devices != nullptr ? devices[r] : r % device_count;
    comms[r] = handle_of(member);
  }
  return ncclSuccess;
}

ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<std::uint64_t> last = 0;
  const std::uint64_t number = ++last;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return join(comm, ranks, id, rank, config);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
ncclResult_t pncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int count, ncclUniqueId* ids,
                                       ncclConfig_t* config) {
  return count < 1 || count > ranks ? ncclInvalidArgument : join(comm, ranks, ids[0], rank, config);
}
#endif

ncclResult_t pncclCommCount(ncclComm_t comm, int* count) {
  if (member_of(comm)->group->missing > 0) return ncclInvalidArgument;
  *count = member_of(comm)->group->size;
  return ncclSuccess;
}
ncclResult_t pncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = member_of(comm)->rank;
  return ncclSuccess;
}
ncclResult_t pncclCommCuDevice(ncclComm_t comm, int* device) {
  *device = member_of(comm)->device;
  return ncclSuccess;
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  const MemberPtr m = member_of(comm);  // which another thread may abort meanwhile
  if (*m->error != ncclSuccess) return *m->error;
  return split(m, static_cast<std::size_t>(m->group->size), {.color = color, .key = key}, child, config);
}

#ifdef NCCL_SHRINK_ABORT
ncclResult_t pncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* child, ncclConfig_t* config,
                             int flags) {
  const MemberPtr m = member_of(comm);
  for (int i = 0; i < count; ++i) {
    if (excluded[i] == m->rank) return ncclInvalidArgument;
  }
  if ((flags & NCCL_SHRINK_ABORT) != 0) withdraw(*m);
  return split(m, static_cast<std::size_t>(m->group->size - count), {.key = m->rank}, child, config);
}
#endif

#ifdef NCCL_REVOKE_DEFAULT
ncclResult_t pncclCommRevoke(ncclComm_t comm, int flags) {
  if (flags != NCCL_REVOKE_DEFAULT) return ncclInvalidArgument;
  withdraw(*member_of(comm));
  return ncclSuccess;
}
#endif

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  const MemberPtr& m = member_of(comm);
  const double since = now();
  while (!idle(*m)) keep_waiting(since, "ncclCommFinalize");
  if (m->blocking) return ncclSuccess;
  m->delay = 1;
  if (open_group.depth > 0) {
    m->delay = std::numeric_limits<int>::max();
    open_group.finalized.push_back(m);
  }
  return ncclInProgress;
}

ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  if (!idle(*member_of(comm))) give_up("a communicator is destroyed while operations are under way");
  release(comm);
  return ncclSuccess;
}

ncclResult_t pncclCommAbort(ncclComm_t comm) {
  if (open_group.depth == 0) ++lone_aborts;
  withdraw(*member_of(comm));
  release(comm);
  return ncclSuccess;
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const MemberPtr& m = member_of(comm);
  *error = *m->error != ncclSuccess ? m->error->load() : progress(m);
  return ncclSuccess;
}

ncclResult_t pncclGroupStart() {
  ++open_group.depth;
  return ncclSuccess;
}

ncclResult_t pncclGroupEnd() {
  if (open_group.depth == 0) return ncclInvalidUsage;
  if (--open_group.depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (const auto& m : std::exchange(open_group.finalized, {})) m->delay = 1;
  for (const auto& m : std::exchange(open_group.joining, {})) result = worse(result, await_all_ranks(*m));
  for (const auto& [parent, place] : std::exchange(open_group.splitting, {}))
    result = worse(result, await_split(parent, place));
  for (const auto& calls : std::exchange(open_group.all, {})) {
    result = worse(result, launch(calls));
  }
  return result;
}

ncclResult_t pncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                       cudaStream_t stream) {
  return call({Kind::send, from, nullptr, count, type, ncclSum, peer}, comm, stream);
}
ncclResult_t pncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::recv, nullptr, to, count, type, ncclSum, peer}, comm, stream);
}
ncclResult_t pncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                            cudaStream_t stream) {
  return call({Kind::all_gather, from, to, count, type, ncclSum, 0}, comm, stream);
}
ncclResult_t pncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::all_reduce, from, to, count, type, op, 0}, comm, stream);
}
ncclResult_t pncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::reduce, from, to, count, type, op, root}, comm, stream);
}
ncclResult_t pncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream) {
  return call({Kind::broadcast, from, to, count, type, ncclSum, root}, comm, stream);
}
ncclResult_t pncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream) {
  return call({Kind::reduce_scatter, from, to, count, type, op, 0}, comm, stream);
}

// As in NCCL, the public names are weak: a library that stands before them may have its own.
#define ALIAS(name) extern "C" decltype(p##name) name __attribute__((weak, alias("p" #name)))
ALIAS(ncclGetVersion);
ALIAS(ncclGetErrorString);
ALIAS(ncclGetLastError);
ALIAS(ncclCommInitAll);
ALIAS(ncclGetUniqueId);
ALIAS(ncclCommInitRankConfig);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
ALIAS(ncclCommInitRankScalable);
#endif
ALIAS(ncclCommCount);
ALIAS(ncclCommUserRank);
ALIAS(ncclCommCuDevice);
ALIAS(ncclCommSplit);
#ifdef NCCL_SHRINK_ABORT
ALIAS(ncclCommShrink);
#endif
#ifdef NCCL_REVOKE_DEFAULT
ALIAS(ncclCommRevoke);
#endif
ALIAS(ncclCommFinalize);
ALIAS(ncclCommDestroy);
ALIAS(ncclCommAbort);
ALIAS(ncclCommGetAsyncError);
ALIAS(ncclGroupStart);
ALIAS(ncclGroupEnd);
ALIAS(ncclSend);
ALIAS(ncclRecv);
ALIAS(ncclAllGather);
ALIAS(ncclAllReduce);
ALIAS(ncclReduce);
ALIAS(ncclBroadcast);
ALIAS(ncclReduceScatter);
