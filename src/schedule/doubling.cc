#include "schedule/doubling.h"

#include "schedule/fold.h"

namespace laconic::schedule::doubling {
namespace {

/// Appends a transfer of every block but one.
void all_but(std::vector<Transfer>& list, int peer, int blocks, int left_out) {
  for (int block = 0; block < blocks; ++block) {
    if (block != left_out) list.push_back({peer, block});
  }
}

}  // namespace

Program allreduce(int ranks, int rank) {
  const Fold fold(ranks);
  Program p = empty_program(ranks, rank, 1);
  p.operand[0] = p.result[0] = true;
  if (fold.extra != 0) {
    p.steps.emplace_back();
    if (fold.folded(rank)) p.steps.back().sends.push_back({rank + 1, 0});
    if (fold.acts_for_two(rank)) p.steps.back().recvs.push_back({rank - 1, 0, Combine::reduce});
  }
  for (int distance = 1; distance < fold.acting; distance *= 2) {
    p.steps.emplace_back();
    if (fold.folded(rank)) continue;
    const int peer = fold.rank_of(fold.virtual_of(rank) ^ distance);
    p.steps.back().sends.push_back({peer, 0});
    p.steps.back().recvs.push_back({peer, 0, Combine::reduce});
  }
  if (fold.extra != 0) {
    p.steps.emplace_back();
    if (fold.folded(rank)) p.steps.back().recvs.push_back({rank + 1, 0});
    if (fold.acts_for_two(rank)) p.steps.back().sends.push_back({rank - 1, 0});
  }
  return p;
}

Program allgather(int ranks, int rank) {
  const Fold fold(ranks);
  Program p = empty_program(ranks, rank, ranks);
  p.operand[static_cast<std::size_t>(rank)] = true;
  p.result.assign(static_cast<std::size_t>(ranks), true);
  if (fold.extra != 0) {
    p.steps.emplace_back();
    if (fold.folded(rank)) p.steps.back().sends.push_back({rank + 1, rank});
    if (fold.acts_for_two(rank)) p.steps.back().recvs.push_back({rank - 1, rank - 1});
  }
  double_up(p, fold);
  if (fold.extra != 0) {
    p.steps.emplace_back();
    if (fold.folded(rank)) all_but(p.steps.back().recvs, rank + 1, ranks, rank);
    if (fold.acts_for_two(rank)) all_but(p.steps.back().sends, rank - 1, ranks, rank - 1);
  }
  return p;
}

Program scan(int ranks, int rank) {
  Program p = empty_program(ranks, rank, 1);
  p.operand[0] = p.result[0] = true;
  for (int distance = 1; distance < ranks; distance *= 2) {
    Step step;
    if (rank + distance < ranks) step.sends.push_back({rank + distance, 0});
    if (rank >= distance) step.recvs.push_back({rank - distance, 0, Combine::reduce});
    p.steps.push_back(step);
  }
  return p;
}

}  // namespace laconic::schedule::doubling
