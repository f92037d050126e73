#include "schedule/pairwise.h"

namespace laconic::schedule::pairwise {

Program alltoall(int ranks, int rank) {
  const auto blocks = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
  Program p{.ranks = ranks, .rank = rank, .blocks = ranks * ranks, .operand = {}, .result = {}, .steps = {}};
  p.operand.assign(blocks, false);
  p.result.assign(blocks, false);
  for (int peer = 0; peer < ranks; ++peer) {
    p.operand[static_cast<std::size_t>(rank * ranks + peer)] = true;
    p.result[static_cast<std::size_t>(peer * ranks + rank)] = true;
  }
  for (int s = 1; s < ranks; ++s) {
    const int to = (rank + s) % ranks;
    const int from = (rank + ranks - s) % ranks;
    Step step;
    step.sends.push_back({.peer = to, .block = rank * ranks + to, .how = Combine::copy});
    step.recvs.push_back({.peer = from, .block = from * ranks + rank, .how = Combine::copy});
    p.steps.push_back(step);
  }
  return p;
}

}  // namespace laconic::schedule::pairwise
