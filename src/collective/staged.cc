#include "collective/staged.h"

#include <utility>

namespace laconic {

StagedKernel::StagedKernel(Memory& memory, std::vector<ConstArray> operands, std::vector<MutArray> results,
                           const Make& make)
    : Kernel(std::move(operands), std::move(results)), memory_(memory) {
  auto copies = operands_;
  auto places = results_;
  const auto room_for = [&](auto& array) {
    if (array.data == nullptr) return;
    rooms_.push_back(host_memory().array_room(array.bytes()));
    array.data = rooms_.back().get();
  };
  for (ConstArray& x : copies) room_for(x);
  for (MutArray& y : places) room_for(y);
  inner_ = make(std::move(copies), std::move(places));
  inner_->on_pause([this] { pause(); });
}

template <typename Work>
auto StagedKernel::timed(Work&& work) {
  const auto size = work();
  compute_seconds_ += inner_->take_compute_seconds();
  return size;
}

void StagedKernel::bring(const Part& part) {
  const ConstArray x = operand(part);
  if (x.data != nullptr) memory_.copy(const_cast<void*>(inner_->operand(part).data), x.data, x.bytes());
}

void StagedKernel::put(const Part& part) {
  const MutArray y = result(part);
  if (y.data != nullptr) memory_.copy(y.data, inner_->result(part).data, y.bytes());
}

std::size_t StagedKernel::encode(const Part& part, frame::MutBytes out) {
  bring(part);
  return timed([&] { return inner_->encode(part, out); });
}

std::size_t StagedKernel::encode_final(const Part& part, frame::MutBytes out) {
  bring(part);
  const std::size_t size = timed([&] { return inner_->encode_final(part, out); });
  put(part);
  return size;
}

std::size_t StagedKernel::encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) {
  bring(part);
  return timed([&] { return inner_->encode_add(part, received, out); });
}

std::size_t StagedKernel::add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) {
  return timed([&] { return inner_->add(part, held, received, out); });
}

std::size_t StagedKernel::sum(const Part& part, std::optional<frame::Bytes> held,
                              std::span<const frame::Bytes> received, frame::MutBytes out) {
  if (!held) bring(part);
  return timed([&] { return inner_->sum(part, held, received, out); });
}

std::size_t StagedKernel::add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) {
  if (!memory_.holds(received.data)) return timed([&] { return inner_->add_plain(part, held, received, out); });
  const HostOperand here(memory_, received);
  return timed([&] { return inner_->add_plain(part, held, here.get(), out); });
}

void StagedKernel::read_plain(const Part& part, bool of_result, frame::MutBytes out) {
  const ConstArray x = of_result ? ConstArray(result(part)) : operand(part);
  memory_.copy(out.data(), x.data, x.bytes());
}

void StagedKernel::deliver_plain(const Part& part, frame::Bytes elements) {
  memory_.copy(result(part).data, elements.data(), elements.size());
}

void StagedKernel::keep(const Part& part) {
  bring(part);
  inner_->keep(part);
  put(part);
}

void StagedKernel::deliver(const Part& part, frame::Bytes message) {
  inner_->deliver(part, message);
  compute_seconds_ += inner_->take_compute_seconds();
  put(part);
}

std::size_t StagedKernel::reopen(const Part& part, frame::Bytes received, frame::MutBytes out) {
  const std::size_t size = timed([&] { return inner_->reopen(part, received, out); });
  put(part);
  return size;
}

}  // namespace laconic
