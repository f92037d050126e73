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

DeviceExtremeKernel::DeviceExtremeKernel(Op op, Memory& memory, const Lanes& lanes, std::vector<ConstArray> operands,
                                         std::vector<MutArray> results, const Budget& budget, int threads)
    : DeviceKernel(Work::movement, memory, lanes, std::move(operands), std::move(results), budget, 1, threads),
      op_(op) {}

Workspace DeviceExtremeKernel::begin_with(std::size_t count) {
  return step().begin(
      std::max({encode_workspace(count), decode_workspace(count), sum_workspace(grid_.dtype, count, 2)}));
}

MutArray DeviceExtremeKernel::room(DeviceBuffer& buffer, std::size_t count) const {
  return {buffer.at_least(count * element_bytes()), count, grid_.dtype};
}

// The sum with a frame of zeros, as on the host: see there.
ConstArray DeviceExtremeKernel::on_grid(ConstArray x, Workspace work) {
  if (grid_.lossless()) return x;
  const MutArray values = room(step().buffers().on_grid, x.count);
  const std::size_t capacity = frame::capacity(x.dtype, x.count);
  const std::size_t sum_capacity = frame::sum_capacity(x.dtype, x.count);
  auto* const zeros = step().buffers().frames[frame_of_zeros].at_least(capacity);
  auto* const sum = step().buffers().frames[frame_of_sum].at_least(sum_capacity);
  check_cuda(cudaMemsetAsync(values.data, 0, values.bytes(), step().stream()), "cudaMemsetAsync");
  gpu::encode(values, grid_, FrameOut{zeros, capacity, false}, work, step().another_report(), step().stream());
  const FrameIn of_zeros{zeros, capacity, grid_, 1};
  encode_sum(x, {&of_zeros, 1}, {sum, sum_capacity, false}, work, step().another_report(), step().stream());
  decode({sum, sum_capacity, grid_, 2}, values, work, step().another_report(), step().stream());
  return values;
}

MutArray DeviceExtremeKernel::decoded(int i, frame::Bytes message, DeviceBuffer& buffer, std::size_t count,
                                      Workspace work) {
  const FrameIn in = step().bring(i, message, count);
  const MutArray values = room(buffer, count);
  decode(in, values, work, step().another_report(), step().stream());
  return values;
}

std::size_t DeviceExtremeKernel::encode_extreme(MutArray a, ConstArray b, Workspace work,
                                                std::span<const frame::Bytes> messages, frame::MutBytes out) {
  take_extreme(op_, a, b, step().stream());
  return encoded(a, work, messages, out);
}

std::size_t DeviceExtremeKernel::encoded(ConstArray x, Workspace work, std::span<const frame::Bytes> messages,
                                         frame::MutBytes out) {
  const std::size_t most = capacity(x.count);
  gpu::encode(x, grid_, step().room_for(most), work, step().report(), step().stream());
  step().fetch(x.count, most, out, &Buffers::Lengths::encoded);
  step().end();
  if (!finished(step(), messages)) throw Error(Code::internal, "gpu: an array could not be encoded");
  return step().take(x.count, out);
}

std::size_t DeviceExtremeKernel::encode(const Part& part, frame::MutBytes out) {
  return step().abandoning([&] {
    const Workspace work = begin_with(part.count);
    return encoded(on_grid(operand(part), work), work, {}, out);
  });
}

std::size_t DeviceExtremeKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  return step().abandoning([&] {
    const Workspace work = begin_with(part.count);
    const MutArray other = decoded(0, received, step().buffers().decoded, part.count, work);
    return encode_extreme(other, on_grid(operand(part), work), work, {&received, 1}, out);
  });
}

std::size_t DeviceExtremeKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  return step().abandoning([&] {
    const Workspace work = begin_with(part.count);
    const MutArray a = decoded(0, held, step().buffers().decoded, part.count, work);
    const MutArray b = decoded(1, received, step().buffers().on_grid, part.count, work);
    return encode_extreme(a, b, work, std::array{held, received}, out);
  });
}

std::size_t DeviceExtremeKernel::add_plain(const Part& part, frame::Bytes held, ConstArray received,
                                           frame::MutBytes out) {
  return step().abandoning([&] {
    const ConstArray x = step().bring_plain(received);
    const Workspace work = begin_with(part.count);
    const MutArray other = decoded(0, held, step().buffers().decoded, part.count, work);
    return encode_extreme(other, on_grid(x, work), work, {&held, 1}, out);
  });
}

void DeviceExtremeKernel::keep(const Part&) { refuse_alone(); }

}  // namespace laconic::gpu
