#include "gpu/device_kernel.h"

#include <string>
#include <utility>

#include "collective/movement.h"
#include "collective/reduction.h"
#include "core/error.h"
#include "frame/frame.h"

namespace laconic::gpu {
namespace {

constexpr int result_frame = Buffers::most_frames - 1;

bool has(std::uint32_t faults, Fault f) { return (faults & static_cast<std::uint32_t>(f)) != 0; }

}  // namespace

DeviceKernel::DeviceKernel(Work work, Memory& memory, Buffers& buffers, std::vector<ConstArray> operands,
                           std::vector<MutArray> results, const Grid& grid, std::uint32_t divisor, int threads)
    : Kernel(std::move(operands), std::move(results)),
      work_(work),
      memory_(memory),
      buffers_(buffers),
      grid_(grid),
      divisor_(divisor),
      threads_(threads) {}

std::size_t DeviceKernel::capacity(std::size_t values) const {
  return work_ == Work::sum ? frame::sum_capacity(grid_.dtype, values) : frame::capacity(grid_.dtype, values);
}

FrameOut DeviceKernel::room_for(std::size_t count) {
  const std::size_t bytes = capacity(count);
  return {buffers_.frames[result_frame].at_least(bytes), bytes};
}

Workspace DeviceKernel::workspace(std::size_t bytes) { return {buffers_.workspace.at_least(bytes), bytes}; }

FrameIn DeviceKernel::bring(int i, frame::Bytes message, std::size_t count, Workspace work) {
  expect_frame(message, grid_, count);
  const frame::Header header = frame::peek(message);
  auto* const there = buffers_.frames[i].at_least(message.size());
  buffers_.copy_in(there, message.data(), message.size());
  const FrameIn in{there, message.size(), header.grid, header.operands};
  check(in, work, buffers_.report(1 + i), buffers_.stream());
  return in;
}

bool DeviceKernel::finished(std::initializer_list<frame::Bytes> messages) {
  const auto reports = buffers_.finished_reports(1 + static_cast<int>(messages.size()));
  bool corrupt = has(reports[0].faults, Fault::corrupt);
  for (std::size_t i = 0; i < messages.size(); ++i) corrupt = corrupt || reports[1 + i].faults != 0;
  if (corrupt) {
    for (const frame::Bytes message : messages) frame::check(message);  // says what is wrong with it
    throw Error(Code::corrupt, "a frame whose chunks are not what they should be");
  }
  if (has(reports[0].faults, Fault::too_small)) throw Error(Code::internal, "gpu: a frame outgrew its capacity");
  written_ = reports[0].bytes;
  return reports[0].faults == 0;
}

std::size_t DeviceKernel::take(frame::MutBytes out) {
  if (written_ > out.size()) throw Error(Code::internal, "gpu: a message has no room for the frame");
  buffers_.copy_out(out.data(), buffers_.frames[result_frame].at_least(0), written_);
  buffers_.finish();
  return written_;
}

std::size_t DeviceKernel::encode(const Part& part, frame::MutBytes out) {
  const ConstArray x = operand(part);
  gpu::encode(x, grid_, room_for(x.count), workspace(encode_workspace(x.count)), buffers_.report(0), buffers_.stream());
  if (!finished({})) throw Error(Code::internal, "gpu: an array could not be encoded");
  return take(out);
}

std::size_t DeviceKernel::sum_with(ConstArray x, frame::Bytes held, frame::MutBytes out) {
  const Workspace work = workspace(sum_workspace(x.dtype, x.count, 2));
  const FrameIn in = bring(0, held, x.count, work);
  encode_sum(x, {&in, 1}, room_for(x.count), work, buffers_.report(0), buffers_.stream());
  if (finished({held})) return take(out);
  return frame::encode_add(HostOperand(memory_, x).get(), held, out, threads_);
}

std::size_t DeviceKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  return sum_with(operand(part), received, out);
}

std::size_t DeviceKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  const Workspace work = workspace(sum_workspace(grid_.dtype, part.count, 2));
  const FrameIn in[] = {bring(0, held, part.count, work), bring(1, received, part.count, work)};
  sum(in, part.count, room_for(part.count), work, buffers_.report(0), buffers_.stream());
  if (finished({held, received})) return take(out);
  return frame::add(held, received, out, threads_);
}

std::size_t DeviceKernel::add_plain(const Part&, frame::Bytes held, ConstArray received, frame::MutBytes out) {
  auto* const there = buffers_.elements.at_least(received.bytes());
  buffers_.copy_in(there, static_cast<const std::uint8_t*>(received.data), received.bytes());
  return sum_with({there, received.count, received.dtype}, held, out);
}

void DeviceKernel::read_plain(const Part& part, bool of_result, frame::MutBytes out) {
  const ConstArray x = of_result ? ConstArray(result(part)) : operand(part);
  memory_.copy(out.data(), x.data, x.bytes());
}

void DeviceKernel::deliver_plain(const Part& part, frame::Bytes elements) {
  memory_.copy(result(part).data, elements.data(), elements.size());
}

void DeviceKernel::keep(const Part& part) {
  if (work_ == Work::sum) refuse_alone();
  const ConstArray from = operand(part);
  const MutArray to = result(part);
  if (to.data != from.data) memory_.copy(to.data, from.data, from.bytes());
}

void DeviceKernel::deliver(const Part& part, frame::Bytes message) {
  const Workspace work = workspace(decode_workspace(part.count));
  const FrameIn in = bring(0, message, part.count, work);
  decode(in, result(part), work, buffers_.report(0), buffers_.stream(), divisor_);
  if (!finished({message})) throw Error(Code::internal, "gpu: a frame could not be decoded");
}

}  // namespace laconic::gpu
