#include "collective/mail.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "collective/budget.h"
#include "frame/frame.h"

namespace laconic {
namespace {

constexpr int first_tag = 2;                   // below are the collectives'
constexpr std::size_t p2p_receive_window = 8;  // posted ahead
constexpr std::size_t most_segment_values = std::size_t{1} << 28;

Collective kind_of(const Letter& letter) {
  if (!letter.in) return Collective::send;
  return letter.out ? Collective::sendrecv : Collective::recv;
}

}  // namespace

std::uint64_t Mail::Opening::digest_of_all() const {
  return digest({magic, dtype, refused, verified, count, segment_values});
}

bool Mail::Opening::sound() const {
  static_assert(std::is_trivially_copyable_v<Opening> && sizeof(Opening) == 192);
  if (magic != Opening{}.magic || check != digest_of_all()) return false;
  return refused != 0 || (is_valid(static_cast<DType>(dtype)) && verified <= 1 && segment_values >= 1 &&
                          segment_values <= most_segment_values);
}

template <typename Work>
void Mail::guarded(const std::string& what, Work&& work) {
  const Timed clock(call_.report().stats.codec_seconds);
  try {
    work();
  } catch (const Error& e) {
    fail(e.code(), what + e.what());
  }
}

Mail::Mail(const Letter& letter, Communicator& comm, const Options& options, const std::optional<Error>& refused)
    : comm_(comm), letter_(letter), call_(kind_of(letter), comm, options) {
  call_.proposal().refused = refused;
  const auto& [out, in, may_be_own] = letter_;
  const bool other_only = !may_be_own && !(out && in);
  const auto wrong_dest = out ? wrong_peer("dest", out->to, out->tag, other_only) : std::nullopt;
  const auto wrong_source = in ? wrong_peer("source", in->from, in->tag, other_only) : std::nullopt;
  if (out && in) {
    check_both(wrong_dest, wrong_source);
  } else {
    if (wrong_dest) throw Error(*wrong_dest);
    if (wrong_source) throw Error(*wrong_source);
    if (out) call_.check_arrays(out->x, {nullptr, 0, out->x.dtype}, nullptr);
    if (in) call_.check_arrays({nullptr, 0, in->room.dtype}, in->room, nullptr);
  }
  if (letter_.out) out_.stage = Stage::head;
  if (letter_.in) in_.stage = Stage::head;
}

/// The other one of the two must hear of a wrong rank, or be heard.
void Mail::check_both(const std::optional<Error>& wrong_dest, const std::optional<Error>& wrong_source) {
  const Letter::Out out = *letter_.out;
  const Letter::In in = *letter_.in;
  call_.check([&] {
    if (wrong_dest) throw Error(*wrong_dest);
    if (wrong_source) throw Error(*wrong_source);
  });
  call_.check_arrays({nullptr, 0, in.room.dtype}, in.room, nullptr);
  call_.check_arrays(out.x, {nullptr, 0, out.x.dtype}, nullptr);
  call_.check([&] {
    if (overlap(out.x, in.room))
      throw Error(Code::invalid_argument, "what is sent and the room for what comes overlap");
  });
  if (!wrong_dest && !wrong_source) return;
  fail(call_.proposal().refused->code(), call_.proposal().refused->what());
  const bool sends = !wrong_dest && out.to != comm_.rank();
  const bool receives = !wrong_source && in.from != comm_.rank();
  if (!sends) letter_.out.reset();
  if (!receives) letter_.in.reset();
}

/// What is wrong with a rank or tag, if anything.
std::optional<Error> Mail::wrong_peer(const char* argument, int rank, int tag, bool other_only) const {
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

bool Mail::step(bool may_post, bool may_take) {
  bool did = false;
  if (posts() && may_post) {
    post_next();
    did = true;
  }
  while (!outgoing_.empty() && outgoing_.front().request.test()) {
    outgoing_.pop_front();
    did = true;
  }
  if (takes() && may_take && take_next()) did = true;
  return did;
}

void Mail::wait() {
  const Timed clock(call_.report().stats.wire_seconds);
  if (!incoming_.empty()) return incoming_.front().request.wait();
  if (!outgoing_.empty()) outgoing_.front().request.wait();
}

bool Mail::await(bool patient) {
  const bool begun = in_.stage != Stage::head;
  const bool came = !incoming_.empty() && incoming_.front().request.await(patient && !begun);
  const bool went = !outgoing_.empty() && outgoing_.front().request.await(patient);
  return came || went;
}

void Mail::give_up(Communicator& comm) {
  comm.pool().abandon();
  comm.mark_unusable();
}

void Mail::count_rest_as_wire() {
  Stats& s = call_.report().stats;
  s.wire_seconds = std::max(0.0, call_.seconds() - s.codec_seconds - s.compute_seconds);
}

Received Mail::finish() {
  if (failure_) throw Error(*failure_);
  call_.report().result_bound = std::max(call_.report().result_bound, in_.bound);
  if (found_.count != 0) {
    call_.report().achieved_error = found_.largest;
    call_.report().verified = found_.count;
  }
  return {static_cast<std::size_t>(in_.opening.count), call_.finish()};
}

// --- what goes ---

/// Nothing waits here: segments are encoded while those before them travel.
void Mail::post_next() {
  if (out_.stage == Stage::head) return post_head();
  post_segment();
  if (out_.at < letter_.out->x.count) return;
  out_.at = 0;
  out_.stage = out_.stage == Stage::segments && out_.opening.verified != 0 ? Stage::exact : Stage::over;
}

void Mail::post(MessagePtr message) {
  Report& report = call_.report();
  report.stats.wire_bytes += message->bytes().size();
  ++report.messages_sent;
  Posted& posted = outgoing_.emplace_back(Posted{Request(), std::move(message)});
  posted.request = comm_.transport().isend(posted.message->bytes(), letter_.out->to, first_tag + letter_.out->tag);
}

void Mail::post_head() {
  const ConstArray x = letter_.out->x;
  Opening& opening = out_.opening;
  call_.check_bound(x.dtype);
  call_.scan_operand(x);
  call_.check([&] {
    out_.budget =
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
  post(std::move(first));
  if (!refused) call_.note(out_.budget);
  out_.stage = refused || x.count == 0 ? Stage::over : Stage::segments;
}

/// The next one of those that the receiver keeps, or of the exact ones, whose cost is counted nowhere.
void Mail::post_segment() {
  const ConstArray x = letter_.out->x;
  const std::size_t values = std::min<std::size_t>(out_.opening.segment_values, x.count - out_.at);
  const HostOperand part(comm_.memory(), slice_of(x, out_.at, values));
  Stats& stats = call_.report().stats;
  if (out_.stage == Stage::segments) {
    stats.original_bytes += part.get().bytes();
    const MessagePtr message = put_segment(part.get(), *find_codec(out_.budget.codec), out_.budget.grid);
    if (out_.opening.verified != 0 && !failure_) verify_sent(part.get(), *message);
  } else {
    const Stats counted = stats;
    put_segment(part.get(), slice_codec(), make_grid(x.dtype, 0, 0));
    stats = counted;
  }
  out_.at += values;
}

/// A segment that cannot be encoded goes out empty, which no receiver takes for one.
MessagePtr Mail::put_segment(ConstArray part, const Codec& codec, const Grid& grid) {
  MessagePtr message = comm_.pool().take(frame::capacity(part.dtype, part.count, codec));
  guarded("", [&] {
    comm_.pool().filled(message, frame::encode(codec, part, grid, message->room(), call_.options().threads));
  });
  post(message);
  return message;
}

/// The receiver will find the same: what comes out of a message does not depend on who opens it.
void Mail::verify_sent(ConstArray part, const Message& message) {
  const MutArray opened = scratch_for(part);
  guarded("", [&] { frame::decode(message.bytes(), opened, call_.options().threads); });
  compare_with(part, opened, out_.budget.result_bound, out_.at);
}

// --- what comes ---

/// The first of those that are expected, if it is there: also one that cannot be kept.
bool Mail::take_next() {
  bool did = false;
  if (in_.stage == Stage::head && incoming_.empty()) {
    expect(sizeof(Opening));
    did = true;
  }
  if (!incoming_.front().request.test()) return did;
  const Posted posted = std::move(incoming_.front());
  incoming_.pop_front();
  comm_.pool().filled(posted.message, posted.request.received());
  call_.report().bytes_received += posted.request.received();
  if (in_.stage == Stage::head) {
    take_head(*posted.message);
  } else {
    take_segment(*posted.message);
    ++in_.taken;
  }
  if (in_.taken == in_.messages) in_.stage = Stage::over;
  const auto dtype = static_cast<DType>(in_.opening.dtype);
  while (in_.posted < std::min(in_.messages, in_.taken + p2p_receive_window)) {
    expect(frame::capacity(dtype, std::min<std::size_t>(in_.opening.count, in_.opening.segment_values)));
    ++in_.posted;
  }
  return true;
}

void Mail::expect(std::size_t capacity) {
  incoming_.push_back({Request(), comm_.pool().take(capacity)});
  Posted& posted = incoming_.back();
  posted.request =
      comm_.transport().irecv(posted.message->room().first(capacity), letter_.in->from, first_tag + letter_.in->tag);
}

void Mail::take_head(const Message& message) {
  Opening& opening = in_.opening;
  const std::string sender = "rank " + std::to_string(letter_.in->from);
  const std::string receiver = "rank " + std::to_string(comm_.rank());
  const auto bytes = message.bytes();
  if (bytes.size() == sizeof opening) std::memcpy(&opening, bytes.data(), sizeof opening);
  if (bytes.size() != sizeof opening || !opening.sound()) {
    // How much follows is not known, so what comes after it cannot be told apart.
    throw Error(Code::corrupt, receiver + ": the head of a message from " + sender +
                                   " is damaged; this communicator cannot be used any more");
  }
  in_.stage = Stage::segments;
  if (opening.refused != 0) {
    fail(static_cast<Code>(opening.refused), sender + ": " + std::string(opening.text, strnlen(opening.text, 160)));
    opening.count = 0;
    return;
  }
  const auto& refused = call_.proposal().refused;
  if (refused) fail(refused->code(), refused->what());
  const MutArray& room = letter_.in->room;
  if (static_cast<DType>(opening.dtype) != room.dtype) {
    fail(Code::mismatch, sender + " sends " + std::string(name_of(static_cast<DType>(opening.dtype))) + ", " +
                             receiver + " expects " + std::string(name_of(room.dtype)));
  }
  if (opening.count > room.count) {
    fail(Code::too_small, sender + " sends " + std::to_string(opening.count) + " elements, " + receiver +
                              " has room for " + std::to_string(room.count));
  }
  const std::size_t segments = Layout({static_cast<std::size_t>(opening.count)}, opening.segment_values).segments(0);
  in_.messages = opening.verified != 0 ? 2 * segments : segments;
}

void Mail::take_segment(const Message& message) {
  if (failure_) return;
  const Layout layout({static_cast<std::size_t>(in_.opening.count)}, in_.opening.segment_values);
  const Part part = layout.part(0, in_.taken % layout.segments(0));
  const MutArray place = slice_of(letter_.in->room, part.first, part.count);
  if (in_.taken >= layout.segments(0)) {
    return verify_received(HostOperand(comm_.memory(), place).get(), message, part.first);
  }
  HostResult result(comm_.memory(), place);
  open(result.get(), message);
  if (!failure_) result.put_back();
}

void Mail::open(MutArray part, const Message& message) {
  const std::string who = "rank " + std::to_string(comm_.rank()) + ", from rank " + std::to_string(letter_.in->from);
  guarded(who + ": ", [&] {
    if (message.bytes().empty())
      throw Error(Code::corrupt,
                  "an empty message: the sender could not encode that part, and says why, or it is damaged");
    const frame::Header header = frame::check(message.bytes());
    if (header.grid.dtype != part.dtype || header.count != part.count) {
      throw Error(Code::corrupt, "a frame of " + std::to_string(header.count) + " elements came where " +
                                     std::to_string(part.count) + " were due");
    }
    in_.bound = std::max(in_.bound, header.grid.bound);
    frame::decode(message.bytes(), part, call_.options().threads);
  });
}

void Mail::verify_received(ConstArray got, const Message& message, std::size_t first) {
  const double bound = in_.bound;
  const MutArray exact = scratch_for(got);
  open(exact, message);
  if (!failure_) compare_with(exact, got, bound, first);
}

// --- both ---

MutArray Mail::scratch_for(ConstArray part) {
  scratch_.resize(std::max(scratch_.size(), part.bytes()));
  return {scratch_.data(), part.count, part.dtype};
}

void Mail::compare_with(ConstArray exact, ConstArray got, double bound, std::size_t first) {
  compare(got, exact, {bound, 0.5}, first, found_);
  if (found_.offence) {
    fail(Code::internal, "rank " + std::to_string(comm_.rank()) + ": " + text_of(*found_.offence, bound));
  }
}

}  // namespace laconic
