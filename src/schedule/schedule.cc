#include "schedule/schedule.h"

#include <utility>

namespace laconic::schedule {

Program empty_program(int ranks, int rank, int blocks, int steps) {
  Program p;
  p.ranks = ranks;
  p.rank = rank;
  p.blocks = blocks;
  p.operand.assign(static_cast<std::size_t>(blocks), false);
  p.result.assign(static_cast<std::size_t>(blocks), false);
  p.steps.resize(static_cast<std::size_t>(steps));
  return p;
}

Program concatenate(Program first, const Program& second) {
  first.result = second.result;
  first.steps.insert(first.steps.end(), second.steps.begin(), second.steps.end());
  return first;
}

}  // namespace laconic::schedule
