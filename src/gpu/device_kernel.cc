#include "gpu/device_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collective/movement.h"
#include "collective/reduction.h"
#include "core/error.h"
#include "frame/frame.h"
#include "gpu/device_memory.h"

namespace laconic::gpu {
namespace {

/// Of a sum of so many, but for an array before them.
std::vector<frame::Bytes> messages_of(const Task& task) {
  std::vector<frame::Bytes> all;
  if (task.held) all.push_back(*task.held);
  all.insert(all.end(), task.received.begin(), task.received.end());
  return all;
}

bool is_same(const Task& a, const Task& b) {
  return a.what == b.what && a.part.block == b.part.block && a.part.first == b.part.first &&
         a.part.count == b.part.count && a.final == b.final && a.sent_on == b.sent_on && a.out.data() == b.out.data() &&
         a.held.has_value() == b.held.has_value() &&
         std::ranges::equal(messages_of(a), messages_of(b), {}, &frame::Bytes::data, &frame::Bytes::data);
}

/// Whether no part of the result lies where the operand of another part does: what works on one of them may then be
/// under way beside what works on another. Not either where operands overlap each other.
bool lie_apart(const std::vector<ConstArray>& operands, const std::vector<MutArray>& results) {
  std::vector<ConstArray> places;
  for (std::size_t b = 0; b < operands.size(); ++b) {
    const ConstArray x = operands[b];
    const ConstArray y = results[b];
    const bool in_place = x.data == y.data;
    if (x.data != nullptr && !(in_place && x.count < y.count)) places.push_back(x);
    if (y.data != nullptr && !(in_place && y.count <= x.count)) places.push_back(y);
  }
  return !first_overlap(places);
}

}  // namespace

DeviceKernel::DeviceKernel(Work work, Memory& memory, const Lanes& lanes, std::vector<ConstArray> operands,
                           std::vector<MutArray> results, const Budget& budget, std::uint32_t divisor, int threads)
    : Kernel(std::move(operands), std::move(results)),
      grid_(budget.grid),
      work_(work),
      memory_(memory),
      sum_chunk_(budget.sum_chunk),
      divisor_(divisor),
      threads_(threads),
      lanes_{{DeviceStep(lanes.first, grid_, threads)}, {DeviceStep(lanes.second, grid_, threads)}},
      begins_(lie_apart(operands_, results_)) {}

DeviceKernel::~DeviceKernel() { forget(); }

std::size_t DeviceKernel::capacity(std::size_t values) const {
  return work_ == Work::sum ? frame::sum_capacity(grid_.dtype, values, sum_chunk_)
                            : frame::capacity(grid_.dtype, values);
}

DeviceKernel::Lane* DeviceKernel::lane_of(const Task& task) {
  const auto found = std::ranges::find_if(lanes_, [&](const Lane& l) { return l.begun && is_same(*l.begun, task); });
  return found != std::end(lanes_) ? found : nullptr;
}

DeviceKernel::Lane* DeviceKernel::free_lane() {
  const auto found = std::ranges::find_if(lanes_, [](const Lane& l) { return !l.begun; });
  return found != std::end(lanes_) ? found : nullptr;
}

void DeviceKernel::begin(const Task& task) noexcept {
  Lane* const lane = free_lane();
  if (lane == nullptr || !begins()) return;
  try {
    if (lane_of(task) != nullptr) return;
    enqueue(*lane, task);
    lane->begun = task;
  } catch (const std::exception&) {  // the call will say why
    lane->step.abandon();
  }
}

void DeviceKernel::forget() noexcept {
  for (Lane& lane : lanes_) {
    if (lane.begun) lane.step.abandon();
    lane.begun.reset();
  }
}

/// Of what was begun before and not called for yet, one is left at most: who announces a call announces that first
/// which is called at once.
std::size_t DeviceKernel::run(const Task& task) {
  Lane* lane = lane_of(task);
  if (lane == nullptr) {
    if (lane = free_lane(); lane == nullptr) forget();
    if (lane == nullptr) lane = free_lane();
    lane->step.abandoning([&] { enqueue(*lane, task); });
  }
  lane->begun.reset();
  return complete(*lane, task);
}

void DeviceKernel::enqueue(Lane& lane, const Task& task) {
  if (&lane != &lanes_[0] && !std::exchange(in_order_, true)) lane.step.buffers().follow(lanes_[0].step.stream());
  switch (task.what) {
    case Task::What::encode:
      enqueue_encode(lane.step, task);
      break;
    case Task::What::sum:
      enqueue_sum(lane, task.held ? std::nullopt : std::optional(operand(task.part)), task);
      break;
    case Task::What::deliver:
      enqueue_deliver(lane.step, task);
  }
  lane.step.end();
}

std::size_t DeviceKernel::complete(Lane& lane, const Task& task) {
  if (task.what == Task::What::encode) return complete_encode(lane.step, task);
  if (task.what == Task::What::sum) return complete_sum(lane, task);
  complete_deliver(lane.step, task);
  return 0;
}

void DeviceKernel::enqueue_encode(DeviceStep& step, const Task& task) {
  const ConstArray x = operand(task.part);
  const std::size_t most = capacity(x.count);
  const Workspace work = step.begin(encode_workspace(x.count));
  const FrameOut out = task.final ? step.room_for(most, result(task.part), divisor_) : step.room_for(most);
  gpu::encode(x, grid_, out, work, step.report(), step.stream());
  step.fetch(x.count, most, task.out, &Buffers::Lengths::encoded);
}

std::size_t DeviceKernel::complete_encode(DeviceStep& step, const Task& task) {
  if (!finished(step, {})) throw Error(Code::internal, "gpu: an array could not be encoded");
  const std::size_t bytes = step.take(task.part.count, task.out);
  if (task.final && !step.delivered()) deliver(task.part, task.out.first(bytes));  // which finds out why
  return bytes;
}

void DeviceKernel::enqueue_sum(Lane& lane, std::optional<ConstArray> x, const Task& task) {
  DeviceStep& step = lane.step;
  const std::size_t count = task.part.count;
  const std::size_t most = capacity(count);
  const auto messages = messages_of(task);
  const Workspace work = step.begin(sum_workspace(grid_.dtype, count, messages.size() + (x ? 1 : 0)));
  std::array<FrameIn, most_operands> in{};
  for (std::size_t i = 0; i < messages.size(); ++i) in[i] = step.bring(static_cast<int>(i), messages[i], count);
  const auto frames = std::span(in).first(messages.size());
  // The host needs an operand that the result takes the place of where the device cannot form the sum. There may be no
  // memory for it, and then nothing must be under way to `out`.
  if (task.final && x && overlap(*x, result(task.part))) x = step.put_aside(*x);
  FrameOut out = task.final ? step.room_for(most, result(task.part), divisor_) : step.room_for(most);
  out.checksum = task.sent_on;
  if (x) {
    gpu::encode_sum(*x, frames, out, work, step.report(), step.stream());
  } else {
    gpu::sum(frames, count, out, work, step.report(), step.stream());
  }
  step.fetch(count, most, task.sent_on ? task.out : frame::MutBytes(), &Buffers::Lengths::summed);
  lane.x = x;
}

std::size_t DeviceKernel::complete_sum(Lane& lane, const Task& task) {
  DeviceStep& step = lane.step;
  const std::size_t count = task.part.count;
  const auto messages = messages_of(task);
  const bool on_device = finished(step, messages);
  if (!task.final) return on_device ? step.take(count, task.out) : sum_on_host(lane.x, messages, task.out);
  if (on_device && step.delivered()) return task.sent_on ? step.take(count, task.out) : 0;
  const bool there = on_device && task.sent_on;
  const std::size_t bytes = there ? step.take(count, task.out) : sum_on_host(lane.x, messages, task.out);
  deliver(task.part, task.out.first(bytes));
  return bytes;
}

std::size_t DeviceKernel::sum_on_host(std::optional<ConstArray> x, std::span<const frame::Bytes> messages,
                                      frame::MutBytes out) {
  std::optional<HostOperand> here;
  if (x) here.emplace(memory_, *x);
  return frame::sum(here ? std::optional(here->get()) : std::nullopt, messages, out, threads_);
}

void DeviceKernel::enqueue_deliver(DeviceStep& step, const Task& task) {
  const Workspace work = step.begin(decode_workspace(task.part.count));
  const FrameIn in = step.bring(0, task.received[0], task.part.count);
  decode(in, result(task.part), work, step.report(), step.stream(), divisor_);
}

void DeviceKernel::complete_deliver(DeviceStep& step, const Task& task) {
  if (finished(step, task.received)) return;
  HostResult here(memory_, result(task.part));  // a sum of more terms than the device adds
  frame::decode(task.received[0], here.get(), threads_, divisor_);
  here.put_back();
}

std::size_t DeviceKernel::encode(const Part& part, frame::MutBytes out) {
  return run({.what = Task::What::encode, .part = part, .out = out});
}

std::size_t DeviceKernel::encode_final(const Part& part, frame::MutBytes out) {
  return run({.what = Task::What::encode, .part = part, .final = true, .out = out});
}

std::size_t DeviceKernel::sum(const Part& part, std::optional<frame::Bytes> held,
                              std::span<const frame::Bytes> received, frame::MutBytes out) {
  if (received.size() == 1) return Kernel::sum(part, held, received, out);
  return run({.what = Task::What::sum,
              .part = part,
              .held = held,
              .received = {received.begin(), received.end()},
              .out = out});
}

std::size_t DeviceKernel::sum_final(const Part& part, std::optional<frame::Bytes> held,
                                    std::span<const frame::Bytes> received, frame::MutBytes out, bool sent_on) {
  return run({.what = Task::What::sum,
              .part = part,
              .final = true,
              .sent_on = sent_on,
              .held = held,
              .received = {received.begin(), received.end()},
              .out = out});
}

std::size_t DeviceKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  return run({.what = Task::What::sum, .part = part, .received = {received}, .out = out});
}

std::size_t DeviceKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  return run({.what = Task::What::sum, .part = part, .held = held, .received = {received}, .out = out});
}

std::size_t DeviceKernel::add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) {
  const Task task{.what = Task::What::sum, .part = part, .received = {held}, .out = out};
  Lane* lane = free_lane();
  if (lane == nullptr) forget(), lane = free_lane();
  lane->step.abandoning([&] {
    enqueue_sum(*lane, lane->step.bring_plain(received), task);
    lane->step.end();
  });
  return complete_sum(*lane, task);
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
  run({.what = Task::What::deliver, .part = part, .received = {message}});
}

}  // namespace laconic::gpu
