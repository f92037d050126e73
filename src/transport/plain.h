// The plain library's own collectives, over the same ranks: what is called where compressing does not pay.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "core/array.h"
#include "core/op.h"

struct CUstream_st;

namespace laconic {

/// Each rank's part of an array. `equal` (the same on all ranks): as many elements as this rank's own, one part after
/// the other; nothing else is looked at then.
struct Parts {
  bool equal = false;
  std::span<const std::size_t> counts{};  ///< elements of each
  std::span<const std::size_t> displs{};  ///< where each begins, in elements; empty: one after the other
};

/// Elements of the array that parts lie in, as far as its last part reaches. Not for equal ones.
inline std::size_t extent_of(const Parts& parts) {
  std::size_t extent = 0, packed = 0;
  for (std::size_t r = 0; r < parts.counts.size(); ++r) {
    if (parts.counts[r] == 0) continue;
    extent = std::max(extent, (parts.displs.empty() ? packed : parts.displs[r]) + parts.counts[r]);
    packed += parts.counts[r];
  }
  return extent;
}

/// Nothing is compressed and nothing is checked between ranks: all of the library's own rules hold, also for what
/// happens when ranks disagree or die. Operands and results may be the same array, or lie where MPI_IN_PLACE would have
/// them, but not overlap otherwise. Throws Error(transport) where the library reports a failure.
class PlainCollectives {
 public:
  virtual ~PlainCollectives() = default;

  /// Whether there is a type for its elements and an operation for `op` (sum, min, max, product, or an average that
  /// does not leave the type where a sum would). What only moves needs none.
  [[nodiscard]] virtual bool reduces(DType dtype, Op op) const = 0;
  /// Whether there is scan(). There is everything else.
  [[nodiscard]] virtual bool has_scan() const { return true; }
  /// Whether arrays may lie in the memory of a GPU; see work_on().
  [[nodiscard]] virtual bool takes_device_arrays() const { return false; }
  /// Whether arrays on a GPU are read when the stream of work_on() comes to it; if not, they must be there when a call
  /// begins. Results are there when it returns.
  [[nodiscard]] virtual bool knows_streams() const { return false; }
  /// Whether calls may return when they are on that stream, and what follows there finds their results.
  [[nodiscard]] virtual bool can_leave_on_stream() const { return false; }
  /// Whether they do; only where they can.
  virtual void leave_on_stream(bool /*leave*/) {}
  /// Waits for those that were left, as their own calls would have. To be called before anything else waits for that
  /// stream, which would not give up where a rank is gone.
  virtual void await_left() {}
  /// stream: a cudaStream_t.
  virtual void work_on(CUstream_st* /*stream*/) {}
  /// Whether the result of reduce_scatter() may lie where the operand has this rank's part. As MPI_IN_PLACE has it, at
  /// the operand's beginning, it may with all.
  [[nodiscard]] virtual bool scatters_in_own_part() const { return false; }
  /// The most elements that all ranks' parts may have together in allgather() and reduce_scatter(), and equal ones
  /// in scatter(), gather() and alltoall(), whose uneven ones may have any number. What has one count everywhere and
  /// does not fit goes in pieces.
  [[nodiscard]] virtual std::size_t most_elements() const = 0;

  virtual void allreduce(ConstArray send, MutArray recv, Op op) = 0;
  virtual void reduce(ConstArray send, MutArray recv, Op op, int root) = 0;
  virtual void reduce_scatter(ConstArray send, MutArray recv, const Parts& parts, Op op) = 0;
  /// exclusive: rank 0's recv is left alone.
  virtual void scan(ConstArray send, MutArray recv, Op op, bool exclusive) = 0;

  virtual void bcast(MutArray data, int root) = 0;
  /// Whether there is bcast_from().
  [[nodiscard]] virtual bool has_bcast_from() const { return false; }
  /// The same of what lies elsewhere on the root, where this is called in place of bcast(): its `data` get it, too.
  virtual void bcast_from(ConstArray /*from*/, MutArray data, int root) { bcast(data, root); }
  /// send (gather: recv) and counts are of interest on the root only.
  virtual void scatter(ConstArray send, const Parts& parts, MutArray recv, int root) = 0;
  virtual void gather(ConstArray send, MutArray recv, const Parts& parts, int root) = 0;
  virtual void allgather(ConstArray send, MutArray recv, const Parts& parts) = 0;
  /// Not in place. equal: send and recv are `size` blocks of the same number of elements.
  virtual void alltoall(ConstArray send, const Parts& out, MutArray recv, const Parts& in) = 0;
};

}  // namespace laconic
