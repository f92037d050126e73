#include "schedule/schedule.h"

#include <algorithm>
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

Narrowed narrow(Program program) {
  const auto each_transfer = [&](auto&& work) {
    for (Step& s : program.steps) {
      for (Transfer& t : s.sends) work(t);
      for (Transfer& t : s.recvs) work(t);
    }
  };
  std::vector<bool> touched = program.operand;
  for (std::size_t b = 0; b < touched.size(); ++b) touched[b] = touched[b] || program.result[b];
  each_transfer([&](const Transfer& t) { touched[static_cast<std::size_t>(t.block)] = true; });
  std::vector<int> blocks;
  std::vector<bool> operand, result;
  for (std::size_t b = 0; b < touched.size(); ++b) {
    if (!touched[b]) continue;
    blocks.push_back(static_cast<int>(b));
    operand.push_back(program.operand[b]);
    result.push_back(program.result[b]);
  }
  each_transfer([&](Transfer& t) {
    t.block = static_cast<int>(std::lower_bound(blocks.begin(), blocks.end(), t.block) - blocks.begin());
  });
  program.blocks = static_cast<int>(blocks.size());
  program.operand = std::move(operand);
  program.result = std::move(result);
  return {std::move(program), std::move(blocks)};
}

}  // namespace laconic::schedule
