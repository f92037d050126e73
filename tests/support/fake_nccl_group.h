// Inside the fake NCCL: what the ranks of a communicator share, and how their operations meet.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "support/fake_nccl_reduce.h"

namespace laconic::fake {

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

/// A call of ncclCommSplit by all ranks, or of ncclCommShrink by those that stay.
struct Split {
  struct Wish {
    int color = 0, key = 0;
    bool blocking = true;
  };
  std::size_t callers = 0;
  std::map<int, Wish> wishes;                       ///< by rank
  std::map<int, std::shared_ptr<Member>> children;  ///< when all have come
};

/// What the ranks of a communicator share. All of it, and of its members, under the mutex.
struct Group {
  explicit Group(int ranks) : size(ranks) {}
  const int size;
  std::atomic<bool> has_sent = false;
  std::atomic<int> missing = 0;  ///< ranks that have not joined yet
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
  bool aborted = false;                     ///< or revoked
  std::deque<std::shared_ptr<Unit>> units;  ///< issued and not done
  std::uint64_t collectives = 0, splits = 0;
  // Of a communicator that does not block: what it is at.
  std::vector<std::pair<std::vector<cudaStream_t>, std::shared_ptr<Unit>>> launching;
  bool is_held = false;
  int delay = 0;  ///< how often it still says ncclInProgress
  ncclComm_t* child = nullptr;
};
using MemberPtr = std::shared_ptr<Member>;

/// A unit's turn in its stream: begins it once those before it are done. True when it is done too.
bool advance(Member& m, const std::shared_ptr<Unit>& unit);

/// Makes the children of a split when all ranks have come. False where this rank must wait; null if it gets none.
bool try_split(Member& m, std::uint64_t number, MemberPtr& child);

/// Nothing of an aborted rank may be read or written any more.
void withdraw(Member& m);
bool is_withdrawn(Member& m);
bool idle(Member& m);

}  // namespace laconic::fake
