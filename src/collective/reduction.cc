#include "collective/reduction.h"

#include <utility>

#include "collective/movement.h"

namespace laconic {
GridReductionKernel::GridReductionKernel(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                         const Grid& grid, std::uint32_t divisor, int threads)
    : operands_(std::move(operands)), results_(std::move(results)), grid_(grid), divisor_(divisor), threads_(threads) {}

ConstArray GridReductionKernel::operand(const Part& part) const {
  return slice_of(operands_[static_cast<std::size_t>(part.block)], part.first, part.count);
}

std::size_t GridReductionKernel::element_bytes() const { return size_of(grid_.dtype); }

std::size_t GridReductionKernel::capacity(std::size_t values) const { return frame::sum_capacity(grid_.dtype, values); }

std::size_t GridReductionKernel::encode(const Part& part, frame::MutBytes out) {
  return frame::encode(operand(part), grid_, out, threads_);
}

std::size_t GridReductionKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  expect_frame(received, grid_, part.count);
  return frame::encode_add(operand(part), received, out, threads_);
}

std::size_t GridReductionKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  expect_frame(received, grid_, part.count);
  return frame::add(held, received, out, threads_);
}

void GridReductionKernel::deliver(const Part& part, frame::Bytes message) {
  expect_frame(message, grid_, part.count);
  const MutArray out = slice_of(results_[static_cast<std::size_t>(part.block)], part.first, part.count);
  frame::decode(message, out, threads_, divisor_);
}

}  // namespace laconic
