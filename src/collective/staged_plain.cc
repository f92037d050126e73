#include "collective/staged_plain.h"

namespace laconic {

template <typename Array>
MessagePtr StagedPlain::put_into_room(Array& array) {
  if (array.data == nullptr) return nullptr;
  MessagePtr room = pool_.take(array.bytes(), Content::copies);
  array.data = room->room().data();
  return room;
}

template <typename Work>
void StagedPlain::staged(ConstArray send, MutArray recv, Written written, Work&& work) {
  ConstArray operand = send;
  MutArray result = recv;
  const MessagePtr operand_room = put_into_room(operand);
  const MessagePtr result_room = put_into_room(result);
  if (operand_room) memory_.copy(operand_room->room().data(), send.data, send.bytes());
  if (result_room && written == Written::partly) memory_.copy(result.data, recv.data, recv.bytes());
  try {
    work(operand, result);
  } catch (...) {
    pool_.abandon();
    throw;
  }
  if (result_room) memory_.copy(recv.data, result.data, recv.bytes());
}

void StagedPlain::allreduce(ConstArray send, MutArray recv, Op op) {
  staged(send, recv, Written::wholly, [&](ConstArray s, MutArray r) { library_.allreduce(s, r, op); });
}

void StagedPlain::reduce(ConstArray send, MutArray recv, Op op, int root) {
  if (rank_ != root) recv.data = nullptr;
  staged(send, recv, Written::wholly, [&](ConstArray s, MutArray r) { library_.reduce(s, r, op, root); });
}

void StagedPlain::reduce_scatter(ConstArray send, MutArray recv, const Parts& parts, Op op) {
  staged(send, recv, Written::wholly, [&](ConstArray s, MutArray r) { library_.reduce_scatter(s, r, parts, op); });
}

void StagedPlain::scan(ConstArray send, MutArray recv, Op op, bool exclusive) {
  const Written written = exclusive && rank_ == 0 ? Written::partly : Written::wholly;
  staged(send, recv, written, [&](ConstArray s, MutArray r) { library_.scan(s, r, op, exclusive); });
}

void StagedPlain::bcast(MutArray data, int root) {
  if (rank_ != root) {
    staged({nullptr, 0, data.dtype}, data, Written::wholly, [&](ConstArray, MutArray r) { library_.bcast(r, root); });
    return;
  }
  staged(data, {nullptr, 0, data.dtype}, Written::wholly, [&](ConstArray s, MutArray) {
    library_.bcast({const_cast<void*>(s.data), s.count, s.dtype}, root);  // which only reads here
  });
}

void StagedPlain::scatter(ConstArray send, const Parts& parts, MutArray recv, int root) {
  staged(send, recv, Written::wholly, [&](ConstArray s, MutArray r) { library_.scatter(s, parts, r, root); });
}

// What lies in place is apart in the copies, which no library minds.
void StagedPlain::gather(ConstArray send, MutArray recv, const Parts& parts, int root) {
  if (rank_ != root) recv.data = nullptr;
  staged(send, recv, written(parts), [&](ConstArray s, MutArray r) { library_.gather(s, r, parts, root); });
}

void StagedPlain::allgather(ConstArray send, MutArray recv, const Parts& parts) {
  staged(send, recv, written(parts), [&](ConstArray s, MutArray r) { library_.allgather(s, r, parts); });
}

void StagedPlain::alltoall(ConstArray send, const Parts& out, MutArray recv, const Parts& in) {
  staged(send, recv, written(in), [&](ConstArray s, MutArray r) { library_.alltoall(s, out, r, in); });
}

}  // namespace laconic
