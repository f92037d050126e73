// What a pipeline tells its kernel before it asks for it: a kernel with whom others work may have them begin.
#include <exception>
#include <optional>
#include <utility>

#include "collective/pipeline.h"

namespace laconic {

bool Pipeline::is_to_encode(const Piece& p) {
  const Slot& s = slot(p);
  return !p.plain && s.message == nullptr && !s.queued;
}

void Pipeline::announce_encoding(const Envelope& envelope) {
  const Piece& p = envelope.pieces[0];
  if (envelope.pieces.size() != 1 || !is_to_encode(p)) return;
  announce(slot(p), {.what = Task::What::encode, .part = part(p), .final = encodes_finally(p)});
}

void Pipeline::announce_delivery(const Delivery& d) {
  if (d.message == nullptr || !kernel_.begins()) return;
  const Timed clock(report_.stats.codec_seconds);
  kernel_.begin({.what = Task::What::deliver, .part = d.part, .received = {d.message->bytes()}});
}

/// What has come already, and can be added by itself.
void Pipeline::announce_next_sum() {
  if (!kernel_.begins() || coded_.posted.empty()) return;
  const Envelope& envelope = coded_.envelopes[coded_.next];
  const Piece& p = envelope.pieces[0];
  Slot& s = slot(p);
  const bool adds = p.how == schedule::Combine::reduce && (!program_.exclusive || s.sends_left != 0) &&
                    (sums_.empty() || sums_[static_cast<std::size_t>(p.block)][static_cast<std::size_t>(s.version)]);
  if (envelope.pieces.size() != 1 || !adds || !s.waiting.empty()) return;
  Posted& posted = coded_.posted.front();
  if (!posted.request.test()) return;
  announce(s, sum_of(p, {posted.message->room().first(posted.request.received())}));
}

void Pipeline::announce(Slot& slot, Task task) {
  if (!kernel_.begins()) return;
  const Timed clock(report_.stats.codec_seconds);
  try {
    if (slot.room == nullptr) slot.room = comm_.pool().take(capacity_);
  } catch (const std::exception&) {  // the call needs it, too, and will say so
    return;
  }
  task.out = slot.room->room();
  kernel_.begin(task);
}

/// For what the kernel writes next of this slot.
MessagePtr Pipeline::room_of(Slot& slot) {
  return slot.room != nullptr ? std::move(slot.room) : comm_.pool().take(capacity_);
}

}  // namespace laconic
