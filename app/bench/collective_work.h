// One rank's buffers of one collective: what it brings, where the result comes, and what that should be.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/dataset.h"
#include "collective/communicator.h"
#include "collective/metadata.h"
#include "core/op.h"

namespace laconic::app {

/// What is called.
struct Task {
  Collective collective = Collective::allreduce;
  Op op = Op::none;  ///< of a reduction
  int root = 0;      ///< where there is one
};

/// How far a result is from the exact one. Of one rank.
struct Verdict {
  double max_error = 0;          ///< over values whose exact result is finite
  std::uint64_t violations = 0;  ///< off by more than the bound + half a unit in the last place, or not finite
                                 ///< where the exact result is, or the reverse
};

/// No multiple of anything, so that the field's rows do not meet themselves.
constexpr std::size_t operand_shift = 4099;

/// Rank r's operand is the field, repeated, from value operand_shift * r on: every rank knows what the others bring,
/// and no two bring the same.
class CollectiveWork {
 public:
  /// bytes: of one rank's operand, which is what it brings to an allreduce, reduce, reduce_scatter, allgather, gather
  /// or alltoall, and what it gets from a bcast or a scatter; rounded down to whole shares where ranks get shares, and
  /// up to one value a rank. The field must outlive this.
  CollectiveWork(const Task& task, const LoadedField& field, std::size_t bytes, int rank, int ranks);

  [[nodiscard]] ConstArray send() const { return {send_.data(), send_.size() / element_, dtype_}; }
  /// What this rank brings to the call, once it is prepared.
  [[nodiscard]] ConstArray brought() { return task_.collective == Collective::bcast && is_root() ? recv() : send(); }
  [[nodiscard]] MutArray recv() { return {recv_.data(), recv_.size() / element_, dtype_}; }
  [[nodiscard]] const std::vector<std::uint8_t>& result() const { return recv_; }
  [[nodiscard]] std::size_t operand_bytes() const { return count_ * element_; }
  /// The largest array of the call, on any rank.
  [[nodiscard]] std::size_t message_bytes() const;
  /// Every rank gets the same.
  [[nodiscard]] bool same_everywhere() const;

  /// To be called before the collective, every time: what is sent from recv() is put there.
  void prepare();
  /// Fills recv() with NaN (integers: ones): values that nobody writes are then found.
  void spoil();
  const Report& run(Communicator& comm, const Options& options);
  /// By the plain library. Throws Failure(usage) for more elements than it can take.
  void run_plainly(PlainCollectives& library);
  [[nodiscard]] Verdict judge(double bound) const;

 private:
  // `count` values of the result from `first` on are one rank's, or what all ranks' come to, from `source` on.
  struct Piece {
    std::size_t first, count, source;
    int rank;  // -1: all
  };

  void move_plainly(PlainCollectives& library);
  [[nodiscard]] std::vector<Piece> pieces() const;
  void copy_operand(int rank, std::size_t first, std::size_t count, std::uint8_t* out) const;
  template <class Element>
  void judge_piece(const Piece& piece, double bound, Verdict& verdict) const;
  template <class Value, class Exact>
  void judge_value(Value got, const Exact& exact, double bound, Verdict& verdict) const;
  [[nodiscard]] bool is_root() const { return rank_ == task_.root; }

  Task task_;
  const LoadedField& field_;
  DType dtype_;
  std::size_t element_;
  int rank_, ranks_;
  std::size_t count_;  // of an operand
  std::vector<std::uint8_t> send_, recv_;
};

}  // namespace laconic::app
