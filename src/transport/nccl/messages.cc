// Messages of one rank, before and after they travel.
#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "core/beside_captures.h"
#include "transport/nccl/rounds.h"

namespace laconic::nccl {

Rounds::Sent Rounds::send(std::span<const std::uint8_t> data, int to, int tag) {
  const Memory memory = memory_of(data);
  return queued_.emplace_back(std::make_shared<Outgoing>(Outgoing{data, to, tag, memory}));
}

Rounds::Awaited Rounds::receive(std::span<std::uint8_t> buffer, int from, int tag) {
  const Memory memory = buffer.empty() ? Memory::pageable : memory_of(buffer.data());
  auto awaited = std::make_shared<Incoming>(Incoming{buffer, from, tag, memory});
  const auto match = std::find_if(unasked_.begin(), unasked_.end(),
                                  [&](const Arriving& a) { return a->from == from && a->tag == tag; });
  if (match == unasked_.end()) {
    posted_.push_back(awaited);
    return awaited;
  }
  const Arriving arrival = std::move(*match);
  unasked_.erase(match);
  arrival->receiver = awaited;
  awaited->state = Incoming::State::matched;
  if (arrival->landed) guarded([&] { deliver(arrival); });
  return awaited;
}

/// What has been announced must come: from a copy, since the caller's memory may go.
void Rounds::drop(const Sent& sent) noexcept {
  if (failure_ || sent->state == Outgoing::State::done) return;
  if (sent->state == Outgoing::State::queued) {
    std::erase(queued_, sent);
    return;
  }
  try {
    if (sent->state == Outgoing::State::announced && sent->memory != Memory::device) {
      sent->copy = pool_.take(sent->data.size());
      if (!sent->data.empty()) std::memcpy(sent->copy.get(), sent->data.data(), sent->data.size());
      sent->data = {sent->copy.get(), sent->data.size()};
      return;
    }
    wait([&] { return sent->state == Outgoing::State::done; }, "rank " + std::to_string(sent->to));
  } catch (const std::exception& e) {
    fail(e.what());
  }
}

void Rounds::drop(const Awaited& awaited) noexcept {
  if (failure_ || awaited->state == Incoming::State::done) return;
  if (awaited->state == Incoming::State::posted) {
    std::erase(posted_, awaited);
    return;
  }
  try {
    wait([&] { return awaited->state == Incoming::State::done; }, "rank " + std::to_string(awaited->from));
  } catch (const std::exception& e) {
    fail(e.what());
  }
}

bool Rounds::land() {
  bool news = false;
  std::erase_if(flights_, [&](Flight& flight) {  // marks the ends of others as soon as it can be
    if (flight.operation && !flight.operation->done()) return false;
    news = news || !flight.arrivals.empty();
    land(flight);
    return true;
  });
  finish_deliveries();
  return news;
}

void Rounds::land(Flight& flight) {
  if (flight.operation) {
    std::size_t bytes = 0;
    for (const Arriving& a : flight.arrivals) bytes += a->bytes;
    pace_.note(bytes, flight.begin, std::chrono::steady_clock::now());
  }
  for (const Sent& s : flight.sends) {
    s->state = Outgoing::State::done;
    s->copy.reset();
  }
  for (const Arriving& a : flight.arrivals) {
    a->landed = true;
    if (a->receiver != nullptr) deliver(a);
  }
  if (flight.answers && small_) answer(small_->in.get(), small_->mine.size());
}

/// A message that has landed and is wanted.
void Rounds::deliver(const Arriving& arrival) {
  Incoming& r = *arrival->receiver;
  r.length = arrival->bytes;
  r.state = Incoming::State::done;
  if (arrival->room == nullptr || r.length > r.buffer.size()) return;
  if (r.memory != Memory::device) {
    std::memcpy(r.buffer.data(), arrival->room.get(), r.length);
    return;
  }
  const BesideCaptures beside;
  const OnDevice as(device_);
  r.state = Incoming::State::copying;
  check(rank_, "cudaMemcpyAsync",
        cudaMemcpyAsync(r.buffer.data(), arrival->room.get(), r.length, cudaMemcpyDefault, copies_->get()));
  deliveries_.emplace_back(arrival, rank_).end.record(copies_->get());
}

void Rounds::finish_deliveries() {
  std::erase_if(deliveries_, [](Delivery& d) {
    if (!d.end.passed()) return false;
    d.arrival->receiver->state = Incoming::State::done;
    return true;
  });
}

}  // namespace laconic::nccl
