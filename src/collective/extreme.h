// Minimum and maximum. Every operand is first put on the common grid; what is compared and passed on are grid values,
// which encode without further error: no error per hop, and no order in which the bits could differ.
#pragma once

#include <optional>
#include <span>
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

 private:
  std::size_t extreme(std::optional<ConstArray> x, std::span<const frame::Bytes> messages, std::size_t count,
                      frame::MutBytes out) const;

  Op op_;
  Grid grid_;
  int threads_;
  MovementKernel frames_;
};

}  // namespace laconic
