#include "schedule/tree.h"

#include <algorithm>
#include <bit>

namespace laconic::schedule::tree {
namespace {

struct Place {
  Place(int n, int rank, int from) : ranks(n), root(from), v((rank - from + n) % n) {}
  [[nodiscard]] int rank_of(int w) const { return (w + root) % ranks; }
  /// The largest distance between parent and child.
  [[nodiscard]] int top() const { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks)) / 2); }
  [[nodiscard]] bool is_parent(int distance) const { return v % (2 * distance) == 0 && v + distance < ranks; }
  [[nodiscard]] bool is_child(int distance) const { return v % (2 * distance) == distance; }

  int ranks;
  int root;
  int v;  ///< counted from the root
};

/// Appends the one block, or (scatter, gather) those of the subtree below w at this distance.
void subtree(std::vector<Transfer>& list, const Place& at, int peer, int w, int distance, bool whole, Combine how) {
  if (whole) {
    list.push_back({at.rank_of(peer), 0, how});
    return;
  }
  for (int u = w; u < std::min(w + distance, at.ranks); ++u) list.push_back({at.rank_of(peer), at.rank_of(u), how});
}

/// Parents send, from the top of the tree down.
void down(Program& p, const Place& at, bool whole) {
  for (int d = at.top(); d >= 1; d /= 2) {
    Step step;
    if (at.is_parent(d)) subtree(step.sends, at, at.v + d, at.v + d, d, whole, Combine::copy);
    if (at.is_child(d)) subtree(step.recvs, at, at.v - d, at.v, d, whole, Combine::copy);
    p.steps.push_back(step);
  }
}

/// Children send, from the leaves up.
void up(Program& p, const Place& at, bool whole, Combine how) {
  for (int d = 1; d < at.ranks; d *= 2) {
    Step step;
    if (at.is_child(d)) subtree(step.sends, at, at.v - d, at.v, d, whole, how);
    if (at.is_parent(d)) subtree(step.recvs, at, at.v + d, at.v + d, d, whole, how);
    p.steps.push_back(step);
  }
}

}  // namespace

Program bcast(int ranks, int rank, int root) {
  Program p = empty_program(ranks, rank, 1);
  p.operand[0] = rank == root;
  p.result[0] = true;
  down(p, Place(ranks, rank, root), true);
  return p;
}

Program reduce(int ranks, int rank, int root) {
  Program p = empty_program(ranks, rank, 1);
  p.operand[0] = true;
  p.result[0] = rank == root;
  up(p, Place(ranks, rank, root), true, Combine::reduce);
  return p;
}

Program scatter(int ranks, int rank, int root) {
  Program p = empty_program(ranks, rank, ranks);
  p.operand.assign(static_cast<std::size_t>(ranks), rank == root);
  p.result[static_cast<std::size_t>(rank)] = true;
  down(p, Place(ranks, rank, root), false);
  return p;
}

Program gather(int ranks, int rank, int root) {
  Program p = empty_program(ranks, rank, ranks);
  p.operand[static_cast<std::size_t>(rank)] = true;
  p.result.assign(static_cast<std::size_t>(ranks), rank == root);
  up(p, Place(ranks, rank, root), false, Combine::copy);
  return p;
}

}  // namespace laconic::schedule::tree
