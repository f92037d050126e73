// The plain library's collectives for arrays that it cannot reach: they are copied to the host's memory and back.
#pragma once

#include "collective/memory.h"
#include "transport/plain.h"

namespace laconic {

/// Both must outlive it.
class StagedPlain final : public PlainCollectives {
 public:
  StagedPlain(Memory& memory, PlainCollectives& library) : memory_(memory), library_(library) {}

  [[nodiscard]] bool reduces(DType dtype, Op op) const override { return library_.reduces(dtype, op); }
  [[nodiscard]] std::size_t most_elements() const override { return library_.most_elements(); }

  void allreduce(ConstArray send, MutArray recv, Op op) override;
  void reduce(ConstArray send, MutArray recv, Op op, int root) override;
  void reduce_scatter(ConstArray send, MutArray recv, const Parts& parts, Op op) override;
  void scan(ConstArray send, MutArray recv, Op op, bool exclusive) override;
  void bcast(MutArray data, int root) override;
  void scatter(ConstArray send, const Parts& parts, MutArray recv, int root) override;
  void gather(ConstArray send, MutArray recv, const Parts& parts, int root) override;
  void allgather(ConstArray send, MutArray recv, const Parts& parts) override;
  void alltoall(ConstArray send, const Parts& out, MutArray recv, const Parts& in) override;

 private:
  /// work(send, recv) on copies.
  template <typename Work>
  void staged(ConstArray send, MutArray recv, Work&& work);

  Memory& memory_;
  PlainCollectives& library_;
};

}  // namespace laconic
