#include "gpu/device_step.h"

#include <algorithm>
#include <exception>
#include <thread>

#include "collective/movement.h"
#include "core/error.h"
#include "gpu/device_memory.h"

namespace laconic::gpu {
namespace {

constexpr int result_frame = Buffers::most_frames - 1;

bool has(std::uint32_t faults, Fault f) { return (faults & static_cast<std::uint32_t>(f)) != 0; }

}  // namespace

Workspace DeviceStep::begin(std::size_t workspace_bytes) {
  reports_ = 1;
  delivering_ = 0;
  return buffers_.workspace(workspace_bytes);
}

FrameIn DeviceStep::bring(int i, frame::Bytes message, std::size_t count) {
  expect_frame(message, grid_, count);
  const frame::Header header = frame::peek(message);
  auto* const there = buffers_.frames[i].at_least(message.size());
  buffers_.copy_in(there, message.data(), message.size());
  return {there, message.size(), header.grid, header.operands};
}

ConstArray DeviceStep::bring_plain(ConstArray received) {
  if (is_device_pointer(received.data)) return received;
  auto* const there = buffers_.elements.at_least(received.bytes());
  buffers_.copy_in(there, static_cast<const std::uint8_t*>(received.data), received.bytes());
  return {there, received.count, received.dtype};
}

ConstArray DeviceStep::put_aside(ConstArray x) {
  auto* const there = buffers_.elements.at_least(x.bytes());
  buffers_.copy(there, x.data, x.bytes());
  return {there, x.count, x.dtype};
}

FrameOut DeviceStep::room_for(std::size_t capacity) {
  return {buffers_.frames[result_frame].at_least(capacity), capacity};
}

FrameOut DeviceStep::room_for(std::size_t capacity, MutArray delivered, std::uint32_t divisor) {
  FrameOut out = room_for(capacity);
  delivering_ = reports_;
  out.values = {delivered, another_report(), divisor};
  return out;
}

void DeviceStep::fetch(std::size_t count, std::size_t capacity, frame::MutBytes out,
                       double Buffers::Lengths::* length) {
  length_ = &(buffers_.lengths.*length);
  const auto likely = static_cast<std::size_t>(*length_ * static_cast<double>(count));
  fetched_ = std::min({likely + likely / 4, capacity, out.size()});
  buffers_.copy_out(out.data(), buffers_.frames[result_frame].at_least(0), fetched_);
}

bool DeviceStep::finished(std::span<const frame::Bytes> messages, const std::function<void()>& pause) {
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
  const auto reports = buffers_.reports(reports_);
  bool corrupt = has(reports[0].faults, Fault::corrupt);
  for (int i = 1; i < reports_; ++i) {
    const bool fault = reports[static_cast<std::size_t>(i)].faults != 0;
    if (i == delivering_) {
      delivered_ = !fault;
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

std::size_t DeviceStep::take(std::size_t count, frame::MutBytes out) {
  if (written_ > out.size()) throw Error(Code::internal, "gpu: a message has no room for the frame");
  if (count > 0) *length_ = static_cast<double>(written_) / static_cast<double>(count);
  if (written_ > fetched_) {
    auto* const rest = buffers_.frames[result_frame].at_least(0) + fetched_;
    buffers_.copy_out(out.data() + fetched_, rest, written_ - fetched_);
    buffers_.finish();
  }
  return written_;
}

void DeviceStep::abandon() noexcept {
  try {
    buffers_.finish();
  } catch (const std::exception&) {
    return;  // CUDA has failed, and will say so again
  }
}

}  // namespace laconic::gpu
