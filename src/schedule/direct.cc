#include "schedule/direct.h"

namespace laconic::schedule::direct {
namespace {

/// Peer d of d = 1 ... n - 1: all ranks are busy with another one at a time, each way.
int to(const Program& p, int d) { return (p.rank + d) % p.ranks; }
int from(const Program& p, int d) { return (p.rank + p.ranks - d) % p.ranks; }

void exchange_operands(Program& p, Step& step, int slab, int slabs) {
  for (int d = 1; d < p.ranks; ++d) {
    step.sends.push_back({.peer = to(p, d), .block = to(p, d) * slabs + slab});
    step.recvs.push_back({.peer = from(p, d), .block = p.rank * slabs + slab, .how = Combine::reduce});
  }
}

void exchange_sums(Program& p, Step& step, int slab, int slabs) {
  for (int d = 1; d < p.ranks; ++d) {
    step.sends.push_back({.peer = to(p, d), .block = p.rank * slabs + slab});
    step.recvs.push_back({.peer = from(p, d), .block = from(p, d) * slabs + slab});
  }
}

}  // namespace

Program reduce_scatter(int ranks, int rank, int slabs) {
  Program p = empty_program(ranks, rank, ranks * slabs, slabs);
  p.operand.assign(p.operand.size(), true);
  for (int slab = 0; slab < slabs; ++slab) {
    p.result[static_cast<std::size_t>(rank * slabs + slab)] = true;
    exchange_operands(p, p.steps[static_cast<std::size_t>(slab)], slab, slabs);
  }
  return p;
}

// Sums first: they are there when the step begins, operands have yet to be encoded.
Program allreduce(int ranks, int rank, int slabs) {
  Program p = empty_program(ranks, rank, ranks * slabs, slabs + 1);
  p.operand.assign(p.operand.size(), true);
  p.result.assign(p.result.size(), true);
  for (int s = 0; s <= slabs; ++s) {
    Step& step = p.steps[static_cast<std::size_t>(s)];
    if (s > 0) exchange_sums(p, step, s - 1, slabs);
    if (s < slabs) exchange_operands(p, step, s, slabs);
  }
  return p;
}

}  // namespace laconic::schedule::direct
