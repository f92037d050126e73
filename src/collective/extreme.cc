#include "collective/extreme.h"

#include <array>
#include <utility>

#include "collective/reduction.h"

namespace laconic {

ExtremeKernel::ExtremeKernel(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results, const Grid& grid,
                             int threads)
    : Kernel(std::move(operands), std::move(results)),
      op_(op),
      grid_(grid),
      threads_(threads),
      frames_(operands_, results_, grid, threads) {}

std::size_t ExtremeKernel::extreme(std::optional<ConstArray> x, std::span<const frame::Bytes> messages,
                                   std::size_t count, frame::MutBytes out) const {
  for (const frame::Bytes message : messages) expect_frame(message, grid_, count);
  return frame::extreme(op_, grid_, x, messages, out, threads_);
}

std::size_t ExtremeKernel::encode(const Part& part, frame::MutBytes out) {
  return extreme(operand(part), {}, part.count, out);
}

std::size_t ExtremeKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  return extreme(operand(part), {&received, 1}, part.count, out);
}

std::size_t ExtremeKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  return extreme(std::nullopt, std::array{held, received}, part.count, out);
}

std::size_t ExtremeKernel::add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) {
  return extreme(received, {&held, 1}, part.count, out);
}

void ExtremeKernel::keep(const Part&) { refuse_alone(); }

}  // namespace laconic
