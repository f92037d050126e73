// The plain library's collectives for arrays that it cannot reach: they are copied to the host's memory and back.
#pragma once

#include <cstdint>

#include "collective/memory.h"
#include "collective/pool.h"
#include "transport/plain.h"

namespace laconic {

/// Memory and library must outlive it. Room for the copies is kept for the next call.
class StagedPlain final : public PlainCollectives {
 public:
  /// rank: this one's, in the library.
  StagedPlain(Memory& memory, PlainCollectives& library, int rank)
      : memory_(memory), library_(library), rank_(rank), pool_(memory, false) {}

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
  enum class Written : std::uint8_t {
    wholly,  ///< whatever it was before
    partly,  ///< the rest stays as it was
  };
  /// Where each of the parts is written, all of an array is that has nothing between them.
  static Written written(const Parts& parts) { return parts.equal ? Written::wholly : Written::partly; }

  /// work(send, recv) on copies.
  template <typename Work>
  void staged(ConstArray send, MutArray recv, Written written, Work&& work);
  /// Room for an array, and the array there; nothing for null data.
  template <typename Array>
  MessagePtr put_into_room(Array& array);

  Memory& memory_;
  PlainCollectives& library_;
  int rank_;
  BufferPool pool_;
};

}  // namespace laconic
