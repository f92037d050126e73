#include "collective/routing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "collective/calibration.h"
#include "collective/communicator.h"
#include "collective/layout.h"
#include "collective/metadata.h"
#include "collective/sample.h"
#include "core/config.h"
#include "frame/frame.h"

namespace laconic {
namespace {

// The way that is not taken is tried, to be measured, unless the model gives it more than this many times as long. The
// plain one is tried even then, but rarely: nobody shall be slower than that because a link was measured in a bad
// moment.
constexpr double worth_a_try = 3;
// A call of fewer seconds costs nothing to try: a plain one is tried whatever the model says, since links let short
// messages through faster than they were measured; and one that was slow by bad luck is tried again soon.
constexpr double short_try = 1e-3;
// Of schedules the model knows what differs.
constexpr double schedule_worth_a_try = 1.5;
// Later it is tried again so often that trying costs this share of all calls: what was measured may have been bad luck.
constexpr double share_of_trying = 0.01;
constexpr double calls_between_tries[] = {8, 8192};
// Of data whose sample shrinks this much better or worse, what schedules took says nothing.
constexpr double other_data = 1.3;
// Of calls of fewer seconds, of data that shrink alike, one in so many is looked at: a sample takes some hundredths of
// a millisecond on the host, and some tenths of arrays on a device.
constexpr double short_beside_a_look = 5e-3;
constexpr std::uint64_t one_look_in = 4;
constexpr std::uint64_t most_alike = 1024;

// Where compression could not pay even if nothing travelled, by the model and this much more, nobody needs to ask
// twice.
constexpr double hopeless = 2;
// But a model that has seen no call may be wrong by much more: so many calls later the plain way has been measured.
constexpr double calls_by_the_model = 4;

constexpr std::uint64_t interval_growth = 4;
constexpr double longest_interval = 4096;
constexpr double share_of_asking = 0.01;

constexpr std::size_t most_kinds = 4096;

}  // namespace

void Measured::note(double cost) {
  if (calls_++ > 0) last_[(calls_ - 2) % last_.size()] = cost;
}

double Measured::cost() const {
  if (calls_ < 3) return 0;
  const std::size_t known = std::min<std::size_t>(calls_ - 1, last_.size());
  const std::size_t lucky = known / 4;
  auto sorted = last_;
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(lucky);
  std::nth_element(sorted.begin(), nth, sorted.begin() + static_cast<std::ptrdiff_t>(known));
  return *nth;
}

bool History::at_once() {
  if (at_once_left_ == 0) return false;
  --at_once_left_;
  ways_.skip();
  return true;
}

void History::skip(std::uint64_t calls) {
  at_once_left_ -= std::min(at_once_left_, calls);
  ways_.skip(calls);
}

bool History::decide(const Estimates& e) {
  const bool alike = look_alike(e.fraction);
  const double plain_time = e.plain_measured > 0 ? e.plain_measured : e.plain_model;
  const double compressed_time = e.compressed_measured > 0 ? e.compressed_measured : e.compressed_model;
  const bool prefers_plain = prefers_plain_ = plain_time <= compressed_time;
  const double plain_worth_a_try = std::max(worth_a_try, short_try / e.compressed_measured);
  const bool no_hope = e.plain_measured == 0 && e.plain_model >= plain_worth_a_try * e.compressed_measured;
  const double plain_known = no_hope ? e.plain_model : e.plain_measured;
  const bool tries_other = prefers_plain
                               ? ways_.is_due(e.plain_measured, e.compressed_measured, e.compressed_model, worth_a_try)
                               : ways_.is_due(e.compressed_measured, plain_known, e.plain_model, plain_worth_a_try);
  const bool plainly = prefers_plain != tries_other;
  if (!plainly) fraction_ = e.fraction;
  model_ = plainly ? 0 : e.compressed_model;
  const bool settled = alike && alike_ >= enough_alike_ && !prefers_plain && !plainly;
  repeats_left_ = settled && compressed_time < short_beside_a_look ? one_look_in - 1 : 0;
  if (!prefers_plain) {
    interval_ = 0;
  } else if (plainly && (e.plain_measured > 0 || e.compressed_at_best > hopeless * e.plain_model)) {
    let_pass(e);
  }
  return plainly;
}

bool History::look_alike(double fraction) {
  if (fraction_ == 0) return false;
  if (std::max(fraction, fraction_) <= other_data * std::min(fraction, fraction_)) {
    ++alike_;
    return true;
  }
  if (alike_ >= enough_alike_) enough_alike_ = std::min(2 * enough_alike_, most_alike);
  alike_ = 0;
  fraction_ = 0;
  ring.clear();
  direct.clear();
  return false;
}

bool History::repeat() {
  --repeats_left_;
  ways_.skip();
  schedules_.skip();
  return prefers_direct_;
}

bool History::goes_directly(bool expected, const ScheduleSeconds& model, const ScheduleSeconds& measured) {
  const bool prefers = measured.ring > 0 && measured.direct > 0 ? measured.direct_pays() : expected;
  prefers_direct_ = prefers;
  const bool tries_other = prefers
                               ? schedules_.is_due(measured.direct, measured.ring, model.ring, schedule_worth_a_try)
                               : schedules_.is_due(measured.ring, measured.direct, model.direct, schedule_worth_a_try);
  return prefers != tries_other;
}

bool Trials::is_due(double taken, double other, double other_model, double hope) {
  ++calls_since_;
  if (taken == 0) return false;
  if (other == 0) return other_model < hope * taken;
  double due = std::clamp((other / taken - 1) / share_of_trying, calls_between_tries[0], calls_between_tries[1]);
  if (other_model < short_try) due = std::min(due, patience_);
  if (static_cast<double>(calls_since_) < due) return false;
  calls_since_ = 0;
  patience_ = std::min(2 * patience_, calls_between_tries[1]);
  return true;
}

void History::note_compressed(double seconds, Measured* schedule) {
  if (schedule != nullptr) schedule->note(seconds);
  if (model_ > 0) compressed.note(seconds / model_);
  model_ = 0;
}

void History::let_pass(const Estimates& e) {
  const double plain_time = e.plain_measured > 0 ? e.plain_measured : e.plain_model;
  const double longest = e.plain_measured > 0 ? longest_interval : calls_by_the_model;
  const double enough = std::clamp(e.agreement / (share_of_asking * plain_time), calls_by_the_model, longest);
  const auto most = static_cast<std::uint64_t>(enough);
  const bool sure = e.compressed_at_best > hopeless * plain_time;
  // Only calls after the second in a row: where data of two kinds take turns each goes its way.
  interval_ = sure ? most : std::min(most, interval_ == 0 ? 1 : interval_ * interval_growth);
  at_once_left_ = interval_ - 1;
}

Costs Routing::calibrate(CodecKind kind, Transport& transport, Memory& memory) {
  if (!link_) link_ = calibrate_link(transport, memory, config().cache);
  std::optional<CodecSpeed>& codec = codec_[static_cast<std::size_t>(kind)];
  if (!codec) codec = calibrate_codec(kind, transport, memory, config().cache);
  return {*link_, *codec};
}

void Routing::set_costs(CodecKind kind, const Costs& costs) {
  link_ = costs.link;
  codec_[static_cast<std::size_t>(kind)] = costs.codec;
}

std::optional<Costs> Routing::costs(CodecKind kind) const {
  const std::optional<CodecSpeed>& codec = codec_[static_cast<std::size_t>(kind)];
  return codec ? std::optional(Costs{*link_, *codec}) : std::nullopt;
}

History& Routing::of(const CallKind& kind) {
  if (last_ != nullptr && last_->first == kind) return last_->second;
  auto at = histories_.find(kind);
  if (at == histories_.end()) {
    if (histories_.size() >= most_kinds) {
      shortcuts_.forget();
      for (auto& [k, unknown] : of_unknown_size_) unknown.last = nullptr;
      histories_.clear();
    }
    at = histories_.try_emplace(kind).first;
  }
  last_ = &*at;
  return last_->second;
}

void Routing::forget() {
  shortcuts_.forget();
  of_unknown_size_.clear();
  histories_.clear();
  last_ = nullptr;
}

History* Routing::known(const CallKind& kind) {
  const auto at = histories_.find(kind);
  return at != histories_.end() ? &at->second : nullptr;
}

UnknownSize& Routing::of_unknown_size(const CallKind& kind) {
  const auto at = of_unknown_size_.find(kind);
  if (at != of_unknown_size_.end()) return at->second;
  if (of_unknown_size_.size() >= most_kinds) {
    shortcuts_.forget();
    of_unknown_size_.clear();
  }
  return of_unknown_size_[kind];
}

double plain_estimate(Collective collective, std::uint64_t bytes, const Report& made, Communicator& comm) {
  const std::optional<Link>& link = comm.routing().link();
  if (!link) return 0;
  const double waited = std::max(0.0, made.agreement_seconds - exchange_seconds(comm.size(), *link));
  return plain_seconds({.collective = collective, .bytes = bytes, .ranks = comm.size()}, *link) + waited;
}

ScheduleSeconds model_of_schedules(Collective collective, Op op, ConstArray x, const Budget& budget,
                                   const Agreement& agreed, Communicator& comm) {
  const auto costs = comm.routing().costs(codec_kind_of(budget.grid, comm.size()));
  if (!costs || agreed.fraction >= 1) return {};
  const Workload w{.collective = collective,
                   .bytes = x.bytes(),
                   .ranks = comm.size(),
                   .threads = agreed.threads,
                   .element_bytes = size_of(x.dtype),
                   .combining = is_extreme(op) ? Combining::extremes : Combining::on_grid};
  return schedule_seconds(w, *costs, agreed.fraction);
}

double sample_fraction(Memory& memory, ConstArray x, double bound, double max_abs) {
  if (x.count == 0) return 1;
  const Sample sample{x.count};
  Room copy;
  ConstArray from = x;
  if (!memory.on_host()) {  // only the chunks are fetched, one after the other
    copy = host_memory().array_room(sample.elements() * size_of(x.dtype));
    memory.fetch_sample(x, copy.get());
    from = {copy.get(), sample.elements(), x.dtype};
  }
  const Grid grid = make_grid(x.dtype, bound, max_abs);
  std::vector<std::uint8_t> room(frame::capacity(x.dtype, frame::chunk_values));
  std::size_t original = 0, travels = 0;
  for (std::size_t i = 0; i < sample.chunks(); ++i) {
    const std::size_t first = copy != nullptr ? i * frame::chunk_values : sample.first(i);
    const ConstArray chunk = slice_of(from, first, std::min(frame::chunk_values, from.count - first));
    original += chunk.bytes();
    travels += frame::encode(chunk, grid, room) - frame::header_bytes;
  }
  return static_cast<double>(travels) / static_cast<double>(original);
}

}  // namespace laconic
