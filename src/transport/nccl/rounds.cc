#include "transport/nccl/rounds.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "core/beside_captures.h"
#include "core/error.h"
#include "transport/timeout.h"

namespace laconic::nccl {
namespace {

// A rank that naps holds up the rounds of all, so it gives its core away only to those who want it, for about a
// millisecond.
constexpr int spins = 500;

// The program's stream would spin for as long as NCCL's call takes; naps may last 100 us, which is little only beside
// several milliseconds.
constexpr int spins_alone = 3 * spins;

// What two would do as well if headers, which queue behind data on the wire, did not hold up the next group. Each takes
// connections and memory of NCCL's.
constexpr std::ptrdiff_t links = 3;

}  // namespace

Membership membership_in(ncclComm_t comm, Stop& stop) {
  return stop.unless_set([comm] {
    Membership own;
    if (pncclCommUserRank(comm, &own.rank) != ncclSuccess || pncclCommCount(comm, &own.size) != ncclSuccess ||
        pncclCommCuDevice(comm, &own.device) != ncclSuccess) {
      throw Error(Code::transport, "this is no NCCL communicator");
    }
    return own;
  });
}

Rounds::Rounds(ncclComm_t parent, const Membership& own, double timeout, std::shared_ptr<Stop> stop, bool sockets)
    : rank_(own.rank),
      size_(own.size),
      device_(own.device),
      timeout_(timeout),
      stop_(std::move(stop)),
      sockets_(sockets),
      pool_(rank_, device_) {
  const BesideCaptures beside;  // for NCCL, too: it makes connections in the thread that asks
  const OnDevice as(device_);
  try {
    links_.push_back(std::make_unique<Link>(parent, rank_, timeout_, *stop_));
    for (std::ptrdiff_t k = 1; k < links; ++k) {  // of the first one, which nobody else aborts and which does not block
      links_.push_back(std::make_unique<Link>(data_link().comm(), rank_, timeout_, *stop_));
    }
    headers_ = make_headers(data_link(), {rank_, size_, timeout_, *stop_, pool_, sockets_});
    hang_up_.emplace(*stop_, [this] { headers_->hang_up(); });
  } catch (const std::exception& e) {
    fail(e.what());  // before memory goes that NCCL may still work with
    throw;
  }
  copies_.emplace(rank_);
}

Rounds::~Rounds() {
  const BesideCaptures beside;
  const OnDevice as(device_);
  try {
    guarded([this] { close(); });
  } catch (const std::exception&) {
    return;  // it has been told, or concerns nobody any more
  }
}

void Rounds::drive() {
  guarded([this] { advance(false); });
}

void Rounds::join() {
  guarded([this] { advance(true); });
}

void Rounds::wait(const std::function<bool()>& done, const std::string& awaited) {
  if (done()) return;
  const auto test = [&] {
    drive();
    if (done()) return true;
    std::this_thread::yield();
    return false;
  };
  guarded([&] { wait_until(test, rank_, awaited, timeout_, spins); });
}

void Rounds::exchange(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) {
  small_.emplace(Small{mine, all});
  try {
    wait([this] { return small_->answered; }, all_to_call);
  } catch (...) {
    small_.reset();
    throw;
  }
  small_.reset();
}

void Rounds::flush() {
  const auto landed = [this] { return flights_.empty() && deliveries_.empty(); };
  const auto test = [&] {
    guarded([this] { land(); });
    return landed();
  };
  if (!landed()) guarded([&] { wait_until(test, rank_, "its messages to land", timeout_); });
}

void Rounds::run_alone(const Alone& where, const std::string& what, const std::function<void()>& issue) {
  flush();
  guarded([&] {
    const OnDevice as(device_);
    std::optional<Operation> waited_for;
    Operation& operation = (where.leave ? left_ : waited_for).emplace(rank_, where.comm, where.stream);
    stop_->check();  // from here on it is the program's own call, which may meet an abort as any other
    issue();
    await(operation, !where.leave, what);
  });
}

void Rounds::await_left() {
  if (!left_) return;
  guarded([this] { await(*left_, true, "all ranks to make a call that was left to NCCL"); });
  left_.reset();
}

/// The program's communicator may be freed once `stop` is set.
void Rounds::await(Operation& operation, bool to_its_end, const std::string& what) {
  const auto test = [&] {
    const auto through = [&] {
      return is_settled(rank_, operation.comm()) && (to_its_end ? operation.done() : operation.launched());
    };
    if (stop_->unless_set(through)) return true;
    std::this_thread::yield();
    return false;
  };
  wait_until(test, rank_, what, timeout_, spins_alone);
}

/// The first failure is final: NCCL cannot take back what has been issued, but it can abort.
void Rounds::guarded(const std::function<void()>& work) {
  if (failure_) throw Error(Code::transport, *failure_);
  const BesideCaptures beside;
  try {
    stop_->check();
    work();
  } catch (const std::exception& e) {
    fail(e.what());
    throw;
  }
}

void Rounds::fail(const std::string& what) noexcept {
  if (failure_) return;
  failure_ = what;
  hang_up_.reset();
  const BesideCaptures beside;
  pncclGroupStart();  // each frees memory, which waits for the kernels of the others: so all are told first
  if (headers_ != nullptr) headers_->abort();
  for (const auto& link : links_) link->abort();
  pncclGroupEnd();
  if (headers_ != nullptr) headers_->await_silence();
  for (const auto& link : links_) link->await_silence();
}

void Rounds::advance(bool join) {
  const OnDevice as(device_);
  const bool headers_ended = headers_->ended();
  bool news = land();
  const bool launched = data_is_launched();
  if (offered_ && headers_ended && launched) {
    take_headers();
    news = land() || news;
  } else if (offered_ && needs_round()) {
    headers_->require_ranks();
  }
  // By NCCL not while it still makes connections for this round's data: it allocates for them, which may wait for the
  // device, and so for a header that another rank answers only when these data have come.
  const bool may_offer = !has_enough_under_way() && (!headers_->on_device() || data_is_launched());
  if (news && !join) return;  // whoever waits for it may have something to send on
  if (!offered_ && (join || has_wish()) && may_offer) offer_header();
}

bool Rounds::has_enough_under_way() const {
  return std::ranges::count_if(flights_, [](const Flight& f) { return f.operation.has_value(); }) >= links;
}

bool Rounds::data_is_launched() {
  return std::ranges::all_of(links_, [](const auto& link) { return link->ready(); }) &&
         std::ranges::all_of(flights_, [](Flight& f) { return !f.operation || f.operation->launched(); });
}

bool Rounds::has_wish() const {
  return !queued_.empty() || !posted_.empty() || (small_ && !small_->answered && !small_->travelling);
}

/// Others may leave beside a round that this rank has only joined.
bool Rounds::needs_round() const { return has_wish() || !announced_.empty(); }

void Rounds::offer_header() {
  Header header{.round = round_, .rate = pace_.rate()};
  while (!queued_.empty() && announced_.size() < most_notices && !has_its_share()) {
    Outgoing& o = *announced_.emplace_back(std::move(queued_.front()));
    queued_.pop_front();
    o.state = Outgoing::State::announced;
    header.notice[header.notices++] = {o.to, o.tag, o.data.size()};
  }
  if (small_ && queued_.empty() && !small_->travelling) {
    header.stands = 1;
    header.small_bytes = small_->mine.size();
    if (!small_->mine.empty() && small_->mine.size() <= most_inline) {
      std::memcpy(header.small, small_->mine.data(), small_->mine.size());
    }
  }
  headers_->begin(header);
  offered_ = true;
}

bool Rounds::has_its_share() const {
  std::size_t bytes = 0;
  for (const Sent& s : announced_) bytes += s->data.size();
  return bytes >= share_;
}

void Rounds::take_headers() {
  offered_ = false;
  const std::span<const Header> all = headers_->all();
  require_in_step(all);
  ++round_;
  std::uint64_t slowest = 0;
  for (const Header& h : all) slowest = h.rate != 0 && (slowest == 0 || h.rate < slowest) ? h.rate : slowest;
  share_ = Pace::share_at(slowest);
  Flight& flight = flights_.emplace_back();
  plan_sends(flight);
  for (int r = 0; r < size_; ++r) plan_arrivals(all[static_cast<std::size_t>(r)], r, flight);
  plan_small(all, flight);
  Link& link = link_for(all, flight);
  if (!flight.transfers.empty()) {
    flight.begin = std::chrono::steady_clock::now();
    link.exchange(flight.transfers, link.stream());
    flight.operation.emplace(link, link.stream());
  }
}

Link& Rounds::link_for(std::span<const Header> all, const Flight& flight) {
  const bool has_data = flight.answers || std::ranges::any_of(all, [](const Header& h) { return h.notices > 0; });
  if (has_data) ++groups_;
  return *links_[groups_ % links_.size()];
}

void Rounds::require_in_step(std::span<const Header> all) const {
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Header& h = all[r];
    if (h.magic == Header{}.magic && h.round == round_ && h.notices <= most_notices) continue;
    throw Error(Code::transport, "rank " + std::to_string(rank_) + ": rank " + std::to_string(r) +
                                     " is out of step: another version of Laconic, or a damaged message");
  }
}

void Rounds::plan_sends(Flight& flight) {
  flight.sends = std::exchange(announced_, {});
  for (const Sent& s : flight.sends) {
    s->state = Outgoing::State::travelling;
    if (s->data.empty()) continue;
    if (s->memory == Memory::pageable && s->copy == nullptr) {
      s->copy = pool_.take(s->data.size());
      std::memcpy(s->copy.get(), s->data.data(), s->data.size());
    }
    const std::uint8_t* const from = s->copy != nullptr ? s->copy.get() : s->data.data();
    flight.transfers.push_back({.from = from, .bytes = s->data.size(), .peer = s->to});
  }
}

/// Posted receives are matched in the order in which they were posted; what fits into memory that a GPU reaches goes
/// there.
void Rounds::plan_arrivals(const Header& header, int from, Flight& flight) {
  for (const Notice& notice : std::span(header.notice, header.notices)) {
    if (notice.to != rank_) continue;
    const Arriving& arrival = flight.arrivals.emplace_back(std::make_shared<Arrival>());
    *arrival = {.from = from, .tag = notice.tag, .bytes = notice.bytes};
    const auto match = std::find_if(posted_.begin(), posted_.end(),
                                    [&](const Awaited& a) { return a->from == from && a->tag == notice.tag; });
    if (match != posted_.end()) {
      arrival->receiver = *match;
      arrival->receiver->state = Incoming::State::matched;
      posted_.erase(match);
    } else {
      unasked_.push_back(arrival);
    }
    if (notice.bytes == 0) continue;
    const Incoming* const receiver = arrival->receiver.get();
    const bool direct = receiver != nullptr && receiver->memory != Memory::pageable &&
                        notice.bytes <= receiver->buffer.size() &&
                        memory_of(receiver->buffer.first(notice.bytes)) != Memory::pageable;
    if (!direct) arrival->room = pool_.take(notice.bytes);
    void* const to = direct ? receiver->buffer.data() : arrival->room.get();
    flight.transfers.push_back({.to = to, .bytes = notice.bytes, .peer = from});
  }
}

void Rounds::plan_small(std::span<const Header> all, Flight& flight) {
  if (!std::ranges::all_of(all, [](const Header& h) { return h.stands != 0; })) return;
  const std::size_t bytes = small_->mine.size();
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].small_bytes == bytes) continue;
    throw Error(Code::transport, "rank " + std::to_string(r) + " exchanges " + std::to_string(all[r].small_bytes) +
                                     " bytes, rank " + std::to_string(rank_) + " " + std::to_string(bytes) +
                                     ": the ranks are not in the same call");
  }
  if (bytes <= most_inline) return answer(all[0].small, sizeof(Header));
  small_->travelling = flight.answers = true;
  small_->out = pool_.take(bytes);
  small_->in = pool_.take(bytes * all.size());
  std::memcpy(small_->out.get(), small_->mine.data(), bytes);
  for (int peer = 0; peer < size_; ++peer) {  // also to itself: NCCL can that in a group
    flight.transfers.push_back({.from = small_->out.get(), .bytes = bytes, .peer = peer});
    flight.transfers.push_back(
        {.to = small_->in.get() + static_cast<std::size_t>(peer) * bytes, .bytes = bytes, .peer = peer});
  }
}

void Rounds::answer(const std::uint8_t* payloads, std::size_t stride) {
  const std::size_t bytes = small_->mine.size();
  for (std::size_t r = 0; bytes != 0 && r < static_cast<std::size_t>(size_); ++r) {
    std::memcpy(small_->all.data() + r * bytes, payloads + r * stride, bytes);
  }
  small_->answered = true;
}

/// A header that is still out needs ranks that may have gone; data need only those who have announced or expect them.
void Rounds::close() {
  flush();
  const double patience = timeout_ > 0 ? timeout_ : default_timeout();
  hang_up_.reset();
  if (offered_) {
    headers_->abort();
  } else {
    headers_->close(patience);
  }
  for (const auto& link : links_) link->close(patience);
}

}  // namespace laconic::nccl
