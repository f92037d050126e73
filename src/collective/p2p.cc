#include "collective/p2p.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/pool.h"
#include "collective/verify.h"
#include "frame/frame.h"

namespace laconic {
namespace {

constexpr int first_tag = 2;                   // below are the collectives'
constexpr std::size_t p2p_receive_window = 8;  // posted ahead
constexpr std::size_t most_segment_values = std::size_t{1} << 28;

/// What goes before the segments of a message: how many elements, and how they are cut.
struct Opening {
  std::uint32_t magic = 0x3350434C;  // "LCP3"
  std::uint8_t dtype = 0;
  std::uint8_t refused = 0;   ///< a Code: no segments follow, `text` says why
  std::uint8_t verified = 0;  ///< 1: all segments follow once more, losslessly
  std::uint8_t unused = 0;
  std::uint64_t count = 0;
  std::uint64_t segment_values = 0;
  std::uint64_t check = 0;  ///< over the others but text
  char text[160] = {};

  [[nodiscard]] std::uint64_t digest_of_all() const {
    return digest({magic, dtype, refused, verified, count, segment_values});
  }
  [[nodiscard]] bool sound() const {
    if (magic != Opening{}.magic || check != digest_of_all()) return false;
    return refused != 0 || (is_valid(static_cast<DType>(dtype)) && verified <= 1 && segment_values >= 1 &&
                            segment_values <= most_segment_values);
  }
};
static_assert(std::is_trivially_copyable_v<Opening> && sizeof(Opening) == 192);

struct Posted {
  Request request;
  MessagePtr message;
};

/// One call: what it posts, what it takes, and the first thing that went wrong, which is thrown at the end.
class Mail {
 public:
  Mail(Collective kind, Communicator& comm, const Options& options, const std::optional<Error>& refused)
      : comm_(comm), call_(kind, comm, options) {
    call_.proposal().refused = refused;
  }

  [[nodiscard]] Call& call() { return call_; }

  /// What is wrong with a rank or tag, if anything: nobody is there who can be told.
  [[nodiscard]] std::optional<Error> wrong_peer(const char* argument, int rank, int tag, bool other_only) const {
    if (comm_.transport().needs_everyone()) {
      return Error(Code::unsupported, "messages between two ranks: over " + comm_.transport().description() +
                                          " only collectives are compressed, since every message needs all ranks");
    }
    if (rank < 0 || rank >= comm_.size() || (other_only && rank == comm_.rank())) {
      return Error(Code::invalid_argument, std::string(argument) + " " + std::to_string(rank) + ": want a rank below " +
                                               std::to_string(comm_.size()) +
                                               (other_only ? ", another one than this (sendrecv can do that)" : ""));
    }
    if (tag >= 0 && tag <= largest_tag) return {};
    return Error(Code::invalid_argument, "tag " + std::to_string(tag) + ": want 0 to " + std::to_string(largest_tag));
  }
  void require_peer(const char* argument, int rank, int tag) const {
    if (const auto wrong = wrong_peer(argument, rank, tag, true)) throw Error(*wrong);
  }

  void put(ConstArray x, int to, int tag);
  std::size_t take(MutArray room, int from, int tag);
  Report finish();

  /// Runs the exchange until all has left; a transport that fails leaves messages under way, all of them in outgoing_
  /// and incoming_.
  template <typename Work>
  void exchange(Work&& work) {
    try {
      work();
      const Timed clock(call_.report().stats.wire_seconds);
      for (Posted& p : outgoing_) p.request.wait();
      outgoing_.clear();
    } catch (...) {
      comm_.pool().abandon();
      comm_.mark_unusable();
      throw;
    }
  }

 private:
  void post(MessagePtr message, int to, int tag);
  MessagePtr put_segment(ConstArray part, const Codec& codec, const Grid& grid, int to, int tag);
  void put_exact(ConstArray x, std::size_t segment_values, int to, int tag);
  void expect(std::size_t capacity, int from, int tag);
  MessagePtr await();
  Opening take_opening(int from, int tag);
  void open(MutArray part, const Message& message, int from);
  void verify_sent(ConstArray part, const Message& message, std::size_t first);
  void verify_received(ConstArray part, const Message& message, std::size_t first, int from);
  void compare_with(ConstArray exact, ConstArray got, double bound, std::size_t first);
  MutArray scratch_for(ConstArray part);
  void fail(Code code, const std::string& text) {
    if (!failure_) failure_ = Error(code, text);
  }
  /// Runs codec work; what it throws is kept.
  template <typename Work>
  void guarded(const std::string& what, Work&& work) {
    const Timed clock(call_.report().stats.codec_seconds);
    try {
      work();
    } catch (const Error& e) {
      fail(e.code(), what + e.what());
    }
  }

  Communicator& comm_;
  Call call_;
  std::optional<Error> failure_;
  std::deque<Posted> outgoing_, incoming_;
  Comparison found_;  ///< of what was verified
  double received_bound_ = 0;
  std::vector<std::uint8_t> scratch_;  ///< elements of a segment
};

void Mail::post(MessagePtr message, int to, int tag) {
  Report& report = call_.report();
  report.stats.wire_bytes += message->bytes().size();
  ++report.messages_sent;
  Request request = comm_.transport().isend(message->bytes(), to, first_tag + tag);
  outgoing_.push_back({std::move(request), std::move(message)});
  while (!outgoing_.empty() && outgoing_.front().request.test()) outgoing_.pop_front();
}

/// Posts the whole message. Nothing waits here: segments are encoded while those before them travel.
void Mail::put(ConstArray x, int to, int tag) {
  call_.check_bound(x.dtype);
  call_.scan_operand(x);
  Budget budget;
  Opening opening;
  call_.check([&] {
    budget =
        budget_movement(*find_codec(call_.options().codec), 1, x.dtype, call_.options().bound, call_.proposal().range);
    Agreement alone;
    alone.segment_values = call_.options().segment_values;
    alone.segment_bytes = comm_.memory().segment_bytes();
    opening.dtype = static_cast<std::uint8_t>(x.dtype);
    opening.count = x.count;
    opening.verified = call_.options().verify ? 1 : 0;
    opening.segment_values = std::min(call_.segment_values(alone, x.dtype, {x.count}), most_segment_values);
  });
  const auto& refused = call_.proposal().refused;
  if (refused) {
    opening.refused = static_cast<std::uint8_t>(refused->code());
    std::string(refused->what()).copy(opening.text, sizeof opening.text - 1);
    fail(refused->code(), refused->what());
  }
  opening.check = opening.digest_of_all();
  MessagePtr first = comm_.pool().take(sizeof opening);
  std::memcpy(first->room().data(), &opening, sizeof opening);
  comm_.pool().filled(first, sizeof opening);
  post(std::move(first), to, tag);
  if (refused) return;
  call_.note(budget);
  for (std::size_t at = 0; at < x.count; at += opening.segment_values) {
    const HostOperand part(comm_.memory(),
                           slice_of(x, at, std::min<std::size_t>(opening.segment_values, x.count - at)));
    call_.report().stats.original_bytes += part.get().bytes();
    const MessagePtr message = put_segment(part.get(), *find_codec(budget.codec), budget.grid, to, tag);
    if (opening.verified != 0 && !failure_) verify_sent(part.get(), *message, at);
  }
  if (opening.verified != 0) put_exact(x, opening.segment_values, to, tag);
}

/// What this costs is counted nowhere.
void Mail::put_exact(ConstArray x, std::size_t segment_values, int to, int tag) {
  const Stats counted = call_.report().stats;
  for (std::size_t at = 0; at < x.count; at += segment_values) {
    const HostOperand part(comm_.memory(), slice_of(x, at, std::min(segment_values, x.count - at)));
    put_segment(part.get(), slice_codec(), make_grid(x.dtype, 0, 0), to, tag);
  }
  call_.report().stats = counted;
}

/// A segment that cannot be encoded goes out empty, which no receiver takes for one.
MessagePtr Mail::put_segment(ConstArray part, const Codec& codec, const Grid& grid, int to, int tag) {
  MessagePtr message = comm_.pool().take(frame::capacity(part.dtype, part.count, codec));
  guarded("", [&] {
    comm_.pool().filled(message, frame::encode(codec, part, grid, message->room(), call_.options().threads));
  });
  post(message, to, tag);
  return message;
}

MutArray Mail::scratch_for(ConstArray part) {
  scratch_.resize(std::max(scratch_.size(), part.bytes()));
  return {scratch_.data(), part.count, part.dtype};
}

/// The receiver will find the same: what comes out of a message does not depend on who opens it.
void Mail::verify_sent(ConstArray part, const Message& message, std::size_t first) {
  const MutArray opened = scratch_for(part);
  guarded("", [&] { frame::decode(message.bytes(), opened, call_.options().threads); });
  compare_with(part, opened, call_.report().result_bound, first);
}

void Mail::verify_received(ConstArray part, const Message& message, std::size_t first, int from) {
  const double bound = received_bound_;
  const MutArray exact = scratch_for(part);
  open(exact, message, from);
  if (!failure_) compare_with(exact, part, bound, first);
}

void Mail::compare_with(ConstArray exact, ConstArray got, double bound, std::size_t first) {
  compare(got, exact, {bound, 0.5}, first, found_);
  if (found_.offence) {
    fail(Code::internal, "rank " + std::to_string(comm_.rank()) + ": " + text_of(*found_.offence, bound));
  }
}

void Mail::expect(std::size_t capacity, int from, int tag) {
  incoming_.push_back({Request(), comm_.pool().take(capacity)});
  Posted& posted = incoming_.back();
  posted.request = comm_.transport().irecv(posted.message->room().first(capacity), from, first_tag + tag);
}

/// The first of those that are expected.
MessagePtr Mail::await() {
  {
    const Timed clock(call_.report().stats.wire_seconds);
    incoming_.front().request.wait();
  }
  const Posted posted = std::move(incoming_.front());
  incoming_.pop_front();
  comm_.pool().filled(posted.message, posted.request.received());
  call_.report().bytes_received += posted.request.received();
  return posted.message;
}

Opening Mail::take_opening(int from, int tag) {
  expect(sizeof(Opening), from, tag);
  const MessagePtr message = await();
  Opening opening;
  const auto bytes = message->bytes();
  if (bytes.size() == sizeof opening) std::memcpy(&opening, bytes.data(), sizeof opening);
  if (bytes.size() != sizeof opening || !opening.sound()) {
    // How much follows is not known, so what comes after it cannot be told apart.
    throw Error(Code::corrupt, "rank " + std::to_string(comm_.rank()) + ": the head of a message from rank " +
                                   std::to_string(from) + " is damaged; this communicator cannot be used any more");
  }
  return opening;
}

/// Takes the whole message, also one that cannot be kept. Returns its elements.
std::size_t Mail::take(MutArray room, int from, int tag) {
  const Opening opening = take_opening(from, tag);
  const std::string sender = "rank " + std::to_string(from);
  if (opening.refused != 0) {
    fail(static_cast<Code>(opening.refused), sender + ": " + std::string(opening.text, strnlen(opening.text, 160)));
    return 0;
  }
  const auto dtype = static_cast<DType>(opening.dtype);
  const auto& refused = call_.proposal().refused;
  if (refused) fail(refused->code(), refused->what());
  if (dtype != room.dtype) {
    fail(Code::mismatch, sender + " sends " + std::string(name_of(dtype)) + ", rank " + std::to_string(comm_.rank()) +
                             " expects " + std::string(name_of(room.dtype)));
  }
  if (opening.count > room.count) {
    fail(Code::too_small, sender + " sends " + std::to_string(opening.count) + " elements, rank " +
                              std::to_string(comm_.rank()) + " has room for " + std::to_string(room.count));
  }
  const Layout layout({static_cast<std::size_t>(opening.count)}, opening.segment_values);
  const std::size_t segments = layout.segments(0);
  const std::size_t capacity = frame::capacity(dtype, std::min<std::size_t>(opening.count, opening.segment_values));
  const std::size_t messages = opening.verified != 0 ? 2 * segments : segments;
  for (std::size_t k = 0; k < messages; ++k) {
    while (incoming_.size() < std::min(messages - k, p2p_receive_window)) expect(capacity, from, tag);
    const MessagePtr message = await();
    const Part part = layout.part(0, k % segments);
    const MutArray place = failure_ ? MutArray{} : slice_of(room, part.first, part.count);
    if (!failure_ && k < segments) {
      HostResult result(comm_.memory(), place);
      open(result.get(), *message, from);
      if (!failure_) result.put_back();
    } else if (!failure_) {
      verify_received(HostOperand(comm_.memory(), place).get(), *message, part.first, from);
    }
  }
  return opening.count;
}

void Mail::open(MutArray part, const Message& message, int from) {
  guarded("rank " + std::to_string(comm_.rank()) + ", from rank " + std::to_string(from) + ": ", [&] {
    if (message.bytes().empty())
      throw Error(Code::corrupt,
                  "an empty message: the sender could not encode that part, and says why, or it is damaged");
    const frame::Header header = frame::check(message.bytes());
    if (header.grid.dtype != part.dtype || header.count != part.count) {
      throw Error(Code::corrupt, "a frame of " + std::to_string(header.count) + " elements came where " +
                                     std::to_string(part.count) + " were due");
    }
    received_bound_ = std::max(received_bound_, header.grid.bound);
    call_.report().result_bound = std::max(call_.report().result_bound, header.grid.bound);
    frame::decode(message.bytes(), part, call_.options().threads);
  });
}

Report Mail::finish() {
  if (failure_) throw Error(*failure_);
  if (found_.count != 0) {
    call_.report().achieved_error = found_.largest;
    call_.report().verified = found_.count;
  }
  return call_.finish();
}

}  // namespace

Report send(ConstArray x, int to, int tag, Communicator& comm, const Options& options,
            const std::optional<Error>& refused) {
  Mail mail(Collective::send, comm, options, refused);
  mail.require_peer("dest", to, tag);
  mail.call().check_arrays(x, {nullptr, 0, x.dtype}, nullptr);
  mail.exchange([&] { mail.put(x, to, tag); });
  return mail.finish();
}

Received recv(MutArray room, int from, int tag, Communicator& comm, const Options& options,
              const std::optional<Error>& refused) {
  Mail mail(Collective::recv, comm, options, refused);
  mail.require_peer("source", from, tag);
  mail.call().check_arrays({nullptr, 0, room.dtype}, room, nullptr);
  Received received;
  mail.exchange([&] { received.count = mail.take(room, from, tag); });
  received.report = mail.finish();
  return received;
}

Received sendrecv(ConstArray x, int to, int send_tag, MutArray room, int from, int recv_tag, Communicator& comm,
                  const Options& options, const std::optional<Error>& refused) {
  Mail mail(Collective::sendrecv, comm, options, refused);
  // The other one of the two must hear of it, or be heard.
  const auto wrong_dest = mail.wrong_peer("dest", to, send_tag, false);
  const auto wrong_source = mail.wrong_peer("source", from, recv_tag, false);
  mail.call().check([&] {
    if (wrong_dest) throw Error(*wrong_dest);
    if (wrong_source) throw Error(*wrong_source);
  });
  mail.call().check_arrays({nullptr, 0, room.dtype}, room, nullptr);
  mail.call().check_arrays(x, {nullptr, 0, x.dtype}, nullptr);
  mail.call().check([&] {
    if (overlap(x, room)) throw Error(Code::invalid_argument, "what is sent and the room for what comes overlap");
  });
  Received received;
  mail.exchange([&] {
    if (!wrong_dest && !(wrong_source && to == comm.rank())) mail.put(x, to, send_tag);
    if (!wrong_source && !(wrong_dest && from == comm.rank())) received.count = mail.take(room, from, recv_tag);
  });
  if (wrong_dest || wrong_source) throw Error(*mail.call().proposal().refused);
  received.report = mail.finish();
  return received;
}

}  // namespace laconic
