#include "collective/pipeline.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <typeinfo>
#include <utility>

namespace laconic {
namespace {

constexpr int plain_tag = 0;
constexpr int coded_tag = 1;

// Receives posted ahead. Enough to ride out a neighbour's scheduling gap; each costs address space, not memory.
constexpr std::size_t receive_window = 8;

// Messages under way before a sender waits, where it may.
constexpr std::size_t one_way_window = 3;

std::string block_name(int block) { return "block " + std::to_string(block); }

}  // namespace

Pipeline::Pipeline(Communicator& comm, const schedule::Program& program, const Layout& layout, Kernel& kernel,
                   Report& report)
    : comm_(comm),
      transport_(comm.transport()),
      program_(program),
      layout_(layout),
      kernel_(kernel),
      report_(report),
      plain_{.tag = plain_tag, .content = Content::elements},
      coded_{.tag = coded_tag, .content = Content::data} {
  kernel.on_pause([this] { transport_.poll(); });
  plan();
}

std::optional<Failure> Pipeline::run(const std::optional<Failure>& earlier) {
  if (earlier) fail(*earlier);
  try {
    run_program();
  } catch (...) {
    kernel_.forget();
    // Messages may still be under way, into and out of buffers of ours. No scope that was left let go of them: they are
    // in inboxes and outgoing_.
    if (!transport_.lets_go()) comm_.pool().abandon();
    comm_.mark_unusable();
    throw;
  }
  kernel_.forget();
  comm_.pool().hold_beside(kernel_.scratch_bytes());
  return failure_;
}

void Pipeline::run_program() {
  for (Inbox* inbox : {&plain_, &coded_}) {
    if (!inbox->envelopes.empty()) inbox->spare = comm_.pool().take(capacity_, inbox->content);
  }
  post_receives();
  if (!failure_) note_what_stays();
  for (const StepPlan& step : steps_) {
    begin_step(step);
    for (std::size_t k = 0; k < step.plain; ++k) receive(plain_);  // waits for no other node
    for (std::size_t k = 0; k < step.coded; ++k) receive(coded_);
  }
  while (deliver_one()) reap();
  const double compute = kernel_.take_compute_seconds();
  report_.stats.codec_seconds -= compute;
  report_.stats.compute_seconds += compute;
  const Timed clock(report_.stats.wire_seconds);
  for (Posted& p : outgoing_) p.request.wait();
}

void Pipeline::post_receives() {
  post_receives(plain_);
  post_receives(coded_);
}

void Pipeline::post_receives(Inbox& inbox) {
  while (inbox.posted.size() < receive_window && inbox.next + inbox.posted.size() < inbox.envelopes.size()) {
    MessagePtr message;
    try {
      message = comm_.pool().take(capacity_, inbox.content);
    } catch (const std::exception& e) {
      if (!inbox.posted.empty()) return;  // fewer will do
      if (free_some()) continue;
      if (inbox.spare == nullptr) throw;
      lack_memory(e);  // from now on each receive gives its message back at once
      message = std::move(inbox.spare);
    }
    const int peer = inbox.envelopes[inbox.next + inbox.posted.size()].peer;
    inbox.posted.push_back({Request(), std::move(message)});
    inbox.posted.back().request = transport_.irecv(inbox.posted.back().message->room(), peer, inbox.tag);
  }
}

/// Lets go of messages that are done with, without waiting: others may lack memory, too, and wait for this rank.
bool Pipeline::free_some() {
  if (deliver_one()) return true;
  const std::size_t before = outgoing_.size();
  reap();
  return outgoing_.size() < before;
}

void Pipeline::lack_memory(const std::exception& why) {
  if (failure_) return;
  const bool plainly = typeid(why) == typeid(std::bad_alloc);  // a GPU says more
  fail({Code::internal, program_.rank,
        "rank " + std::to_string(program_.rank) + ": " + (plainly ? "out of memory" : why.what())});
}

/// Null, and the run has failed: there is no memory.
MessagePtr Pipeline::room(Content content) {
  try {
    return comm_.pool().take(capacity_, content);
  } catch (const std::exception& e) {
    lack_memory(e);
    return nullptr;
  }
}

/// All sends of the step go out. What they need from earlier steps is there; operands are encoded now.
void Pipeline::begin_step(const StepPlan& step) {
  for (const auto& [peer, envelopes] : step.sends) {
    Lane& lane = lanes_[peer];
    lane.due += envelopes;
    while (lane.next < lane.due) {
      if (failure_) {
        send_poison(lane);
        continue;
      }
      prepare(lane.envelopes[lane.next], lane.next + 1 < lane.due ? &lane.envelopes[lane.next + 1] : nullptr);
      if (failure_) continue;
      flush_all();  // a piece of an operand goes to all who want it before the next one is encoded
      reap();
    }
  }
}

/// Encodes those of its pieces that are operands which nobody has asked for before, and sees to it that results which
/// go as they are have been decoded.
void Pipeline::prepare(const Envelope& envelope, const Envelope* following) {
  announce_encoding(envelope);
  if (following != nullptr && is_sending()) announce_encoding(*following);
  for (const Piece& p : envelope.pieces) {
    if (p.plain && !is_result(p)) continue;
    Slot& s = slot(p);
    if (s.message == nullptr && !s.queued) {
      const auto block = static_cast<std::size_t>(p.block);
      const bool final = final_version_[block] == 0 && program_.result[block];
      const bool at_once = encodes_finally(p);
      s.message = encoded(p, at_once);
      if (failure_) return;
      if (at_once) {
        s.queued = s.delivered = true;
      } else if (final) {
        queue(p, s.message, program_.rank);
      }
      if (s.sends_left == 0) s.message.reset();
    }
    while (p.plain && !s.delivered && deliver_one()) continue;
  }
}

/// The first segment leaves as soon as it can: there is time for delivering it while it is on its way.
bool Pipeline::encodes_finally(const Piece& p) const {
  const auto block = static_cast<std::size_t>(p.block);
  return final_version_[block] == 0 && program_.result[block] && p.segment != 0 && kernel_.delivers_as_it_encodes();
}

/// As above, of what others wait for.
bool Pipeline::adds_finally(const Piece& p) {
  return is_last_sum(p) && (p.segment != 0 || slot(p).sends_left == 0) && kernel_.delivers_as_it_adds();
}

bool Pipeline::is_result(const Piece& p) const {
  const auto block = static_cast<std::size_t>(p.block);
  return program_.result[block] && p.version == final_version_[block];
}

/// Whether what this receive brings completes a sum that goes to the caller.
bool Pipeline::is_last_sum(const Piece& p) {
  const auto block = static_cast<std::size_t>(p.block);
  return program_.result[block] && !program_.exclusive && slot(p).version + 1 == final_version_[block];
}

void Pipeline::receive(Inbox& inbox) {
  post_receives();
  const Envelope& envelope = inbox.envelopes[inbox.next];
  await(inbox.posted.front().request);
  Posted posted = std::move(inbox.posted.front());
  inbox.posted.pop_front();
  ++inbox.next;
  const std::size_t size = posted.request.received();
  comm_.pool().filled(posted.message, size);
  const bool plain = envelope.pieces[0].plain;
  if (!plain) report_.bytes_received += size;
  if (failure_) return;
  if (plain && size == plain_bytes(envelope.pieces[0])) {
    take_plain(envelope.peer, envelope.pieces[0], posted.message);
    return;
  }
  std::optional<Failure> failure;
  if (const MessagePtr said = readable(posted.message)) failure = failure_in(said->bytes());
  if (failure_) return;
  if (failure) {
    fail(std::move(*failure));
  } else if (plain) {
    guarded(block_name(envelope.pieces[0].block) + " from rank " + std::to_string(envelope.peer), [&] {
      throw Error(Code::corrupt, std::to_string(size) + " bytes came where " +
                                     std::to_string(plain_bytes(envelope.pieces[0])) + " of plain elements were due");
    });
  } else if (envelope.pieces.size() == 1) {
    combine(envelope.peer, envelope.pieces[0], std::move(posted.message));
  } else {
    open(envelope, posted.message);
  }
}

/// What came where elements were due, where it can be read; null, see room().
MessagePtr Pipeline::readable(const MessagePtr& message) {
  if (message->content() == Content::data) return message;
  MessagePtr copy = room(Content::data);
  if (copy == nullptr) return nullptr;
  comm_.memory().copy(copy->room().data(), message->bytes().data(), message->bytes().size());
  comm_.pool().filled(copy, message->bytes().size());
  return copy;
}

/// Takes a shared message apart.
void Pipeline::open(const Envelope& envelope, const MessagePtr& received) {
  auto rest = received->bytes();
  for (const Piece& p : envelope.pieces) {
    MessagePtr message;
    const bool done = guarded(block_name(p.block) + " from rank " + std::to_string(envelope.peer), [&] {
      message = comm_.pool().take(capacity_);
      std::uint32_t size = 0;
      if (rest.size() >= piece_head) std::memcpy(&size, rest.data(), piece_head);
      if (rest.size() < piece_head || rest.size() - piece_head < size || size > message->capacity()) {
        throw Error(Code::corrupt, "a shared message ends within a piece");
      }
      rest = rest.subspan(piece_head);
      std::copy_n(rest.begin(), size, message->room().begin());
      comm_.pool().filled(message, size);
      rest = rest.subspan(size);
    });
    if (!done) return;
    combine(envelope.peer, p, std::move(message));
    if (failure_) return;
  }
}

/// Waiting time is decoding time, as long as there is something to decode.
void Pipeline::await(Request& request) {
  while (!request.test()) {
    if (deliver_one()) continue;
    const Timed clock(report_.stats.wire_seconds);
    request.wait();
    return;
  }
}

void Pipeline::take_plain(int peer, const Piece& piece, const MessagePtr& received) {
  Slot& s = slot(piece);
  const std::string what = block_name(piece.block) + " from rank " + std::to_string(peer);
  if (piece.how == schedule::Combine::copy) {
    s.queued = s.delivered = guarded(what, [&] { kernel_.deliver_plain(part(piece), received->bytes()); });
    if (s.delivered) advance(peer, piece, nullptr);
    return;
  }
  if (s.message == nullptr) s.message = encoded(piece);
  if (failure_) return;
  MessagePtr sum;
  const bool done = guarded(what, [&] {
    sum = comm_.pool().take(capacity_);
    ConstArray x = kernel_.operand(part(piece));
    x.data = received->bytes().data();
    comm_.pool().filled(sum, kernel_.add_plain(part(piece), s.message->bytes(), x, sum->room()));
  });
  if (!done) return;
  s.message = std::move(sum);
  advance(peer, piece, s.message);
}

void Pipeline::combine(int peer, const Piece& piece, MessagePtr received) {
  Slot& s = slot(piece);
  const MessagePtr arrived = received;
  if (piece.how == schedule::Combine::copy) {
    s.message = std::move(received);
    if (kernel_.reopens() && s.sends_left != 0) {
      MessagePtr again;
      const std::string what = block_name(piece.block) + " from rank " + std::to_string(peer);
      s.queued = s.delivered = guarded(what, [&] {
        again = comm_.pool().take(capacity_);
        comm_.pool().filled(again, kernel_.reopen(part(piece), s.message->bytes(), again->room()));
      });
      if (!s.delivered) return;
      s.message = again;
    }
  } else if (!program_.exclusive || s.sends_left != 0) {
    s.waiting.emplace_back(peer, std::move(received));
    const bool now = sums_.empty() || sums_[static_cast<std::size_t>(piece.block)][static_cast<std::size_t>(s.version)];
    if (now && !add_waiting(piece)) return;
  }
  advance(peer, piece, program_.exclusive ? arrived : s.message);
}

/// What is held, or this rank's own operand, and these.
Task Pipeline::sum_of(const Piece& piece, std::vector<frame::Bytes> received) {
  const Slot& s = slot(piece);
  const bool final = adds_finally(piece);
  return {.what = Task::What::sum,
          .part = part(piece),
          .final = final,
          .sent_on = !final || s.sends_left != 0,
          .held = s.message == nullptr ? std::nullopt : std::optional(s.message->bytes()),
          .received = std::move(received)};
}

/// False when the kernel threw.
bool Pipeline::add_waiting(const Piece& piece) {
  Slot& s = slot(piece);
  MessagePtr sum;
  std::vector<frame::Bytes> received;
  std::string from;
  for (const auto& [peer, message] : s.waiting) {
    received.push_back(message->bytes());
    from += (from.empty() ? "" : ", ") + std::to_string(peer);
  }
  const std::string what = block_name(piece.block) + " from rank" + (received.size() > 1 ? "s " : " ") + from;
  const Task task = sum_of(piece, std::move(received));
  announce(s, task);
  if (s.sends_left == 0 || is_sending()) announce_next_sum();
  const bool at_once = task.final;
  const bool done = guarded(what, [&] {
    sum = room_of(s);
    const auto room = sum->room();
    comm_.pool().filled(sum, at_once ? kernel_.sum_final(task.part, task.held, task.received, room, task.sent_on)
                                     : kernel_.sum(task.part, task.held, task.received, room));
  });
  s.waiting.clear();
  if (done && at_once) s.queued = s.delivered = true;
  if (done) s.message = std::move(sum);
  return done;
}

/// After a receive: the piece goes on to others and, if it is complete, to the caller.
void Pipeline::advance(int peer, const Piece& piece, MessagePtr result) {
  Slot& s = slot(piece);
  ++s.version;
  flush_all();
  const auto block = static_cast<std::size_t>(piece.block);
  if (s.version == final_version_[block]) {
    if (program_.result[block] && !s.queued) queue(piece, std::move(result), peer);
    if (s.sends_left == 0) s.message.reset();
  }
  reap();
}

void Pipeline::queue(const Piece& piece, MessagePtr message, int from) {
  slot(piece).queued = true;
  deliveries_.push_back({part(piece), &slot(piece), std::move(message), from});
}

MessagePtr Pipeline::encoded(const Piece& piece, bool final) {
  MessagePtr message;
  guarded("its own " + block_name(piece.block), [&] {
    message = room_of(slot(piece));
    const auto room = message->room();
    const Part p = part(piece);
    comm_.pool().filled(message, final ? kernel_.encode_final(p, room) : kernel_.encode(p, room));
  });
  return message;
}

void Pipeline::flush_all() {
  for (auto& [peer, lane] : lanes_) flush(lane);
}

/// Posts whatever is ready, in program order.
void Pipeline::flush(Lane& lane) {
  while (lane.next < lane.envelopes.size()) {
    const Envelope& envelope = lane.envelopes[lane.next];
    const bool due = lane.next < lane.due;
    for (const Piece& p : envelope.pieces) {
      if (!ready(p, due)) return;
    }
    if (!post(envelope)) return;
    ++lane.next;
  }
}

/// Plain operands are always there, but go only when their step has come: they would fill the receiver's memory.
bool Pipeline::ready(const Piece& p, bool due) {
  const Slot& s = slot(p);
  if (p.plain) return is_result(p) ? s.delivered : due;
  return s.message != nullptr && s.version == p.version;
}

/// It is in outgoing_ before it is under way: nothing may be lost between.
void Pipeline::send(const MessagePtr& message, const Envelope& envelope) {
  Posted& posted = outgoing_.emplace_back(Posted{Request(), message});
  posted.request = transport_.isend(message->bytes(), envelope.peer, inbox_of(envelope).tag);
}

/// False: the run has failed, and a poison message will go in its place.
bool Pipeline::post(const Envelope& envelope) {
  const Piece& first = envelope.pieces[0];
  if (first.plain && program_.one_way) make_room();
  const MessagePtr message = first.plain                   ? plain(first)
                             : envelope.pieces.size() == 1 ? slot(first).message
                                                           : sealed(envelope);
  if (message == nullptr) return false;
  send(message, envelope);
  ++report_.messages_sent;
  if (first.plain) {
    report_.local_bytes += message->bytes().size();
    return true;
  }
  report_.stats.wire_bytes += message->bytes().size();
  for (const Piece& p : envelope.pieces) {
    Slot& s = slot(p);
    report_.stats.original_bytes += part(p).count * kernel_.element_bytes();
    if (--s.sends_left == 0 && s.version == final_version_[static_cast<std::size_t>(p.block)]) s.message.reset();
  }
  return true;
}

/// Where senders need not listen, they keep few messages under way.
void Pipeline::make_room() {
  const Timed clock(report_.stats.wire_seconds);
  while (outgoing_.size() >= one_way_window) {
    outgoing_.front().request.wait();
    outgoing_.pop_front();
  }
}

/// A copy, since the caller's memory may change before it has been sent, or after a failure be gone.
MessagePtr Pipeline::plain(const Piece& piece) {
  MessagePtr message = room(Content::elements);
  if (message == nullptr) return nullptr;
  kernel_.read_plain(part(piece), is_result(piece), message->room());
  comm_.pool().filled(message, plain_bytes(piece));
  return message;
}

/// The pieces in one message, each after its size.
MessagePtr Pipeline::sealed(const Envelope& envelope) {
  MessagePtr message = room(Content::data);
  if (message == nullptr) return nullptr;
  std::size_t at = 0;
  for (const Piece& p : envelope.pieces) {
    const auto bytes = slot(p).message->bytes();
    const auto size = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(message->room().data() + at, &size, piece_head);
    std::copy(bytes.begin(), bytes.end(), message->room().begin() + static_cast<std::ptrdiff_t>(at + piece_head));
    at += piece_head + bytes.size();
  }
  comm_.pool().filled(message, at);
  return message;
}

void Pipeline::send_poison(Lane& lane) {
  const Envelope& envelope = lane.envelopes[lane.next];
  MessagePtr message = poison_;
  const auto bytes = poison_->bytes();
  if (envelope.pieces[0].plain && bytes.size() == plain_bytes(envelope.pieces[0])) {  // must not look like elements
    message = comm_.pool().take(bytes.size() + 1);
    std::copy(bytes.begin(), bytes.end(), message->room().begin());
    message->room()[bytes.size()] = 0;
    comm_.pool().filled(message, bytes.size() + 1);
  }
  send(message, envelope);
  report_.stats.wire_bytes += message->bytes().size();
  ++report_.messages_sent;
  ++lane.next;
}

/// Lets go of what has been sent, which also gives the transport a chance to make progress.
void Pipeline::reap() {
  while (!outgoing_.empty() && outgoing_.front().request.test()) outgoing_.pop_front();
  if (outgoing_.empty()) transport_.poll();
}

bool Pipeline::deliver_one() {
  if (deliveries_.empty()) return false;
  const Delivery d = std::move(deliveries_.front());
  deliveries_.pop_front();
  announce_delivery(d);
  if (!deliveries_.empty()) announce_delivery(deliveries_.front());
  d.slot->delivered = guarded(block_name(d.part.block) + " from rank " + std::to_string(d.from), [&] {
    if (d.message == nullptr) {
      kernel_.keep(d.part);
    } else {
      kernel_.deliver(d.part, d.message->bytes());
    }
  });
  if (d.slot->delivered) flush_all();
  return true;
}

/// Blocks that this rank brings and keeps and that no other rank has to do with: for when there is time.
void Pipeline::note_what_stays() {
  for (int b = 0; b < static_cast<int>(layout_.blocks()); ++b) {
    const auto block = static_cast<std::size_t>(b);
    if (!program_.result[block] || !program_.operand[block] || final_version_[block] != 0 || sent_[block]) continue;
    for (std::size_t k = 0; k < layout_.segments(b); ++k) {
      deliveries_.push_back({layout_.part(b, k), &slots_[block][k], nullptr, program_.rank});
    }
  }
}

template <typename Work>
bool Pipeline::guarded(const std::string& what, Work&& work) {
  const Timed clock(report_.stats.codec_seconds);
  const auto failed = [&](Code code, const char* why) {
    fail({code, program_.rank, "rank " + std::to_string(program_.rank) + ", " + what + ": " + why});
    return false;
  };
  try {
    work();
    return true;
  } catch (const Error& e) {
    return failed(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    return failed(Code::internal, "out of memory");
  } catch (const std::exception& e) {
    return failed(Code::internal, e.what());
  }
}

void Pipeline::fail(Failure failure) {
  kernel_.forget();  // before the memory goes that it works with
  const auto bytes = poison_of(failure);
  poison_ = comm_.pool().take(bytes.size());  // not a segment's: there may be no memory for that
  std::copy(bytes.begin(), bytes.end(), poison_->room().begin());
  comm_.pool().filled(poison_, bytes.size());
  failure_ = std::move(failure);
  deliveries_.clear();
}

}  // namespace laconic
