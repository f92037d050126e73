// Minimum and maximum. Every operand is first put on the common grid; what is compared and passed on are grid values,
// which encode without further error: no error per hop, and no order in which the bits could differ.
#pragma once

#include <vector>

#include "collective/movement.h"
#include "core/op.h"

namespace laconic {

class ExtremeKernel final : public Kernel {
 public:
  /// As GridReductionKernel; op is min or max; the grid may be lossless (integers, exact results).
  ExtremeKernel(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results, const Grid& grid, int threads);

  [[nodiscard]] std::size_t element_bytes() const override { return frames_.element_bytes(); }
  [[nodiscard]] std::size_t capacity(std::size_t values) const override { return frames_.capacity(values); }
  std::size_t encode(const Part& part, frame::MutBytes out) override;
  std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) override;
  [[noreturn]] void keep(const Part& part) override;
  void deliver(const Part& part, frame::Bytes message) override { frames_.deliver(part, message); }
  [[nodiscard]] std::size_t scratch_bytes() const override {
    return own_.capacity() + other_.capacity() + frame_.capacity() + zeros_.capacity() + sum_.capacity();
  }

 private:
  using Scratch = std::vector<std::uint8_t>;

  /// Room for `count` elements in one of the scratch arrays.
  MutArray room(Scratch& scratch, std::size_t count) const;
  /// A rank's operand as grid values, in own_.
  MutArray on_grid(ConstArray x);
  MutArray decoded(const Part& part, frame::Bytes message, Scratch& scratch) const;
  /// a = extreme of a and b; then encoded.
  std::size_t encode_extreme(MutArray a, ConstArray b, frame::MutBytes out) const;

  Op op_;
  Grid grid_;
  int threads_;
  MovementKernel frames_;
  Scratch own_, other_, frame_, zeros_, sum_;
};

}  // namespace laconic
