#include "collective/stepwise.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/operate.h"
#include "collective/reduction.h"
#include "core/stats.h"

namespace laconic {

StepwiseKernel::StepwiseKernel(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results,
                               const Budget& budget, int summands, int threads)
    : Kernel(std::move(operands), std::move(results)),
      op_(op),
      summands_(op == Op::average ? summands : 1),
      frames_(operands_, results_, budget, threads) {}

MutArray StepwiseKernel::decoded(const Part& part, frame::Bytes message, Scratch& scratch) const {
  scratch.resize(std::max(scratch.size(), part.count * element_bytes()));
  const MutArray values{scratch.data(), part.count, operands_[0].dtype};
  frames_.decode(message, values);
  pause();
  return values;
}

void StepwiseKernel::combine(MutArray a, ConstArray b) {
  {
    const Timed clock(compute_seconds_);
    operate(op_, a, b);
  }
  pause();
}

void StepwiseKernel::average(MutArray a) {
  if (summands_ == 1) return;
  const Timed clock(compute_seconds_);
  divide(a, summands_);
}

std::size_t StepwiseKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  const MutArray sum = decoded(part, received, sum_);
  combine(sum, operand(part));
  return frames_.encode(sum, out);
}

std::size_t StepwiseKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  const MutArray sum = decoded(part, held, sum_);
  combine(sum, decoded(part, received, other_));
  return frames_.encode(sum, out);
}

void StepwiseKernel::keep(const Part&) { refuse_alone(); }

void StepwiseKernel::deliver(const Part& part, frame::Bytes message) {
  frames_.deliver(part, message);
  average(result(part));
}

std::size_t StepwiseKernel::reopen(const Part& part, frame::Bytes received, frame::MutBytes out) {
  const MutArray values = decoded(part, received, sum_);
  const std::size_t size = frames_.encode(values, out);
  const MutArray to = result(part);
  if (to.data == nullptr) return size;
  std::memcpy(to.data, values.data, values.bytes());
  average(to);
  return size;
}

}  // namespace laconic
