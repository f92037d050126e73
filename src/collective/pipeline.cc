#include "collective/pipeline.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace laconic {
namespace {

constexpr int tag = 1;

// Receives posted ahead. Enough to ride out a neighbour's scheduling gap; each costs address space, not memory.
constexpr std::size_t receive_window = 8;

// A poison message: magic, code, rank, text. No frame begins with this magic.
constexpr std::uint8_t poison_magic[4] = {'L', 'E', 'R', 'R'};
constexpr std::size_t poison_head = 12;
constexpr std::size_t poison_text_limit = 400;

std::vector<std::uint8_t> make_poison(const Failure& failure) {
  std::vector<std::uint8_t> bytes(poison_head);
  const auto code = static_cast<std::int32_t>(failure.code);
  const auto rank = static_cast<std::int32_t>(failure.rank);
  std::memcpy(&bytes[0], poison_magic, 4);
  std::memcpy(&bytes[4], &code, 4);
  std::memcpy(&bytes[8], &rank, 4);
  const std::string text = failure.text.substr(0, poison_text_limit);
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

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
      capacity_(std::max(kernel.capacity(layout.segment_values()), poison_head + poison_text_limit)) {
  plan();
}

std::optional<Failure> Pipeline::run() {
  try {
    run_program();
  } catch (...) {
    // Messages may still be under way, into and out of our buffers.
    comm_.pool().abandon();
    comm_.mark_unusable();
    throw;
  }
  return failure_;
}

void Pipeline::run_program() {
  post_receives();
  for (const schedule::Step& step : program_.steps) {
    begin_step(step);
    for (const schedule::Transfer& t : step.recvs) {
      for (std::size_t k = 0; k < layout_.segments(t.block); ++k) receive(recvs_[next_recv_]);
    }
  }
  deliver_the_rest();
  const Timed clock(report_.stats.wire_seconds);
  for (Posted& p : outgoing_) p.request.wait();
}

// Program order per peer on both sides is what lets one tag do: the n-th message that a rank sends to another is the
// n-th that the other awaits from it.
void Pipeline::plan() {
  std::vector<int> versions(layout_.blocks(), 0);
  slots_.resize(layout_.blocks());
  sent_.assign(layout_.blocks(), false);
  for (int b = 0; b < static_cast<int>(layout_.blocks()); ++b) {
    slots_[static_cast<std::size_t>(b)].resize(layout_.segments(b));
  }
  for (const schedule::Step& step : program_.steps) {
    for (const schedule::Transfer& t : step.sends) {
      sent_[static_cast<std::size_t>(t.block)] = true;
      for (std::size_t k = 0; k < layout_.segments(t.block); ++k) {
        lanes_[t.peer].ops.push_back({t.block, k, versions[static_cast<std::size_t>(t.block)]});
        ++slot(t.block, k).sends_left;
      }
    }
    for (const schedule::Transfer& t : step.recvs) {
      for (std::size_t k = 0; k < layout_.segments(t.block); ++k) recvs_.push_back({t.peer, t.block, k, t.how});
      ++versions[static_cast<std::size_t>(t.block)];
    }
  }
  final_version_ = std::move(versions);
}

void Pipeline::post_receives() {
  while (incoming_.size() < receive_window && next_recv_ + incoming_.size() < recvs_.size()) {
    const RecvOp& op = recvs_[next_recv_ + incoming_.size()];
    MessagePtr message = comm_.pool().take(capacity_);
    Request request = transport_.irecv(message->room(), op.peer, tag);
    incoming_.push_back({std::move(request), std::move(message)});
  }
}

/// All sends of the step go out. What they need from earlier steps is there; operands are encoded now.
void Pipeline::begin_step(const schedule::Step& step) {
  for (const schedule::Transfer& t : step.sends) {
    Lane& lane = lanes_[t.peer];
    lane.due += layout_.segments(t.block);
    while (lane.next < lane.due) {
      if (failure_) {
        send_poison(t.peer, lane);
        continue;
      }
      const SendOp op = lane.ops[lane.next];
      Slot& s = slot(op.block, op.segment);
      if (s.message != nullptr) {
        flush(t.peer, lane);
        continue;
      }
      s.message = encoded(layout_.part(op.block, op.segment));
      if (failure_) continue;
      const MessagePtr keep = s.message;
      flush(t.peer, lane);
      const auto block = static_cast<std::size_t>(op.block);
      if (final_version_[block] == 0 && program_.result[block]) {
        deliveries_.push_back({layout_.part(op.block, op.segment), keep, program_.rank});
      }
      reap();
    }
  }
}

void Pipeline::receive(const RecvOp& op) {
  post_receives();
  Posted posted = std::move(incoming_.front());
  incoming_.pop_front();
  ++next_recv_;
  await(posted.request);
  comm_.pool().filled(posted.message, posted.request.received());
  report_.bytes_received += posted.request.received();
  if (failure_) return;
  if (auto failure = poison_in(*posted.message)) {
    fail(std::move(*failure));
  } else {
    combine(op, std::move(posted.message));
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

void Pipeline::combine(const RecvOp& op, MessagePtr received) {
  Slot& s = slot(op.block, op.segment);
  const Part part = layout_.part(op.block, op.segment);
  if (op.how == schedule::Combine::copy) {
    s.message = std::move(received);
  } else {
    MessagePtr sum = comm_.pool().take(capacity_);
    const bool done = guarded(block_name(op.block) + " from rank " + std::to_string(op.peer), [&] {
      const std::size_t size = s.message == nullptr
                                   ? kernel_.encode_add(part, received->bytes(), sum->room())
                                   : kernel_.add(part, s.message->bytes(), received->bytes(), sum->room());
      comm_.pool().filled(sum, size);
    });
    if (!done) return;
    s.message = std::move(sum);
  }
  ++s.version;
  const MessagePtr keep = s.message;
  for (auto& [peer, lane] : lanes_) flush(peer, lane);
  if (s.version == final_version_[static_cast<std::size_t>(op.block)]) {
    if (program_.result[static_cast<std::size_t>(op.block)]) deliveries_.push_back({part, keep, op.peer});
    if (s.sends_left == 0) s.message.reset();
  }
  reap();
}

MessagePtr Pipeline::encoded(const Part& part) {
  MessagePtr message = comm_.pool().take(capacity_);
  guarded("its own " + block_name(part.block),
          [&] { comm_.pool().filled(message, kernel_.encode(part, message->room())); });
  return message;
}

/// Posts whatever is ready, in program order.
void Pipeline::flush(int peer, Lane& lane) {
  while (lane.next < lane.ops.size()) {
    const SendOp& op = lane.ops[lane.next];
    Slot& s = slot(op.block, op.segment);
    if (s.message == nullptr || s.version != op.version) return;
    post(peer, s, layout_.part(op.block, op.segment));
    ++lane.next;
  }
}

void Pipeline::post(int peer, Slot& s, const Part& part) {
  outgoing_.push_back({transport_.isend(s.message->bytes(), peer, tag), s.message});
  report_.stats.wire_bytes += s.message->bytes().size();
  report_.stats.original_bytes += part.count * kernel_.element_bytes();
  ++report_.messages_sent;
  if (--s.sends_left == 0 && s.version == final_version_[static_cast<std::size_t>(part.block)]) s.message.reset();
}

void Pipeline::send_poison(int peer, Lane& lane) {
  outgoing_.push_back({transport_.isend(poison_->bytes(), peer, tag), poison_});
  report_.stats.wire_bytes += poison_->bytes().size();
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
  guarded(block_name(d.part.block) + " from rank " + std::to_string(d.from),
          [&] { kernel_.deliver(d.part, d.message->bytes()); });
  return true;
}

/// What is left over, and blocks of the result that no rank but this one has to do with.
void Pipeline::deliver_the_rest() {
  while (deliver_one()) reap();
  for (int b = 0; b < static_cast<int>(layout_.blocks()); ++b) {
    const auto block = static_cast<std::size_t>(b);
    if (!program_.result[block] || !program_.operand[block] || final_version_[block] != 0 || sent_[block]) continue;
    for (std::size_t k = 0; k < layout_.segments(b) && !failure_; ++k) {
      const MessagePtr message = encoded(layout_.part(b, k));
      if (failure_) return;
      deliveries_.push_back({layout_.part(b, k), message, program_.rank});
      deliver_one();
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
  } catch (const std::exception& e) {
    return failed(Code::internal, e.what());
  }
}

void Pipeline::fail(Failure failure) {
  const auto bytes = make_poison(failure);
  poison_ = comm_.pool().take(capacity_);
  std::copy(bytes.begin(), bytes.end(), poison_->room().begin());
  comm_.pool().filled(poison_, bytes.size());
  failure_ = std::move(failure);
  deliveries_.clear();
}

std::optional<Failure> Pipeline::poison_in(const Message& message) const {
  const auto bytes = message.bytes();
  if (bytes.size() < poison_head || std::memcmp(bytes.data(), poison_magic, 4) != 0) return std::nullopt;
  std::int32_t code = 0;
  std::int32_t rank = 0;
  std::memcpy(&code, &bytes[4], 4);
  std::memcpy(&rank, &bytes[8], 4);
  return Failure{static_cast<Code>(code), rank, std::string(bytes.begin() + poison_head, bytes.end())};
}

}  // namespace laconic
