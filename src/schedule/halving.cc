#include "schedule/halving.h"

#include "schedule/fold.h"

namespace laconic::schedule::halving {
namespace {

/// Fold in and halve: the acting ranks then hold the sums of the blocks of those whom they act for.
Program down(const Fold& fold, int ranks, int rank) {
  Program p = empty_program(ranks, rank, ranks);
  p.operand.assign(static_cast<std::size_t>(ranks), true);
  const int all = fold.acting;
  if (fold.extra != 0) {
    p.steps.emplace_back();
    if (fold.folded(rank)) blocks_of(p.steps.back().sends, fold, rank + 1, 0, all);
    if (fold.acts_for_two(rank)) blocks_of(p.steps.back().recvs, fold, rank - 1, 0, all, Combine::reduce);
  }
  for (int half = all / 2; half >= 1; half /= 2) {
    p.steps.emplace_back();
    if (fold.folded(rank)) continue;
    const int v = fold.virtual_of(rank);
    const int kept = v & ~(half - 1);
    const int given = kept ^ half;
    const int peer = fold.rank_of(v ^ half);
    blocks_of(p.steps.back().sends, fold, peer, given, given + half);
    blocks_of(p.steps.back().recvs, fold, peer, kept, kept + half, Combine::reduce);
  }
  return p;
}

}  // namespace

Program reduce_scatter(int ranks, int rank) {
  const Fold fold(ranks);
  Program p = down(fold, ranks, rank);
  p.result[static_cast<std::size_t>(rank)] = true;
  if (fold.extra != 0) {
    p.steps.emplace_back();
    if (fold.folded(rank)) p.steps.back().recvs.push_back({rank + 1, rank});
    if (fold.acts_for_two(rank)) p.steps.back().sends.push_back({rank - 1, rank - 1});
  }
  return p;
}

Program allreduce(int ranks, int rank) {
  const Fold fold(ranks);
  Program p = down(fold, ranks, rank);
  p.result.assign(static_cast<std::size_t>(ranks), true);
  double_up(p, fold);
  if (fold.extra != 0) {
    p.steps.emplace_back();
    if (fold.folded(rank)) blocks_of(p.steps.back().recvs, fold, rank + 1, 0, fold.acting);
    if (fold.acts_for_two(rank)) blocks_of(p.steps.back().sends, fold, rank - 1, 0, fold.acting);
  }
  return p;
}

}  // namespace laconic::schedule::halving
