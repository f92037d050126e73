#include "collective/reduction.h"

#include <utility>

#include "collective/extreme.h"
#include "collective/movement.h"
#include "collective/stepwise.h"
#include "core/error.h"

namespace laconic {
GridReductionKernel::GridReductionKernel(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                         const Budget& budget, std::uint32_t divisor, int threads)
    : Kernel(std::move(operands), std::move(results)),
      grid_(budget.grid),
      sum_chunk_(budget.sum_chunk),
      divisor_(divisor),
      threads_(threads) {}

std::size_t GridReductionKernel::element_bytes() const { return size_of(grid_.dtype); }

std::size_t GridReductionKernel::capacity(std::size_t values) const {
  return frame::sum_capacity(grid_.dtype, values, sum_chunk_);
}

std::size_t GridReductionKernel::encode(const Part& part, frame::MutBytes out) {
  return frame::encode(operand(part), grid_, out, threads_);
}

std::size_t GridReductionKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  return sum(part, std::nullopt, {&received, 1}, out);
}

std::size_t GridReductionKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  return sum(part, held, {&received, 1}, out);
}

std::size_t GridReductionKernel::sum(const Part& part, std::optional<frame::Bytes> held,
                                     std::span<const frame::Bytes> received, frame::MutBytes out) {
  for (const frame::Bytes message : received) expect_frame(message, grid_, part.count);
  if (!held) return frame::sum(operand(part), received, out, threads_);
  std::vector<frame::Bytes> all{*held};
  all.insert(all.end(), received.begin(), received.end());
  return frame::sum(std::nullopt, all, out, threads_);
}

std::size_t GridReductionKernel::add_plain(const Part&, frame::Bytes held, ConstArray received, frame::MutBytes out) {
  return frame::encode_add(received, held, out, threads_);
}

void GridReductionKernel::keep(const Part&) { refuse_alone(); }

void GridReductionKernel::deliver(const Part& part, frame::Bytes message) {
  expect_frame(message, grid_, part.count);
  frame::decode(message, result(part), threads_, divisor_, result_bytes_);
}

void refuse_alone() { throw Error(Code::internal, "a schedule left a reduction to one rank alone"); }

bool needs_exact_sum(Op op, const Budget& budget) { return !is_extreme(op) && budget.route == Route::exact; }

std::unique_ptr<Kernel> reduction_kernel(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results,
                                         const Budget& budget, int summands, int threads) {
  if (budget.route == Route::stepwise) {
    return std::make_unique<StepwiseKernel>(op, std::move(operands), std::move(results), budget, summands, threads);
  }
  if (is_extreme(op)) {
    return std::make_unique<ExtremeKernel>(op, std::move(operands), std::move(results), budget.grid, threads);
  }
  const auto divisor = static_cast<std::uint32_t>(op == Op::average ? summands : 1);
  return std::make_unique<GridReductionKernel>(std::move(operands), std::move(results), budget, divisor, threads);
}

}  // namespace laconic
