#include "support/fake_nccl.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "support/fake_cuda.h"
#include "support/fake_nccl_reduce.h"

namespace laconic::fake {
namespace {

enum class Kind { send, recv, all_gather, all_reduce, reduce, broadcast, reduce_scatter };

struct Op {
  Kind kind;
  const void* from;
  void* to;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;  ///< or root
  [[nodiscard]] std::size_t bytes() const { return count * size_of(type); }
  [[nodiscard]] auto signature() const { return std::tuple(kind, count, type, op, peer); }
};

/// What one rank issued at once: one call, or the calls of a group. Done when nothing is left.
struct Unit {
  std::vector<Op> ops;
  std::size_t left = 0;
  bool begun = false;
};

struct Posted {
  Op op;
  std::shared_ptr<Unit> unit;
};

struct Member;

/// A call of ncclCommSplit by all ranks.
struct Split {
  struct Wish {
    int color = 0, key = 0;
    bool blocking = true;
  };
  std::map<int, Wish> wishes;                       ///< by rank
  std::map<int, std::shared_ptr<Member>> children;  ///< when all have come
};

/// What the ranks of a communicator share. All of it, and of its members, under the mutex.
struct Group {
  explicit Group(int ranks) : size(ranks) {}
  const int size;
  std::mutex mutex;
  std::map<std::uint64_t, std::map<int, Posted>> collectives;      ///< by number, by rank
  std::map<std::pair<int, int>, std::deque<Posted>> sends, recvs;  ///< from, to
  std::map<std::uint64_t, Split> splits;
};

/// One rank's part of a communicator. Outlives its handle for as long as a stream has work of it.
struct Member {
  std::shared_ptr<Group> group;
  int rank = 0;
  int device = 0;
  bool blocking = true;
  std::shared_ptr<std::atomic<ncclResult_t>> error = std::make_shared<std::atomic<ncclResult_t>>(ncclSuccess);
  bool aborted = false;
  std::deque<std::shared_ptr<Unit>> units;  ///< issued and not done
  std::uint64_t collectives = 0, splits = 0;
  // Of a communicator that does not block: what it is at.
  std::vector<std::pair<cudaStream_t, std::shared_ptr<Unit>>> launching;
  int delay = 0;  ///< how often it still says ncclInProgress
  ncclComm_t* child = nullptr;
};
using MemberPtr = std::shared_ptr<Member>;

std::atomic<std::size_t> communicators = 0;
std::atomic<std::size_t> sends = 0, sent_bytes = 0, all_gathers = 0;

ncclComm_t handle_of(const MemberPtr& member);
const MemberPtr& member_of(ncclComm_t comm);

// --- doing it ---

void copy(void* to, const void* from, std::size_t bytes) {
  const DeviceAccess a(to, bytes), b(from, bytes);
  if (bytes != 0) std::memmove(to, from, bytes);
}

void meet(Group& group, int from, int to) {
  auto& out = group.sends[{from, to}];
  auto& in = group.recvs[{from, to}];
  while (!out.empty() && !in.empty()) {
    const Op &s = out.front().op, &r = in.front().op;
    if (s.bytes() != r.bytes()) {
      give_up("rank %d sends %zu bytes to rank %d, which receives %zu", from, s.bytes(), to, r.bytes());
    }
    copy(r.to, s.from, s.bytes());
    --out.front().unit->left;
    --in.front().unit->left;
    out.pop_front();
    in.pop_front();
  }
}

/// Elements of the operand, and whether there is one result for all.
std::size_t operand_count(const Op& op, int size) {
  return op.kind == Kind::reduce_scatter ? op.count * static_cast<std::size_t>(size) : op.count;
}

void run_reduction(std::map<int, Posted>& all, int size) {
  const Op& first = all.begin()->second.op;
  const std::size_t count = operand_count(first, size);
  std::vector<const void*> operands;
  std::deque<DeviceAccess> open;
  for (const auto& [rank, posted] : all) {
    operands.push_back(posted.op.from);
    open.emplace_back(posted.op.from, count * size_of(first.type));
  }
  const auto result = reduced(operands, count, first.type, first.op);
  for (const auto& [rank, posted] : all) {
    if (first.kind == Kind::reduce && rank != first.peer) continue;
    const bool scattered = first.kind == Kind::reduce_scatter;
    copy(posted.op.to, result.data() + (scattered ? static_cast<std::size_t>(rank) * first.bytes() : 0), first.bytes());
  }
}

void run_movement(std::map<int, Posted>& all) {
  const Op& first = all.begin()->second.op;
  const std::size_t bytes = first.bytes();
  if (first.kind == Kind::broadcast) {
    for (const auto& [rank, posted] : all) copy(posted.op.to, all.at(first.peer).op.from, bytes);
    return;
  }
  std::vector<unsigned char> whole(bytes * all.size());
  for (const auto& [rank, posted] : all)
    copy(whole.data() + static_cast<std::size_t>(rank) * bytes, posted.op.from, bytes);
  for (const auto& [rank, posted] : all) copy(posted.op.to, whole.data(), whole.size());
}

void run_collective(std::map<int, Posted>& all, int size) {
  const Op& first = all.begin()->second.op;
  for (const auto& [rank, posted] : all) {
    if (posted.op.signature() != first.signature()) give_up("rank %d calls another collective than rank 0", rank);
  }
  if (first.kind == Kind::all_gather || first.kind == Kind::broadcast) {
    run_movement(all);
  } else {
    run_reduction(all, size);
  }
  for (auto& [rank, posted] : all) --posted.unit->left;
}

void post(Member& m, const Op& op, const std::shared_ptr<Unit>& unit) {
  Group& group = *m.group;
  if (op.kind == Kind::send) {
    group.sends[{m.rank, op.peer}].push_back({op, unit});
    meet(group, m.rank, op.peer);
  } else if (op.kind == Kind::recv) {
    group.recvs[{op.peer, m.rank}].push_back({op, unit});
    meet(group, op.peer, m.rank);
  } else {
    const std::uint64_t number = m.collectives++;
    auto& all = group.collectives[number];
    all.emplace(m.rank, Posted{op, unit});
    if (all.size() < static_cast<std::size_t>(group.size)) return;
    run_collective(all, group.size);
    group.collectives.erase(number);
  }
}

/// The unit's turn in its stream: begins it once those before it are done.
bool advance(Member& m, const std::shared_ptr<Unit>& unit) {
  const std::lock_guard lock(m.group->mutex);
  if (m.aborted) return true;
  if (m.units.front() != unit) return false;
  if (!unit->begun) {
    unit->begun = true;
    for (const Op& op : unit->ops) post(m, op, unit);
  }
  if (unit->left != 0) return false;
  m.units.pop_front();
  return true;
}

// --- issuing it ---

void issue(const MemberPtr& m, cudaStream_t stream, const std::shared_ptr<Unit>& unit) {
  {
    const std::lock_guard lock(m->group->mutex);
    m->units.push_back(unit);
  }
  enqueue(stream, [m, unit] { return advance(*m, unit); });
}

/// Calls of this thread since ncclGroupStart, by communicator.
struct OpenGroup {
  struct Calls {
    MemberPtr member;
    cudaStream_t stream;
    std::shared_ptr<Unit> unit;
  };
  int depth = 0;
  std::vector<Calls> all;
};
thread_local OpenGroup open_group;

ncclResult_t launch(const OpenGroup::Calls& calls) {
  const MemberPtr& m = calls.member;
  if (m->blocking) {
    issue(m, calls.stream, calls.unit);
    return ncclSuccess;
  }
  m->launching.emplace_back(calls.stream, calls.unit);
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
  if (op.peer < 0 || op.peer >= m->group->size || size_of(op.type) == 0) return ncclInvalidArgument;
  if (!m->launching.empty() || m->child != nullptr) give_up("a call while the one before it is in progress");
  const bool reads = op.kind != Kind::recv && (op.kind != Kind::broadcast || m->rank == op.peer);
  const bool writes = op.kind != Kind::send && (op.kind != Kind::reduce || m->rank == op.peer);
  if (reads && op.count != 0) require_reachable(op.from);
  if (writes && op.count != 0) require_reachable(op.to);
  if (reads && writes) require_in_place_or_apart(op, *m);
  if (op.kind == Kind::send) ++sends, sent_bytes += op.bytes();
  if (op.kind == Kind::all_gather) ++all_gathers;

  auto& all = open_group.all;
  auto calls = all.begin();
  while (calls != all.end() && calls->member != m) ++calls;
  if (calls == all.end()) calls = all.insert(all.end(), {m, stream, std::make_shared<Unit>()});
  if (calls->stream != stream) give_up("one group on two streams of a communicator");
  calls->unit->ops.push_back(op);
  ++calls->unit->left;
  if (open_group.depth > 0) return ncclSuccess;
  const auto alone = std::exchange(all, {});
  return launch(alone.front());
}

// --- communicators ---

/// Makes the children when all ranks have come. Null where this rank must wait, or has no child.
bool try_split(Member& m, std::uint64_t number, MemberPtr& child) {
  const std::lock_guard lock(m.group->mutex);
  Split& split = m.group->splits[number];
  if (split.wishes.size() < static_cast<std::size_t>(m.group->size)) return false;
  if (split.children.empty()) {
    std::map<int, std::map<std::pair<int, int>, int>> colors;  // color, (key, rank), rank
    for (const auto& [rank, wish] : split.wishes) colors[wish.color][{wish.key, rank}] = rank;
    for (const auto& [color, ranks] : colors) {
      const auto group = std::make_shared<Group>(static_cast<int>(ranks.size()));
      int next = 0;
      for (const auto& [place, rank] : ranks) {
        const auto made = std::make_shared<Member>();
        made->group = group;
        made->rank = next++;
        made->blocking = split.wishes[rank].blocking;
        split.children[rank] = color == NCCL_SPLIT_NOCOLOR ? nullptr : made;
      }
    }
  }
  child = split.children[m.rank];
  if (child != nullptr) {
    child->device = m.device;
    child->error = m.error;
  }
  return true;
}

ncclComm_t handle_or_null(const MemberPtr& m) { return m == nullptr ? nullptr : handle_of(m); }

/// Nothing of an aborted rank may be read or written any more.
void withdraw(Member& m) {
  const std::lock_guard lock(m.group->mutex);
  m.aborted = true;
  m.units.clear();
  m.launching.clear();
  m.child = nullptr;
  for (auto& [number, all] : m.group->collectives) all.erase(m.rank);
  for (auto& [pair, waiting] : m.group->sends) {
    if (pair.first == m.rank) waiting.clear();
  }
  for (auto& [pair, waiting] : m.group->recvs) {
    if (pair.second == m.rank) waiting.clear();
  }
}

bool idle(Member& m) {
  const std::lock_guard lock(m.group->mutex);
  return m.units.empty();
}

ncclResult_t progress(const MemberPtr& m) {
  if (m->delay > 0) {
    --m->delay;
    return ncclInProgress;
  }
  for (const auto& [stream, unit] : std::exchange(m->launching, {})) issue(m, stream, unit);
  if (m->child != nullptr) {
    MemberPtr child;
    if (!try_split(*m, m->splits - 1, child)) return ncclInProgress;
    *std::exchange(m->child, nullptr) = handle_or_null(child);
  }
  return ncclSuccess;
}

}  // namespace

void set_async_error(ncclComm_t comm, ncclResult_t error) { *member_of(comm)->error = error; }
std::size_t live_communicators() { return communicators; }
Traffic traffic() { return {sends, sent_bytes, all_gathers}; }

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
  return comm->member;
}
}  // namespace
}  // namespace laconic::fake

ncclResult_t pncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
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

ncclResult_t pncclCommCount(ncclComm_t comm, int* count) {
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
  const MemberPtr& m = member_of(comm);
  if (*m->error != ncclSuccess) return *m->error;
  if (!m->launching.empty() || m->child != nullptr) give_up("a split while a call is in progress");
  if (!idle(*m)) give_up("a split while operations are under way");
  const bool says = config != nullptr && config->blocking != NCCL_CONFIG_UNDEF_INT;
  const std::uint64_t number = m->splits++;
  {
    const std::lock_guard lock(m->group->mutex);
    m->group->splits[number].wishes[m->rank] = {color, key, says ? config->blocking != 0 : m->blocking};
  }
  if (!m->blocking) {
    *child = nullptr;
    m->child = child;
    return ncclInProgress;
  }
  const double since = now();
  MemberPtr made;
  while (!try_split(*m, number, made)) keep_waiting(since, "ncclCommSplit");
  *child = handle_or_null(made);
  return ncclSuccess;
}

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  const MemberPtr& m = member_of(comm);
  const double since = now();
  while (!idle(*m)) keep_waiting(since, "ncclCommFinalize");
  if (m->blocking) return ncclSuccess;
  m->delay = 1;
  return ncclInProgress;
}

ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  if (!idle(*member_of(comm))) give_up("a communicator is destroyed while operations are under way");
  --communicators;
  delete comm;
  return ncclSuccess;
}

ncclResult_t pncclCommAbort(ncclComm_t comm) {
  withdraw(*member_of(comm));
  --communicators;
  delete comm;
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
  for (const auto& calls : std::exchange(open_group.all, {})) {
    const ncclResult_t one = launch(calls);
    if (one != ncclSuccess) result = one;
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
ALIAS(ncclCommCount);
ALIAS(ncclCommUserRank);
ALIAS(ncclCommCuDevice);
ALIAS(ncclCommSplit);
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
