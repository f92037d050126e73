#include "gpu/device_extreme.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collective/reduction.h"
#include "core/error.h"
#include "frame/frame.h"
#include "gpu/cuda.h"
#include "gpu/survey.h"

namespace laconic::gpu {
namespace {

constexpr int frame_of_zeros = 2;  // behind messages, which may still be read
constexpr int frame_of_sum = 3;

}  // namespace

DeviceExtremeKernel::DeviceExtremeKernel(Op op, Memory& memory, Buffers& buffers, std::vector<ConstArray> operands,
                                         std::vector<MutArray> results, const Budget& budget, int threads)
    : DeviceKernel(Work::movement, memory, buffers, std::move(operands), std::move(results), budget, 1, threads),
      op_(op) {}

Workspace DeviceExtremeKernel::begin_with(std::size_t count) {
  return begin(std::max({encode_workspace(count), decode_workspace(count), sum_workspace(grid_.dtype, count, 2)}));
}

MutArray DeviceExtremeKernel::room(DeviceBuffer& buffer, std::size_t count) const {
  return {buffer.at_least(count * element_bytes()), count, grid_.dtype};
}

// The sum with a frame of zeros, as on the host: see there.
ConstArray DeviceExtremeKernel::on_grid(ConstArray x, Workspace work) {
  if (grid_.lossless()) return x;
  const MutArray values = room(buffers_.on_grid, x.count);
  const std::size_t capacity = frame::capacity(x.dtype, x.count);
  const std::size_t sum_capacity = frame::sum_capacity(x.dtype, x.count);
  auto* const zeros = buffers_.frames[frame_of_zeros].at_least(capacity);
  auto* const sum = buffers_.frames[frame_of_sum].at_least(sum_capacity);
  check_cuda(cudaMemsetAsync(values.data, 0, values.bytes(), buffers_.stream()), "cudaMemsetAsync");
  gpu::encode(values, grid_, FrameOut{zeros, capacity, false}, work, another_report(), buffers_.stream());
  const FrameIn of_zeros{zeros, capacity, grid_, 1};
  encode_sum(x, {&of_zeros, 1}, {sum, sum_capacity, false}, work, another_report(), buffers_.stream());
  decode({sum, sum_capacity, grid_, 2}, values, work, another_report(), buffers_.stream());
  return values;
}

MutArray DeviceExtremeKernel::decoded(int i, frame::Bytes message, DeviceBuffer& buffer, std::size_t count,
                                      Workspace work) {
  const FrameIn in = bring(i, message, count);
  const MutArray values = room(buffer, count);
  decode(in, values, work, another_report(), buffers_.stream());
  return values;
}

std::size_t DeviceExtremeKernel::encode_extreme(MutArray a, ConstArray b, Workspace work,
                                                std::span<const frame::Bytes> messages, frame::MutBytes out) {
  take_extreme(op_, a, b, buffers_.stream());
  return encoded(a, work, messages, out);
}

std::size_t DeviceExtremeKernel::encoded(ConstArray x, Workspace work, std::span<const frame::Bytes> messages,
                                         frame::MutBytes out) {
  gpu::encode(x, grid_, room_for(x.count), work, buffers_.report(0), buffers_.stream());
  fetch(x.count, out, buffers_.lengths.encoded);
  if (!finished(messages)) throw Error(Code::internal, "gpu: an array could not be encoded");
  return take(x.count, out);
}

std::size_t DeviceExtremeKernel::encode(const Part& part, frame::MutBytes out) {
  const Workspace work = begin_with(part.count);
  return encoded(on_grid(operand(part), work), work, {}, out);
}

std::size_t DeviceExtremeKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  const Workspace work = begin_with(part.count);
  const MutArray other = decoded(0, received, buffers_.decoded, part.count, work);
  return encode_extreme(other, on_grid(operand(part), work), work, {&received, 1}, out);
}

std::size_t DeviceExtremeKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  const Workspace work = begin_with(part.count);
  const MutArray a = decoded(0, held, buffers_.decoded, part.count, work);
  const MutArray b = decoded(1, received, buffers_.on_grid, part.count, work);
  return encode_extreme(a, b, work, std::array{held, received}, out);
}

std::size_t DeviceExtremeKernel::add_plain(const Part& part, frame::Bytes held, ConstArray received,
                                           frame::MutBytes out) {
  const ConstArray x = bring_plain(received);
  const Workspace work = begin_with(part.count);
  const MutArray other = decoded(0, held, buffers_.decoded, part.count, work);
  return encode_extreme(other, on_grid(x, work), work, {&held, 1}, out);
}

void DeviceExtremeKernel::keep(const Part&) { refuse_alone(); }

}  // namespace laconic::gpu
