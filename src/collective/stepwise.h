// Reduction by decompress, operate, compress at every step: what codecs and operations without a common grid take, and
// what the published designs do (C-Coll, ZCCL). Every step adds the codec's error, and the sum is rounded in every
// step; finished blocks are forwarded unopened, so all ranks hold the same bits. As the naive baseline of those papers
// (compressed point-to-point, CPRP2P) finished blocks are opened and compressed again at every hop too, and ranks may
// hold different bits.
#pragma once

#include <vector>

#include "collective/movement.h"
#include "core/op.h"

namespace laconic {

class StepwiseKernel final : public Kernel {
 public:
  /// As GridReductionKernel; the codec need not be linear. `summands`: of an average.
  StepwiseKernel(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results, const Budget& budget,
                 int summands, int threads);

  [[nodiscard]] std::size_t element_bytes() const override { return frames_.element_bytes(); }
  [[nodiscard]] std::size_t capacity(std::size_t values) const override { return frames_.capacity(values); }
  std::size_t encode(const Part& part, frame::MutBytes out) override { return frames_.encode(part, out); }
  std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) override;
  [[noreturn]] void keep(const Part& part) override;
  void deliver(const Part& part, frame::Bytes message) override;
  [[nodiscard]] bool reopens() const override { return frames_.reopens(); }
  std::size_t reopen(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  [[nodiscard]] std::size_t scratch_bytes() const override {
    return sum_.capacity() + other_.capacity() + frames_.scratch_bytes();
  }

 private:
  using Scratch = std::vector<std::uint8_t>;
  MutArray decoded(const Part& part, frame::Bytes message, Scratch& scratch) const;
  /// a = a op b, on the clock.
  void combine(MutArray a, ConstArray b);
  void average(MutArray a);

  Op op_;
  int summands_;
  MovementKernel frames_;
  Scratch sum_, other_;
};

}  // namespace laconic
