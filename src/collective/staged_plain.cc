#include "collective/staged_plain.h"

namespace laconic {

template <typename Work>
void StagedPlain::staged(ConstArray send, MutArray recv, Work&& work) {
  const HostOperand operand(memory_, send);
  HostResult result(memory_, recv);
  work(operand.get(), result.get());
  result.put_back();
}

void StagedPlain::allreduce(ConstArray send, MutArray recv, Op op) {
  staged(send, recv, [&](ConstArray s, MutArray r) { library_.allreduce(s, r, op); });
}

void StagedPlain::reduce(ConstArray send, MutArray recv, Op op, int root) {
  staged(send, recv, [&](ConstArray s, MutArray r) { library_.reduce(s, r, op, root); });
}

void StagedPlain::reduce_scatter(ConstArray send, MutArray recv, const Parts& parts, Op op) {
  staged(send, recv, [&](ConstArray s, MutArray r) { library_.reduce_scatter(s, r, parts, op); });
}

void StagedPlain::scan(ConstArray send, MutArray recv, Op op, bool exclusive) {
  staged(send, recv, [&](ConstArray s, MutArray r) { library_.scan(s, r, op, exclusive); });
}

void StagedPlain::bcast(MutArray data, int root) {
  staged({nullptr, 0, data.dtype}, data, [&](ConstArray, MutArray r) { library_.bcast(r, root); });
}

void StagedPlain::scatter(ConstArray send, const Parts& parts, MutArray recv, int root) {
  staged(send, recv, [&](ConstArray s, MutArray r) { library_.scatter(s, parts, r, root); });
}

// What lies in place is apart in the copies, which no library minds.
void StagedPlain::gather(ConstArray send, MutArray recv, const Parts& parts, int root) {
  staged(send, recv, [&](ConstArray s, MutArray r) { library_.gather(s, r, parts, root); });
}

void StagedPlain::allgather(ConstArray send, MutArray recv, const Parts& parts) {
  staged(send, recv, [&](ConstArray s, MutArray r) { library_.allgather(s, r, parts); });
}

void StagedPlain::alltoall(ConstArray send, const Parts& out, MutArray recv, const Parts& in) {
  staged(send, recv, [&](ConstArray s, MutArray r) { library_.alltoall(s, out, r, in); });
}

}  // namespace laconic
