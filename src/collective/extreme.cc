#include "collective/extreme.h"

#include <algorithm>
#include <utility>

#include "collective/reduction.h"
#include "core/extreme.h"

namespace laconic {

ExtremeKernel::ExtremeKernel(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results, const Grid& grid,
                             int threads)
    : Kernel(std::move(operands), std::move(results)),
      op_(op),
      grid_(grid),
      threads_(threads),
      frames_(operands_, results_, grid, threads) {}

MutArray ExtremeKernel::room(Scratch& scratch, std::size_t count) const {
  scratch.resize(std::max(scratch.size(), count * element_bytes()));
  return {scratch.data(), count, grid_.dtype};
}

// A frame may store an element exactly for its neighbours' sake. Frames that are added put it on the grid first; so the
// sum with a frame of zeros holds what is the element's own, wherever blocks begin.
MutArray ExtremeKernel::on_grid(ConstArray x) {
  const MutArray values = room(own_, x.count);
  if (grid_.lossless()) {
    std::copy_n(static_cast<const std::uint8_t*>(x.data), x.bytes(), own_.begin());
    return values;
  }
  frame_.resize(frame::capacity(grid_.dtype, x.count));
  zeros_.resize(frame_.size());
  sum_.resize(frame::sum_capacity(grid_.dtype, x.count));
  std::fill_n(own_.begin(), values.bytes(), std::uint8_t{0});
  const std::size_t zeros = frame::encode(values, grid_, zeros_, threads_);
  const std::size_t size = frame::encode(x, grid_, frame_, threads_);
  const std::size_t sum =
      frame::add(frame::Bytes(frame_).first(size), frame::Bytes(zeros_).first(zeros), sum_, threads_);
  frame::decode(frame::Bytes(sum_).first(sum), values, threads_);
  return values;
}

MutArray ExtremeKernel::decoded(const Part& part, frame::Bytes message, Scratch& scratch) const {
  expect_frame(message, grid_, part.count);
  const MutArray values = room(scratch, part.count);
  frame::decode(message, values, threads_);
  return values;
}

std::size_t ExtremeKernel::encode_extreme(MutArray a, ConstArray b, frame::MutBytes out) const {
  take_extreme(op_, a, b);
  return frame::encode(a, grid_, out, threads_);
}

std::size_t ExtremeKernel::encode(const Part& part, frame::MutBytes out) {
  return frame::encode(on_grid(operand(part)), grid_, out, threads_);
}

std::size_t ExtremeKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  const MutArray other = decoded(part, received, other_);
  return encode_extreme(other, on_grid(operand(part)), out);
}

std::size_t ExtremeKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  const MutArray a = decoded(part, held, own_);
  return encode_extreme(a, decoded(part, received, other_), out);
}

std::size_t ExtremeKernel::add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) {
  const MutArray other = decoded(part, held, other_);
  return encode_extreme(other, on_grid(received), out);
}

void ExtremeKernel::keep(const Part&) { refuse_alone(); }

}  // namespace laconic
