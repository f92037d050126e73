#include "collective/reduction.h"

#include <cstring>
#include <utility>

#include "collective/movement.h"
#include "core/half.h"

namespace laconic {
namespace {

// Through memcpy, because a caller's array may have any alignment; it costs nothing.
template <typename Bits, typename Op>
void transform(void* data, std::size_t count, Op op) {
  auto* bytes = static_cast<std::uint8_t*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    Bits v;
    std::memcpy(&v, bytes + i * sizeof v, sizeof v);
    v = op(v);
    std::memcpy(bytes + i * sizeof v, &v, sizeof v);
  }
}

}  // namespace

void divide(MutArray x, int divisor) {
  const auto n32 = static_cast<float>(divisor);
  const auto n64 = static_cast<double>(divisor);
  switch (x.dtype) {
    case DType::f64:
      return transform<double>(x.data, x.count, [n64](double v) { return v / n64; });
    case DType::f16:
      return transform<std::uint16_t>(x.data, x.count,
                                      [n32](std::uint16_t v) { return f16_of_f32(f32_of_f16(v) / n32); });
    case DType::bf16:
      return transform<std::uint16_t>(x.data, x.count,
                                      [n32](std::uint16_t v) { return bf16_of_f32(f32_of_bf16(v) / n32); });
    default:
      return transform<float>(x.data, x.count, [n32](float v) { return v / n32; });
  }
}

GridReductionKernel::GridReductionKernel(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                         const Grid& grid, int divisor, int threads)
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
  frame::decode(message, out, threads_);
  if (divisor_ != 1) divide(out, divisor_);
}

}  // namespace laconic
