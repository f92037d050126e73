#include "collective/plain_way.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <locale>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

#include "collective/budget.h"
#include "core/float_environment.h"
#include "core/log.h"
#include "core/stats.h"

namespace laconic {
namespace {

CallKind kind_of(const Proposal& p, const PlainCall& plain) {
  return {p.collective,   p.dtype,       p.op,           p.bound.kind,
          p.bound.scope,  p.bound.value, p.bound.sigmas, static_cast<int>(std::bit_width(plain.bytes)),
          plain.irregular};
}

/// Of a call that may go plainly: its sums of floats are on a grid.
Combining combining_of(const Proposal& p) {
  if (p.op == Op::none) return Combining::nothing;
  if (is_extreme(p.op)) return Combining::extremes;
  return is_float(p.dtype) ? Combining::on_grid : Combining::exactly;
}

/// What rounding the partial sums may add to an element; of an average also rounding 1/ranks and every operand's share,
/// where the library scales before it adds, as NCCL does.
double rounding_of(const Proposal& p, int ranks, const Range& range) {
  const double of_sums = (ranks - 1) * ulp_of(p.dtype, ranks * range.max_abs()) / 2;
  if (p.op != Op::average) return of_sums;
  return std::max(of_sums, (ranks + 3) * ulp_of(p.dtype, range.max_abs()) / 2);
}

// What a call that asks does besides: it is checked, its budget made, others waited for.
constexpr double around_an_exchange = 10e-6;

/// For whoever wonders why a call went the way it did.
void log_choice(const Workload& w, const Estimates& e, bool plainly) {
  if (!log_enabled(LogLevel::debug)) return;
  const auto both = [](double model, double measured) {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << model * 1e3 << " ms by the model";
    if (measured > 0) text << ", " << measured * 1e3 << " ms measured";
    return text.str();
  };
  std::ostringstream text;
  text.imbue(std::locale::classic());  // a log is the same whatever the program's is
  text << name_of(w.collective) << " of " << w.bytes << " bytes, of which " << e.fraction
       << " would travel: " << (plainly ? "plain" : "compressed") << " (plain " << both(e.plain_model, e.plain_measured)
       << "; compressed " << both(e.compressed_model, e.compressed_measured) << ')';
  log(LogLevel::debug, text.str());
}

/// What is certain of the library's own result where nobody has looked at the data: sums of floats are rounded on the
/// way, and may leave the type.
double promised_unasked(const CallShape& shape) {
  const bool exact = !is_float(shape.dtype) || shape.op == Op::none || is_extreme(shape.op);
  return exact ? 0 : std::numeric_limits<double>::infinity();
}

/// Whether the library has it.
bool is_there(const CallShape& shape, PlainCollectives* library) {
  if (library == nullptr) return false;
  if (shape.op == Op::average && !is_float(shape.dtype)) return false;  // its sum may leave the type
  const bool prefix = shape.collective == Collective::scan || shape.collective == Collective::exscan;
  if (prefix && !library->has_scan()) return false;
  return shape.op == Op::none || library->reduces(shape.dtype, plain_op(shape.op, shape.dtype, *library));
}

}  // namespace

bool goes_plainly_unasked(const CallShape& shape, Communicator& comm, const Options& options) {
  return options.mode == Mode::plain && !options.check && comm.size() > 1 && options.leave_way_open() &&
         is_there(shape, comm.plain()) && comm.routing().plain_wanted_by_all(shape.collective);
}

Shortcuts::Entry* open_shortcut(const CallShape& shape, Communicator& comm, const Options& options) {
  Shortcuts::Entry* const known = comm.routing().shortcuts().find(shape, options);
  if (known == nullptr) return nullptr;
  comm.require_usable();
  // Where either says no, PlainWay asks again and gets the same answer.
  if (known->unknown != nullptr) return known->unknown->asking.is_due(shape.bytes) ? nullptr : known;
  return known->history == nullptr || known->history->at_once() ? known : nullptr;
}

void close_shortcut(Shortcuts::Entry& known, const CallShape& shape, const double* seconds, Communicator& comm) {
  if (seconds != nullptr) {
    known.seconds = *seconds;
    History* const history = known.unknown != nullptr ? known.unknown->history_of(shape.bytes) : known.history;
    if (history != nullptr) history->plain.note(*seconds);
  }
  ++known.calls;
  const std::uint64_t bytes = known.unknown != nullptr ? known.unknown->last_bytes : shape.bytes;
  comm.record_plain(bytes, known.seconds, promised_unasked(shape));
}

bool is_sound_whole(const ConstArray& whole, const ConstArray& own, const Communicator& comm) {
  if (whole.count != own.count * static_cast<std::size_t>(comm.size())) return false;
  if (whole.dtype != own.dtype || (own.data == nullptr && own.count != 0)) return false;
  if (whole.data == nullptr) return whole.count == 0;
  const ConstArray place = slice_of(whole, own.count * static_cast<std::size_t>(comm.rank()), own.count);
  return own.data == place.data || !overlap(whole, own);
}

std::optional<std::uint64_t> elements_in_order(const Parts& parts, const ConstArray& array, std::size_t own,
                                               const Communicator& comm) {
  const auto n = static_cast<std::size_t>(comm.size());
  if (parts.counts.size() != n || (!parts.displs.empty() && parts.displs.size() != n)) return std::nullopt;
  if (parts.counts[static_cast<std::size_t>(comm.rank())] != own) return std::nullopt;
  std::size_t end = 0, elements = 0;
  for (std::size_t r = 0; r < n; ++r) {
    const std::size_t count = parts.counts[r];
    if (count == 0) continue;
    const std::size_t first = parts.displs.empty() ? end : parts.displs[r];
    if (first < end || first > array.count || count > array.count - first) return std::nullopt;
    end = first + count;
    elements += count;
  }
  if ((parts.displs.empty() && end != array.count) || (array.data == nullptr && array.count != 0)) return std::nullopt;
  return elements;
}

std::optional<std::uint64_t> elements_of_sound(const ConstArray& whole, const Parts& parts, const ConstArray& own,
                                               const Communicator& comm) {
  if (whole.dtype != own.dtype || (own.data == nullptr && own.count != 0)) return std::nullopt;
  const auto elements = elements_in_order(parts, whole, own.count, comm);
  if (!elements || own.count == 0) return elements;
  const auto before = parts.counts.first(static_cast<std::size_t>(comm.rank()));
  const std::size_t first = parts.displs.empty() ? std::accumulate(before.begin(), before.end(), std::size_t{0})
                                                 : parts.displs[before.size()];
  return own.data == slice_of(whole, first, own.count).data || !overlap(whole, own) ? elements : std::nullopt;
}

void PlainWay::prepare() {
  call_.proposal().irregular = plain_.irregular;
  const Options& o = call_.options();
  if (!o.leave_way_open() || comm_.size() == 1) return;
  if (!plain_.known && comm_.in_advance()) {
    advance_ = &*comm_.in_advance();
    plain_.known = true;
    plain_.bytes = advance_->bytes;
  }
  part_ = plain_.bytes;
  if (o.mode == Mode::automatic && plain_.known) {
    history_ = &comm_.routing().of(kind_of(call_.proposal(), plain_));
    call_.watch(history_);
  }
  if (!offered()) return;
  mode_ = call_.options().mode;
  const Proposal& p = call_.proposal();
  if (mode_ == Mode::automatic && !plain_.known) foresee();
  if (advance_ != nullptr && history_ != nullptr) history_->skip(advance_->left_alone);
  workload_ = {.collective = p.collective,
               .bytes = plain_.bytes,
               .ranks = comm_.size(),
               .threads = call_.options().threads,
               .element_bytes = size_of(p.dtype),
               .combining = combining_of(p)};
}

void PlainWay::foresee() {
  const Proposal& p = call_.proposal();
  unknown_ = &comm_.routing().of_unknown_size(kind_of(p, {.irregular = true}));
  plain_.bytes = unknown_->last_bytes;
  history_ = &comm_.routing().of(kind_of(p, plain_));
}

void PlainWay::tell() {
  const bool pays = history_ != nullptr && !history_->prefers_plain();
  constexpr std::uint64_t any_number = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t may_be_left_alone = history_ != nullptr ? history_->interval() : is_checked_ ? 0 : any_number;
  if (advance_ != nullptr) {
    advance_->pays = pays;
    advance_->may_be_left_alone = may_be_left_alone;
    advance_->kind = history_ != nullptr ? std::optional(kind_of(call_.proposal(), plain_)) : std::nullopt;
  }
  if (unknown_ == nullptr) return;
  if (pays) {
    unknown_->asking.came_to_something(part_);
  } else {
    unknown_->asking.came_to_nothing(part_, may_be_left_alone);
  }
}

CallShape PlainWay::shape() const {
  const Proposal& p = call_.proposal();
  return {p.collective, p.dtype, p.op, plain_.known ? plain_.bytes : part_, plain_.irregular, plain_.known};
}

bool PlainWay::offered() const {
  const Options& o = call_.options();
  const Proposal& p = call_.proposal();
  if (o.mode == Mode::compressed || !is_there(shape(), comm_.plain())) return false;
  if (plain_.elements > comm_.plain()->most_elements()) return false;
  if (o.mode == Mode::plain) return true;
  if (p.bound.is_ratio_of(p.dtype)) return false;  // is asked for, whatever is faster
  if (p.op == Op::none || !is_float(p.dtype)) return true;
  return (p.op == Op::sum || p.op == Op::average) && p.bound.kind != BoundKind::lossless;
}

const Report* PlainWay::at_once() {
  if (!goes_unasked()) return nullptr;
  if (const auto& refused = call_.proposal().refused) {
    throw refusal(call_.proposal().collective, comm_.rank(), *refused);
  }
  call_.report().result_bound = promised_unasked(shape());
  if (advance_ == nullptr && comm_.plain()->most_elements() >= Shortcuts::most_bytes) {
    comm_.routing().shortcuts().learn({.shape = shape(),
                                       .options = call_.options(),
                                       .defaults = call_.options() == comm_.defaults() ? &comm_.defaults() : nullptr,
                                       .history = unknown_ == nullptr ? history_ : nullptr,
                                       .unknown = unknown_,
                                       .leaves_on_stream = comm_.plain()->can_leave_on_stream()});
  }
  if (unknown_ != nullptr) history_ = unknown_->history_of(part_);
  unknown_ = nullptr;
  const Report& report = run();
  comm_.count_unasked();
  return &report;
}

bool PlainWay::goes_unasked() {
  if (mode_ == Mode::compressed || call_.options().check) return false;
  if (mode_ == Mode::plain) return goes_plainly_unasked(shape(), comm_, call_.options());
  if (unknown_ == nullptr) return history_->at_once();
  return !unknown_->asking.is_due(part_);
}

void PlainWay::propose(ConstArray operand) {
  Proposal& p = call_.proposal();
  if (mode_ == Mode::plain) p.verify = false;  // the library's own result, as that of calls that ask nobody
  p.news = unknown_ != nullptr && unknown_->asking.take_news();
  repeats_ = mode_ == Mode::automatic && plain_.known && history_->repeats();
  if (repeats_) return;
  if (history_ != nullptr) {
    p.plain_seconds = history_->plain.cost();
    p.asking_seconds = history_->asking.cost();
    p.compressed_cost = history_->compressed.cost();
    p.schedule_seconds = {history_->ring.cost(), history_->direct.cost()};
  }
  if (mode_ != Mode::automatic || p.refused) return;
  operand_ = operand;
  call_.check([&] {  // a device may fail
    const Range range = expected_range();
    if (operand.count == 0 || !may_pay(range)) return;
    p.fraction = sample(range);
    p.sampled_within = absolute_bound(p.dtype, p.bound, range);
  });
}

Range PlainWay::expected_range() const {
  Range range = call_.proposal().range;
  if (history_ == nullptr || history_->widening == 1) return range;
  const double more = range.width() * (history_->widening - 1) / 2;
  if (!std::isfinite(2 * more)) return range;
  range.min -= more;
  range.max += more;
  return range;
}

bool PlainWay::may_pay(const Range& range) {
  const auto costs = comm_.routing().costs(codec_kind_of(call_.budget_within(range).grid, operands()));
  if (!costs) return true;  // nobody knows yet
  const Estimates e = estimates(*costs, 1);
  return e.compressed_at_best <= e.plain_model;
}

double PlainWay::sample(const Range& range) {
  const Proposal& p = call_.proposal();
  const Timed clock(call_.report().stats.codec_seconds);
  const double whole = absolute_bound(p.dtype, p.bound, range);
  const double outliers_beyond = call_.budget_within(range).outliers_beyond;
  const double largest = outliers_beyond != 0 ? std::min(outliers_beyond, range.max_abs()) : range.max_abs();
  const double share = share_of_operand(p.op, call_.options().bound, comm_.size(), whole);
  return sample_fraction(comm_.memory(), operand_, share, largest);
}

double PlainWay::sample_together(const Agreement& agreed) {
  double mine = 0;
  try {
    if (operand_.count != 0) mine = sample(agreed.range);
  } catch (const Error& e) {  // the others wait for the exchange; a device that fails will say so again
    log(LogLevel::warning, std::string("no sample: ") + e.what());
  }
  return mean_fraction(comm_, mine, agreed.fraction, call_.report());
}

int PlainWay::operands() const { return call_.proposal().op == Op::none ? 1 : comm_.size(); }

Estimates PlainWay::estimates(const Costs& costs, double fraction) const {
  Estimates e;
  e.fraction = fraction;
  e.plain_model = plain_seconds(workload_, costs.link);
  e.compressed_model = compressed_seconds(workload_, costs, fraction);
  e.compressed_at_best = compressed_seconds(workload_, costs, 0);
  e.agreement = exchange_seconds(comm_.size(), costs.link) + around_an_exchange;
  const Proposal& p = call_.proposal();
  if (p.bound.kind != BoundKind::lossless && is_float(p.dtype)) e.agreement += look_seconds(workload_, costs.codec);
  return e;
}

bool PlainWay::keeps_promise(const Agreement& agreed) {
  const Proposal& p = call_.proposal();
  if (p.op == Op::none || !is_float(p.dtype)) return true;
  const Budget& budget = call_.budget_within(agreed.range);
  if (budget.route != Route::on_grid || rounding_of(p, comm_.size(), agreed.range) > budget.result_bound) return false;
  call_.report().result_bound = budget.result_bound;
  return true;
}

void PlainWay::learn_size(const Agreement& agreed) {
  const auto& counts = agreed.counts;
  const std::uint64_t elements = workload_.collective == Collective::alltoall
                                     ? *std::max_element(counts.begin(), counts.end())
                                     : std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (unknown_ == nullptr) return;
  plain_.bytes = workload_.bytes = elements * size_of(call_.proposal().dtype);
  const std::uint64_t last = std::exchange(unknown_->last_bytes, plain_.bytes);
  is_as_expected_ = std::bit_width(last) == std::bit_width(plain_.bytes);
  unknown_->last_part = part_;
  history_ = unknown_->last = &comm_.routing().of(kind_of(call_.proposal(), plain_));
  history_->skip(unknown_->asking.take_left_alone());
  if (agreed.news) unknown_->asking.heard_news();
  call_.watch(history_);
}

const Report* PlainWay::if_cheaper(const Agreement& agreed) {
  if (mode_ == Mode::compressed) return nullptr;
  if (!plain_.known) learn_size(agreed);
  is_checked_ = agreed.check;
  if (mode_ == Mode::plain) {
    if (!is_checked_) comm_.routing().plain_wanted_by_all(call_.proposal().collective) = true;
    call_.report().result_bound = promised_unasked(shape());
    return &run();
  }
  if (repeats_) {
    call_.repeat_schedule(history_->repeat());
    return nullptr;
  }
  if (!keeps_promise(agreed)) {
    if (history_ != nullptr) history_->ask_next();
    return nullptr;
  }
  const Costs costs = calibrate(codec_kind_of(call_.budget_within(agreed.range).grid, operands()));
  workload_.threads = agreed.threads;
  Estimates e = estimates(costs, agreed.fraction);
  // Data that one rank alone could only send as it is may shrink within the bound that the range of all gives.
  const bool wants_sample = e.compressed_at_best <= e.plain_model && e.plain_model <= e.compressed_model;
  if (!agreed.sampled && wants_sample) e = estimates(costs, sample_together(agreed));
  if (is_as_expected_) {
    e.plain_measured = agreed.plain_seconds;
    if (agreed.asking_seconds > 0) e.agreement = agreed.asking_seconds;
    e.compressed_measured = agreed.compressed_cost * e.compressed_model;
  }
  if (history_ != nullptr) {
    // Neither infinite widths nor the smallest ones say anything of the next call's.
    const double widening = agreed.range.width() / call_.proposal().range.width();
    history_->widening = std::isfinite(widening) ? widening : 1;
  }
  const bool plainly = history_ != nullptr ? history_->decide(e) : e.plain_model <= e.compressed_model;
  log_choice(workload_, e, plainly);
  if (history_ != nullptr && is_checked_) history_->ask_next();
  if (plainly) {
    if (history_ != nullptr) history_->asking.note(call_.seconds());
    return &run();
  }
  tell();
  return nullptr;
}

Costs PlainWay::calibrate(CodecKind kind) {
  try {
    return comm_.routing().calibrate(kind, comm_.transport(), comm_.memory());
  } catch (...) {  // messages may be under way
    comm_.mark_unusable();
    throw;
  }
}

const Report& PlainWay::run() {
  std::chrono::steady_clock::time_point start;
  try {
    PlainCollectives& library = *comm_.plain();
    comm_.memory().before_plain(library, true);
    start = std::chrono::steady_clock::now();
    FloatEnvironment::as_the_program([&] { make_(run_, library); });
  } catch (const Error&) {
    comm_.mark_unusable();
    throw;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (history_ != nullptr) history_->plain.note(seconds);
  call_.watch(nullptr);
  tell();
  Report& report = call_.report();
  report.route = Route::plain;
  report.stats.wire_seconds += seconds;
  report.stats.original_bytes += plain_.bytes;
  report.stats.wire_bytes += plain_.bytes;
  ++report.stats.plain_calls;
  return call_.finish();
}

Op plain_op(Op op, DType dtype, const PlainCollectives& library) {
  return op == Op::average && !library.reduces(dtype, op) ? Op::sum : op;
}

void finish_plain_average(Op op, Op done, MutArray recv, int ranks, Memory& memory) {
  if (op == done) return;
  const FloatEnvironment environment;  // the division is not the library's
  memory.divide(recv, ranks);
}

}  // namespace laconic
