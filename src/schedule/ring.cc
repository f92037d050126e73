#include "schedule/ring.h"

namespace laconic::schedule::ring {
namespace {

/// One program whose step s sends block (rank + first - s) and receives block (rank + first - 1 - s), modulo ranks.
Program rotate(int ranks, int rank, int first, Combine how) {
  const auto wrap = [ranks](int i) { return ((i % ranks) + ranks) % ranks; };
  const auto n = static_cast<std::size_t>(ranks);
  Program p = empty_program(ranks, rank, ranks);
  p.operand.assign(n, how == Combine::reduce);
  p.result.assign(n, how == Combine::copy);
  const auto own = static_cast<std::size_t>(rank);
  p.operand[own] = true;
  p.result[own] = true;
  for (int s = 0; s + 1 < ranks; ++s) {
    Step step;
    step.sends.push_back({.peer = wrap(rank + 1), .block = wrap(rank + first - s), .how = how});
    step.recvs.push_back({.peer = wrap(rank - 1), .block = wrap(rank + first - 1 - s), .how = how});
    p.steps.push_back(step);
  }
  return p;
}

}  // namespace

// Block b starts at rank b + 1 and collects one operand a hop until it is at home.
Program reduce_scatter(int ranks, int rank) { return rotate(ranks, rank, -1, Combine::reduce); }

Program allgather(int ranks, int rank) { return rotate(ranks, rank, 0, Combine::copy); }

Program allreduce(int ranks, int rank) { return concatenate(reduce_scatter(ranks, rank), allgather(ranks, rank)); }

}  // namespace laconic::schedule::ring
