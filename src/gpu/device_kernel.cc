#include "gpu/device_kernel.h"

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <utility>

#include "collective/movement.h"
#include "collective/reduction.h"
#include "core/error.h"
#include "frame/frame.h"
#include "gpu/device_memory.h"

namespace laconic::gpu {
namespace {

constexpr int result_frame = Buffers::most_frames - 1;

bool has(std::uint32_t faults, Fault f) { return (faults & static_cast<std::uint32_t>(f)) != 0; }

}  // namespace

DeviceKernel::DeviceKernel(Work work, Memory& memory, Buffers& buffers, std::vector<ConstArray> operands,
                           std::vector<MutArray> results, const Budget& budget, std::uint32_t divisor, int threads)
    : Kernel(std::move(operands), std::move(results)),
      buffers_(buffers),
      grid_(budget.grid),
      work_(work),
      memory_(memory),
      sum_chunk_(budget.sum_chunk),
      divisor_(divisor),
      threads_(threads) {}

std::size_t DeviceKernel::capacity(std::size_t values) const {
  return work_ == Work::sum ? frame::sum_capacity(grid_.dtype, values, sum_chunk_)
                            : frame::capacity(grid_.dtype, values);
}

FrameOut DeviceKernel::room_for(std::size_t count) {
  const std::size_t bytes = capacity(count);
  return {buffers_.frames[result_frame].at_least(bytes), bytes};
}

FrameOut DeviceKernel::room_for(const Part& delivered) {
  FrameOut out = room_for(delivered.count);
  delivering_ = reports_;
  out.values = {result(delivered), another_report(), divisor_};
  return out;
}

Workspace DeviceKernel::begin(std::size_t workspace_bytes) {
  reports_ = 1;
  delivering_ = 0;
  return buffers_.workspace(workspace_bytes);
}

FrameIn DeviceKernel::bring(int i, frame::Bytes message, std::size_t count) {
  expect_frame(message, grid_, count);
  const frame::Header header = frame::peek(message);
  auto* const there = buffers_.frames[i].at_least(message.size());
  buffers_.copy_in(there, message.data(), message.size());
  return {there, message.size(), header.grid, header.operands};
}

void DeviceKernel::fetch(std::size_t count, frame::MutBytes out, double& length) {
  length_ = &length;
  const auto likely = static_cast<std::size_t>(length * static_cast<double>(count));
  fetched_ = std::min({likely + likely / 4, capacity(count), out.size()});
  buffers_.copy_out(out.data(), buffers_.frames[result_frame].at_least(0), fetched_);
}

bool DeviceKernel::finished(std::span<const frame::Bytes> messages) {
  buffers_.fetch_reports(reports_);
  try {
    // While the device works; it is prepared for frames that are damaged. Messages travel on.
    for (const frame::Bytes message : messages) frame::check(message, threads_);
    while (!buffers_.are_done()) {
      pause();
      std::this_thread::yield();
    }
  } catch (...) {
    buffers_.finish();
    throw;
  }
  const auto reports = buffers_.finished_reports(reports_);
  bool corrupt = has(reports[0].faults, Fault::corrupt);
  for (int i = 1; i < reports_; ++i) {
    const bool fault = reports[static_cast<std::size_t>(i)].faults != 0;
    if (i == delivering_) {
      delivered_ = !fault;  // deliver() finds out why
    } else {
      corrupt = corrupt || fault;
    }
  }
  if (corrupt) {
    if (messages.empty()) throw Error(Code::internal, "gpu: this rank's own elements could not be coded");
    throw Error(Code::corrupt, "a frame whose chunks are not what they should be");
  }
  if (has(reports[0].faults, Fault::too_small)) throw Error(Code::internal, "gpu: a frame outgrew its capacity");
  written_ = reports[0].bytes;
  return reports[0].faults == 0;
}

std::size_t DeviceKernel::take(std::size_t count, frame::MutBytes out) {
  if (written_ > out.size()) throw Error(Code::internal, "gpu: a message has no room for the frame");
  if (count > 0) *length_ = static_cast<double>(written_) / static_cast<double>(count);
  if (written_ > fetched_) {
    auto* const rest = buffers_.frames[result_frame].at_least(0) + fetched_;
    buffers_.copy_out(out.data() + fetched_, rest, written_ - fetched_);
    buffers_.finish();
  }
  return written_;
}

std::size_t DeviceKernel::encode(const Part& part, frame::MutBytes out) {
  const ConstArray x = operand(part);
  const Workspace work = begin(encode_workspace(x.count));
  gpu::encode(x, grid_, room_for(x.count), work, buffers_.report(0), buffers_.stream());
  fetch(x.count, out, buffers_.lengths.encoded);
  if (!finished({})) throw Error(Code::internal, "gpu: an array could not be encoded");
  return take(x.count, out);
}

std::size_t DeviceKernel::encode_final(const Part& part, frame::MutBytes out) {
  const ConstArray x = operand(part);
  const Workspace work = begin(encode_workspace(x.count));
  gpu::encode(x, grid_, room_for(part), work, buffers_.report(0), buffers_.stream());
  fetch(x.count, out, buffers_.lengths.encoded);
  if (!finished({})) throw Error(Code::internal, "gpu: an array could not be encoded");
  const std::size_t bytes = take(x.count, out);
  if (!delivered_) deliver(part, out.first(bytes));
  return bytes;
}

std::size_t DeviceKernel::sum_of(std::optional<ConstArray> x, std::span<const frame::Bytes> messages, std::size_t count,
                                 frame::MutBytes out, Fate fate) {
  const Workspace work = begin(sum_workspace(grid_.dtype, count, messages.size() + (x ? 1 : 0)));
  std::array<FrameIn, most_operands> in{};
  for (std::size_t i = 0; i < messages.size(); ++i) in[i] = bring(static_cast<int>(i), messages[i], count);
  const auto frames = std::span(in).first(messages.size());
  FrameOut sum = fate.delivered != nullptr ? room_for(*fate.delivered) : room_for(count);
  sum.checksum = fate.sent_on;
  // The host needs an operand that the result takes the place of where the device cannot form the sum. There may be no
  // memory for it, and then nothing must be under way to `out`.
  if (fate.delivered != nullptr && x && overlap(*x, result(*fate.delivered))) x = put_aside(*x);
  if (x) {
    gpu::encode_sum(*x, frames, sum, work, buffers_.report(0), buffers_.stream());
  } else {
    gpu::sum(frames, count, sum, work, buffers_.report(0), buffers_.stream());
  }
  fetch(count, fate.sent_on ? out : frame::MutBytes(), buffers_.lengths.summed);
  const bool on_device = finished(messages);
  if (fate.delivered == nullptr) return on_device ? take(count, out) : sum_on_host(x, messages, out);
  if (on_device && delivered_) return fate.sent_on ? take(count, out) : 0;
  const std::size_t bytes = on_device && fate.sent_on ? take(count, out) : sum_on_host(x, messages, out);
  deliver(*fate.delivered, out.first(bytes));
  return bytes;
}

ConstArray DeviceKernel::put_aside(ConstArray x) {
  auto* const there = buffers_.elements.at_least(x.bytes());
  buffers_.copy(there, x.data, x.bytes());
  return {there, x.count, x.dtype};
}

std::size_t DeviceKernel::sum_on_host(std::optional<ConstArray> x, std::span<const frame::Bytes> messages,
                                      frame::MutBytes out) {
  std::optional<HostOperand> here;
  if (x) here.emplace(memory_, *x);
  return frame::sum(here ? std::optional(here->get()) : std::nullopt, messages, out, threads_);
}

std::size_t DeviceKernel::sum_of(const Part& part, std::optional<frame::Bytes> held,
                                 std::span<const frame::Bytes> received, frame::MutBytes out, Fate fate) {
  if (!held) return sum_of(operand(part), received, part.count, out, fate);
  std::vector<frame::Bytes> all{*held};
  all.insert(all.end(), received.begin(), received.end());
  return sum_of(std::nullopt, all, part.count, out, fate);
}

std::size_t DeviceKernel::sum(const Part& part, std::optional<frame::Bytes> held,
                              std::span<const frame::Bytes> received, frame::MutBytes out) {
  if (received.size() == 1) return Kernel::sum(part, held, received, out);
  return sum_of(part, held, received, out, Fate{});
}

std::size_t DeviceKernel::sum_final(const Part& part, std::optional<frame::Bytes> held,
                                    std::span<const frame::Bytes> received, frame::MutBytes out, bool sent_on) {
  return sum_of(part, held, received, out, {.delivered = &part, .sent_on = sent_on});
}

std::size_t DeviceKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  return sum_of(operand(part), {&received, 1}, part.count, out, Fate{});
}

std::size_t DeviceKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  return sum_of(std::nullopt, std::array{held, received}, part.count, out, Fate{});
}

ConstArray DeviceKernel::bring_plain(ConstArray received) {
  if (is_device_pointer(received.data)) return received;
  auto* const there = buffers_.elements.at_least(received.bytes());
  buffers_.copy_in(there, static_cast<const std::uint8_t*>(received.data), received.bytes());
  return {there, received.count, received.dtype};
}

std::size_t DeviceKernel::add_plain(const Part&, frame::Bytes held, ConstArray received, frame::MutBytes out) {
  return sum_of(bring_plain(received), {&held, 1}, received.count, out, Fate{});
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
  const Workspace work = begin(decode_workspace(part.count));
  const FrameIn in = bring(0, message, part.count);
  decode(in, result(part), work, buffers_.report(0), buffers_.stream(), divisor_);
  if (finished({&message, 1})) return;
  HostResult here(memory_, result(part));  // a sum of more terms than the device adds
  frame::decode(message, here.get(), threads_, divisor_);
  here.put_back();
}

}  // namespace laconic::gpu
