#include "collective/movement.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace laconic {
namespace {

[[noreturn]] void refuse_sums() { throw Error(Code::internal, "a movement schedule asked for a sum"); }

}  // namespace

void expect_frame(frame::Bytes message, const Grid& grid, std::size_t count) {
  const frame::Header header = frame::peek(message);
  if (header.grid.same_points(grid) && header.count == count && header.frame_bytes == message.size()) return;
  throw Error(Code::corrupt, "a frame of " + std::to_string(header.count) + " " +
                                 std::string(name_of(header.grid.dtype)) + " in " + std::to_string(header.frame_bytes) +
                                 " bytes came where " + std::to_string(count) + " " + std::string(name_of(grid.dtype)) +
                                 " in " + std::to_string(message.size()) + " bytes on the agreed grid were due");
}

MovementKernel::MovementKernel(std::vector<ConstArray> operands, std::vector<MutArray> results, const Grid& grid,
                               int threads)
    : operands_(std::move(operands)), results_(std::move(results)), grid_(grid), threads_(threads) {}

std::size_t MovementKernel::element_bytes() const { return size_of(grid_.dtype); }

std::size_t MovementKernel::capacity(std::size_t values) const { return frame::capacity(grid_.dtype, values); }

std::size_t MovementKernel::encode(const Part& part, frame::MutBytes out) {
  return frame::encode(slice_of(operands_[static_cast<std::size_t>(part.block)], part.first, part.count), grid_, out,
                       threads_);
}

std::size_t MovementKernel::encode_add(const Part&, frame::Bytes, frame::MutBytes) { refuse_sums(); }

std::size_t MovementKernel::add(const Part&, frame::Bytes, frame::Bytes, frame::MutBytes) { refuse_sums(); }

void MovementKernel::deliver(const Part& part, frame::Bytes message) {
  expect_frame(message, grid_, part.count);
  frame::decode(message, slice_of(results_[static_cast<std::size_t>(part.block)], part.first, part.count), threads_);
}

}  // namespace laconic
