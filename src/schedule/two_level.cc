#include "schedule/two_level.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace laconic::schedule::two_level {
namespace {

std::vector<Transfer>& sends_at(Program& p, int step) { return p.steps[static_cast<std::size_t>(step)].sends; }
std::vector<Transfer>& recvs_at(Program& p, int step) { return p.steps[static_cast<std::size_t>(step)].recvs; }

/// Adds what a node does in `between`, from step `at` on: block 0 of it is `first`, and rank_of(node) does it there.
template <typename RankOf>
void insert(Program& p, const Program& between, int at, int first, RankOf&& rank_of) {
  const auto renamed = [&](Transfer t) {
    t.peer = rank_of(t.peer);
    t.block += first;
    return t;
  };
  for (const Step& step : between.steps) {
    for (const Transfer& t : step.sends) sends_at(p, at).push_back(renamed(t));
    for (const Transfer& t : step.recvs) recvs_at(p, at).push_back(renamed(t));
    ++at;
  }
}

/// The other ranks of the node bring their keeper what they have of a block.
void collect(Program& p, const Nodes& nodes, int keeper, int step, int block) {
  if (p.rank != keeper) {
    sends_at(p, step).push_back({.peer = keeper, .block = block, .plain = true});
    return;
  }
  for (const int peer : nodes.on(nodes.of(keeper))) {
    if (peer != keeper) recvs_at(p, step).push_back({peer, block, Combine::reduce, true});
  }
}

/// The keeper gives them its result.
void hand_out(Program& p, const Nodes& nodes, int keeper, int step, int block) {
  if (p.rank != keeper) {
    recvs_at(p, step).push_back({.peer = keeper, .block = block, .plain = true});
    return;
  }
  for (const int peer : nodes.on(nodes.of(keeper))) {
    if (peer != keeper) sends_at(p, step).push_back({.peer = peer, .block = block, .plain = true});
  }
}

}  // namespace

// A slab begins when the one before is a third of its way between the nodes. One after the other would leave the links
// idle whenever a rank is late; all at once would need room for all of the data.
Program allreduce(const Nodes& nodes, int rank, int slabs, Between between) {
  const int home = nodes.of(rank);
  const Program among_keepers = between(nodes.count(), home);
  const int length = static_cast<int>(among_keepers.steps.size());
  const int stage = std::max(1, length / 3);
  const int each = among_keepers.blocks;
  const int parts = nodes.most();
  Program p = empty_program(nodes.ranks(), rank, slabs * parts * each, (slabs + 1) * stage + length);
  p.operand.assign(p.operand.size(), true);
  p.result.assign(p.result.size(), true);
  for (int slab = 0; slab < slabs; ++slab) {
    for (int part = 0; part < parts; ++part) {
      const int first = (slab * parts + part) * each;
      const int keeper = nodes.keeper(home, part);
      for (int b = 0; b < each; ++b) {
        const int step = slab * stage + b * stage / each;
        collect(p, nodes, keeper, step, first + b);
        hand_out(p, nodes, keeper, step + stage + length, first + b);
      }
      if (rank != keeper) continue;
      insert(p, among_keepers, (slab + 1) * stage, first, [&](int node) { return nodes.keeper(node, part); });
    }
  }
  return p;
}

Program bcast(const Nodes& nodes, int rank, int root, RootedBetween between) {
  const int home = nodes.of(rank);
  const int source = nodes.of(root);
  const auto leader = [&](int node) { return node == source ? root : nodes.on(node).front(); };
  const Program among_leaders = between(nodes.count(), home, source);
  const int first = static_cast<int>(among_leaders.steps.size());
  Program p = empty_program(nodes.ranks(), rank, 1, first + nodes.most() - 1);
  p.operand[0] = rank == root;
  p.result[0] = true;
  p.one_way = true;
  std::vector<int> chain = nodes.on(home);  // of which the leader is the head
  std::rotate(chain.begin(), std::find(chain.begin(), chain.end(), leader(home)), chain.end());
  if (rank == chain.front()) insert(p, among_leaders, 0, 0, leader);
  for (int link = 0; link + 1 < static_cast<int>(chain.size()); ++link) {
    const int from = chain[static_cast<std::size_t>(link)];
    const int to = chain[static_cast<std::size_t>(link) + 1];
    if (rank == from) sends_at(p, first + link).push_back({.peer = to, .plain = true});
    if (rank == to) recvs_at(p, first + link).push_back({.peer = from, .plain = true});
  }
  return p;
}

// In step s a node passes on what comes from the node s before it, and those who have that hand it out.
Program allgather(const Nodes& nodes, int rank) {
  const int count = nodes.count();
  const int home = nodes.of(rank);
  Program p = empty_program(nodes.ranks(), rank, nodes.ranks(), count);
  p.operand[static_cast<std::size_t>(rank)] = true;
  p.result.assign(p.result.size(), true);
  for (int distance = 0; distance < count; ++distance) {
    const int source = (home + count - distance) % count;
    const auto& owners = nodes.on(source);
    for (std::size_t place = 0; place < owners.size(); ++place) {
      const int block = owners[place];
      const auto keeper = [&](int node) {
        const auto& there = nodes.on(node);
        return node == source ? block : there[place % there.size()];
      };
      hand_out(p, nodes, keeper(home), distance, block);
      if (rank != keeper(home)) continue;
      const int before = (home + count - 1) % count;
      const int after = (home + 1) % count;
      if (distance > 0) recvs_at(p, distance - 1).push_back({.peer = keeper(before), .block = block});
      if (distance + 1 < count) sends_at(p, distance).push_back({.peer = keeper(after), .block = block});
    }
  }
  return p;
}

Program reduce(const Nodes& nodes, int rank, int root, int slabs, RootedBetween between) {
  const int home = nodes.of(rank);
  const int target = nodes.of(root);
  const Program among_keepers = between(nodes.count(), home, target);
  const int stage = static_cast<int>(among_keepers.steps.size());
  const int parts = nodes.most();
  Program p = empty_program(nodes.ranks(), rank, slabs * parts, slabs + stage + 1);
  p.operand.assign(p.operand.size(), true);
  p.result.assign(p.result.size(), rank == root);
  for (int block = 0; block < slabs * parts; ++block) {
    const int slab = block / parts;
    const int part = block % parts;
    const int keeper = nodes.keeper(home, part);
    collect(p, nodes, keeper, slab, block);
    if (rank == keeper) {
      insert(p, among_keepers, slab + 1, block, [&](int node) { return nodes.keeper(node, part); });
    }
    if (home != target || keeper == root) continue;
    if (rank == keeper) sends_at(p, slab + stage + 1).push_back({.peer = root, .block = block});
    if (rank == root) recvs_at(p, slab + stage + 1).push_back({.peer = keeper, .block = block});
  }
  return p;
}

}  // namespace laconic::schedule::two_level
