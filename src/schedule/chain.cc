#include "schedule/chain.h"

namespace laconic::schedule::chain {
namespace {

/// The rank at `place` of the chain first -> first + direction -> ... receives one block and passes it on.
Program pass(int ranks, int rank, int first, int direction, Combine how) {
  const auto wrap = [ranks](int i) { return ((i % ranks) + ranks) % ranks; };
  const int place = wrap((rank - first) * direction);
  Program p = empty_program(ranks, rank, 1, ranks - 1);
  if (place > 0) p.steps[static_cast<std::size_t>(place - 1)].recvs.push_back({wrap(rank - direction), 0, how});
  if (place + 1 < ranks) p.steps[static_cast<std::size_t>(place)].sends.push_back({wrap(rank + direction), 0, how});
  return p;
}

}  // namespace

Program bcast(int ranks, int rank, int root) {
  Program p = pass(ranks, rank, root, 1, Combine::copy);
  p.operand[0] = rank == root;
  p.result[0] = true;
  return p;
}

Program reduce(int ranks, int rank, int root) {
  Program p = pass(ranks, rank, root - 1, -1, Combine::reduce);
  p.operand[0] = true;
  p.result[0] = rank == root;
  return p;
}

Program scan(int ranks, int rank) {
  Program p = pass(ranks, rank, 0, 1, Combine::reduce);
  p.operand[0] = p.result[0] = true;
  return p;
}

Program exscan(int ranks, int rank) {
  Program p = scan(ranks, rank);
  p.exclusive = true;
  p.result[0] = rank > 0;
  return p;
}

}  // namespace laconic::schedule::chain
