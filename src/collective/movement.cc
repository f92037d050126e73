#include "collective/movement.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"

namespace laconic {
namespace {

[[noreturn]] void refuse_sums() { throw Error(Code::internal, "a movement schedule asked for a sum"); }

}  // namespace

void expect_frame(frame::Bytes message, const Grid& grid, std::size_t count, CodecId codec) {
  const frame::Header header = frame::peek(message);
  // Within a ratio each frame has its own.
  const bool on_grid = std::isinf(grid.bound) ? header.grid.dtype == grid.dtype : header.grid.same_points(grid);
  if (on_grid && header.count == count && header.frame_bytes == message.size() && header.codec == codec) return;
  throw Error(Code::corrupt, "a frame of " + std::to_string(header.count) + " " +
                                 std::string(name_of(header.grid.dtype)) + " in " + std::to_string(header.frame_bytes) +
                                 " bytes came where " + std::to_string(count) + " " + std::string(name_of(grid.dtype)) +
                                 " in " + std::to_string(message.size()) + " bytes on the agreed grid were due");
}

MovementKernel::MovementKernel(std::vector<ConstArray> operands, std::vector<MutArray> results, const Budget& budget,
                               int threads)
    : Kernel(std::move(operands), std::move(results)),
      budget_(budget),
      codec_(*find_codec(budget.codec)),
      threads_(threads) {}

MovementKernel::MovementKernel(std::vector<ConstArray> operands, std::vector<MutArray> results, const Grid& grid,
                               int threads)
    : MovementKernel(std::move(operands), std::move(results), Budget{.grid = grid}, threads) {}

std::size_t MovementKernel::element_bytes() const { return size_of(budget_.grid.dtype); }

std::size_t MovementKernel::capacity(std::size_t values) const {
  return frame::capacity(budget_.grid.dtype, values, codec_);
}

std::size_t MovementKernel::encode(ConstArray x, frame::MutBytes out) const {
  return frame::encode(codec_, x, budget_.grid, out, threads_);
}

void MovementKernel::decode(frame::Bytes message, MutArray y) const {
  expect_frame(message, budget_.grid, y.count, budget_.codec);
  frame::decode(message, y, threads_, 1, result_bytes_);
}

std::size_t MovementKernel::encode(const Part& part, frame::MutBytes out) { return encode(operand(part), out); }

std::size_t MovementKernel::encode_final(const Part& part, frame::MutBytes out) {
  return frame::encode_decode(codec_, operand(part), budget_.grid, out, result(part), threads_, result_bytes_);
}

std::size_t MovementKernel::encode_add(const Part&, frame::Bytes, frame::MutBytes) { refuse_sums(); }

std::size_t MovementKernel::add(const Part&, frame::Bytes, frame::Bytes, frame::MutBytes) { refuse_sums(); }

void MovementKernel::keep(const Part& part) {
  const ConstArray from = operand(part);
  const MutArray to = result(part);
  if (to.data != from.data) std::memcpy(to.data, from.data, from.bytes());
}

void MovementKernel::deliver(const Part& part, frame::Bytes message) { decode(message, result(part)); }

std::size_t MovementKernel::reopen(const Part& part, frame::Bytes received, frame::MutBytes out) {
  MutArray values = result(part);
  if (values.data == nullptr) {
    opened_.resize(std::max(opened_.size(), values.bytes()));
    values.data = opened_.data();
  }
  decode(received, values);
  pause();
  return encode(ConstArray(values), out);
}

}  // namespace laconic
