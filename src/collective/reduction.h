// Reduction on the grid: operands are encoded once on one common grid, partial sums are added compressed + compressed
// as integers, the sum is decoded once. No error per hop, and no order in which the bits could differ.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/grid.h"
#include "collective/budget.h"
#include "collective/kernel.h"
#include "core/op.h"

namespace laconic {

class GridReductionKernel final : public Kernel {
 public:
  /// Decoding divides by `divisor`: 1 for a sum, the number of ranks for an average.
  GridReductionKernel(std::vector<ConstArray> operands, std::vector<MutArray> results, const Budget& budget,
                      std::uint32_t divisor, int threads);

  [[nodiscard]] std::size_t element_bytes() const override;
  [[nodiscard]] std::size_t capacity(std::size_t values) const override;
  std::size_t encode(const Part& part, frame::MutBytes out) override;
  std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) override;
  /// As many as slice adds in one pass (slice/kernels.h), less the local operand or what is held.
  [[nodiscard]] std::size_t most_addends() const override { return 7; }
  std::size_t sum(const Part& part, std::optional<frame::Bytes> held, std::span<const frame::Bytes> received,
                  frame::MutBytes out) override;
  std::size_t add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) override;
  [[noreturn]] void keep(const Part& part) override;
  void deliver(const Part& part, frame::Bytes message) override;

 private:
  Grid grid_;
  std::size_t sum_chunk_;
  std::uint32_t divisor_;
  int threads_;
};

/// What Kernel::keep() of a reduction does: with two ranks and more, every part is somebody else's too.
[[noreturn]] void refuse_alone();

/// Whether this budget of this operation needs the exact route: a sum that no grid can hold. (Extremes never do.)
bool needs_exact_sum(Op op, const Budget& budget);

/// The kernel of a reduction for which needs_exact_sum() is false. `summands`: of an average.
std::unique_ptr<Kernel> reduction_kernel(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results,
                                         const Budget& budget, int summands, int threads);

}  // namespace laconic
