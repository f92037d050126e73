#include "schedule/bruck.h"

#include <algorithm>

namespace laconic::schedule::bruck {

Program allgather(int ranks, int rank) {
  Program p = empty_program(ranks, rank, ranks);
  p.operand[static_cast<std::size_t>(rank)] = true;
  p.result.assign(static_cast<std::size_t>(ranks), true);
  // Before the step at this distance a rank has blocks rank, rank + 1, ..., rank + distance - 1.
  for (int distance = 1; distance < ranks; distance *= 2) {
    Step step;
    for (int i = 0; i < std::min(distance, ranks - distance); ++i) {
      step.sends.push_back({.peer = (rank + ranks - distance) % ranks, .block = (rank + i) % ranks});
      step.recvs.push_back({.peer = (rank + distance) % ranks, .block = (rank + distance + i) % ranks});
    }
    p.steps.push_back(step);
  }
  return p;
}

Program alltoall(int ranks, int rank) {
  Program p = empty_program(ranks, rank, ranks * ranks);
  for (int peer = 0; peer < ranks; ++peer) {
    p.operand[static_cast<std::size_t>(rank * ranks + peer)] = true;
    p.result[static_cast<std::size_t>(peer * ranks + rank)] = true;
  }
  /// Of the blocks that have `way` to go in all, the one that has gone the bits below `distance` and is now at
  /// `holder`.
  const auto block_at = [ranks](int holder, int way, int distance) {
    const int from = (holder + ranks - way % distance) % ranks;
    return from * ranks + (from + way) % ranks;
  };
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int to = (rank + distance) % ranks;
    const int from = (rank + ranks - distance) % ranks;
    Step step;
    for (int way = distance; way < ranks; ++way) {
      if ((way & distance) == 0) continue;
      step.sends.push_back({.peer = to, .block = block_at(rank, way, distance)});
      step.recvs.push_back({.peer = from, .block = block_at(from, way, distance)});
    }
    p.steps.push_back(step);
  }
  return p;
}

}  // namespace laconic::schedule::bruck
