#include "support/fake_nccl_group.h"

#include <cstring>

#include "support/fake_cuda.h"

namespace laconic::fake {
namespace {

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

}  // namespace

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

bool try_split(Member& m, std::uint64_t number, MemberPtr& child) {
  const std::lock_guard lock(m.group->mutex);
  Split& split = m.group->splits[number];
  if (split.wishes.size() < split.callers) return false;
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

bool is_withdrawn(Member& m) {
  const std::lock_guard lock(m.group->mutex);
  return m.aborted;
}

bool idle(Member& m) {
  const std::lock_guard lock(m.group->mutex);
  return m.units.empty();
}

}  // namespace laconic::fake
