#include "schedule/pairwise.h"

namespace laconic::schedule::pairwise {
namespace {

Program without_steps(int ranks, int rank) {
  Program p = empty_program(ranks, rank, ranks * ranks);
  for (int peer = 0; peer < ranks; ++peer) {
    p.operand[static_cast<std::size_t>(rank * ranks + peer)] = true;
    p.result[static_cast<std::size_t>(peer * ranks + rank)] = true;
  }
  return p;
}

Step meet(int ranks, int rank, int to, int from) {
  Step step;
  step.sends.push_back({.peer = to, .block = rank * ranks + to});
  step.recvs.push_back({.peer = from, .block = from * ranks + rank});
  return step;
}

}  // namespace

Program alltoall(int ranks, int rank) {
  Program p = without_steps(ranks, rank);
  for (int s = 1; s < ranks; ++s) {
    p.steps.push_back(meet(ranks, rank, (rank + s) % ranks, (rank + ranks - s) % ranks));
  }
  return p;
}

Program exchange(int ranks, int rank) {
  Program p = without_steps(ranks, rank);
  for (int s = 0; s < ranks; ++s) {
    const int peer = (s + ranks - rank) % ranks;
    p.steps.push_back(peer == rank ? Step{} : meet(ranks, rank, peer, peer));
  }
  return p;
}

}  // namespace laconic::schedule::pairwise
