#include "bench/collective_bench.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "bench/collective_work.h"
#include "bench/meter.h"
#include "bench/over_ranks.h"
#include "bench/timing.h"
#include "collective/call.h"
#include "collective/plain_way.h"
#include "exit_code.h"

namespace laconic::app {
namespace {

/// Automatic segments are not larger.
constexpr double most_segment_bytes = 1 << 20;

Options options_of(const Mode& mode, const Bound& bound) {
  Options o;
  o.bound = bound;
  o.codec = mode.codec;
  o.framework = mode.framework;
  o.threads = mode.threads;
  o.schedule = mode.schedule;
  o.mode = mode.way;
  return o;
}

std::string name_with_codec(const Mode& mode) {
  return mode.name == "cprp2p" ? fmt::format("cprp2p {}", find_codec(mode.codec)->name()) : mode.name;
}

/// One mode at one size: what it does, and what is known of it so far.
class Runner {
 public:
  Runner(const Mode& mode, const Bound& bound, CollectiveWork& work, Communicator& comm, const std::string& interface)
      : mode_(mode), options_(options_of(mode, bound)), work_(work), comm_(comm), meter_(comm.transport(), interface) {}

  /// Warms up, and looks at every element of the result. `bound`: the one that plain MPI is held against.
  void check(double bound) {
    work_.spoil();
    call(false);
    Transport& t = comm_.transport();
    result_.promised = !mode_.plain && std::isfinite(report_.result_bound);
    const Verdict verdict = work_.judge(result_.promised ? report_.result_bound : bound);
    result_.max_error = max_over(t, verdict.max_error);
    result_.violations = sum_over(t, static_cast<double>(verdict.violations));
    if (work_.same_everywhere()) result_.identical = identical_everywhere(t, work_.result());
  }

  void warm_up() { call(false); }

  /// Of several calls the first is not timed.
  void take_turn(int calls) {
    if (calls > 1) warm_up();
    for (int timed = std::max(1, calls - 1); timed > 0; --timed) measure();
  }

  void measure() {
    call(true);
    parts_.push_back(report_.stats);
    scratch_ = std::max(scratch_, report_.scratch_bytes);
  }

  ModeResult finish() {
    Transport& t = comm_.transport();
    result_.name = name_with_codec(mode_);
    if (mode_.schedule != Schedule::automatic) result_.name += fmt::format(" {}", name_of(mode_.schedule));
    if (!mode_.plain && mode_.threads > 1) result_.name += fmt::format(" {} threads", mode_.threads);
    result_.calls = meter_.calls();
    result_.seconds = meter_.seconds();
    result_.first = meter_.first();
    result_.fastest = meter_.fastest();
    result_.slowest = meter_.slowest();
    result_.wire_bytes = meter_.wire_bytes();
    if (mode_.plain) return result_;
    result_.sent_bytes = total_of(&Stats::wire_bytes);
    result_.original_bytes = total_of(&Stats::original_bytes);
    result_.codec = total_of(&Stats::codec_seconds) / comm_.size();
    result_.wire = total_of(&Stats::wire_seconds) / comm_.size();
    result_.compute = total_of(&Stats::compute_seconds) / comm_.size();
    result_.other = total_of(&Stats::other_seconds) / comm_.size();
    result_.scratch_bytes = max_over(t, static_cast<double>(scratch_));
    const auto message = static_cast<double>(work_.message_bytes());
    result_.scratch_allowance = 2 * message / result_.ratio() + 4 * std::min(message, most_segment_bytes);
    return result_;
  }

 private:
  void call(bool keep) {
    work_.prepare();
    const auto run = [&] {
      if (mode_.plain) {
        work_.run_plainly(*comm_.transport().plain());
      } else {
        work_.run(comm_, options_);
      }
    };
    meter_.call(run, keep);
    if (!mode_.plain) report_ = comm_.last();
  }

  /// Median over the timed calls, which an automatic choice may have made in different ways; of all ranks together.
  template <typename Part>
  double total_of(Part Stats::* part) {
    std::vector<double> values;
    values.reserve(parts_.size());
    for (const Stats& s : parts_) values.push_back(static_cast<double>(s.*part));
    return sum_over(comm_.transport(), median(std::move(values)));
  }

  const Mode& mode_;
  Options options_;
  CollectiveWork& work_;
  Communicator& comm_;
  Meter meter_;
  Report report_;
  std::vector<Stats> parts_;
  std::uint64_t scratch_ = 0;
  ModeResult result_;
};

/// The range that a relative bound refers to: of what all ranks bring.
Range common_range(Transport& t, CollectiveWork& work) {
  work.prepare();
  Range all;
  for (const Range& r : allgather_value(t, scan(work.brought()))) all = merge(all, r);
  return all;
}

void require_calls(const char* option, int n) {
  if (n < 1 || n > 10000) throw Failure(Exit::usage, fmt::format("{} {} is not between 1 and 10000", option, n));
}

/// Why the library would refuse a mode's calls, or plain MPI has no such; nothing where all is well.
std::optional<std::string> refusal_of(const Mode& mode, const Task& task, const Bound& bound, const LoadedField& field,
                                      Communicator& comm) {
  const DType dtype = field.field.shape.dtype;
  Call call(task.collective, comm, options_of(mode, bound));
  call.check_arrays({nullptr, 0, dtype}, {nullptr, 0, dtype}, nullptr);
  if (task.op != Op::none) call.check_op(task.op, dtype);
  if (!mode.plain)
    call.check([&] { static_cast<void>(grid_for(*find_codec(mode.codec), dtype, bound, scan(field.array()))); });
  if (const auto& refused = call.proposal().refused) return refused->what();
  const PlainCollectives& library = *comm.transport().plain();
  if (task.op == Op::average && !is_float(dtype))
    return fmt::format("averages of {} are not measured: plain MPI has none", name_of(dtype));
  if (!mode.plain || task.op == Op::none || library.reduces(dtype, plain_op(task.op, dtype, library))) return {};
  return fmt::format("plain MPI has no type for {} that it could reduce", name_of(dtype));
}

/// Before anything is measured: whether each mode can do what is asked.
void require_possible(const CollectiveOptions& options, const std::vector<Mode>& modes, const Task& task,
                      const Bound& bound, const LoadedField& field, Communicator& comm) {
  std::string refusal;
  std::vector<std::string> others, codecs;
  for (const Mode& mode : modes) {
    if (const auto why = refusal_of(mode, task, bound, field, comm)) {
      if (refusal.empty()) refusal = fmt::format("in mode {}: {}", name_with_codec(mode), *why);
      continue;
    }
    if (std::find(others.begin(), others.end(), mode.name) == others.end()) others.push_back(mode.name);
    if (mode.name == "cprp2p") codecs.emplace_back(find_codec(mode.codec)->name());
  }
  if (refusal.empty()) return;
  std::string remedy = others.empty() ? "" : fmt::format("; --modes {}", fmt::join(others, ","));
  if (!codecs.empty()) remedy += fmt::format(" --codec {}", fmt::join(codecs, ","));
  if (!others.empty()) remedy += " can";
  const std::string op = options.reduces() ? fmt::format(" --op {}", options.op) : "";
  throw Failure(Exit::usage, fmt::format("{}{} --bound {} of {} {}{}", name_of(task.collective), op, options.bound,
                                         name_of(field.field.shape.dtype), refusal, remedy));
}

/// Another order of n each time, the same on all ranks: a call warms caches for the next, and whoever always came after
/// the same one would be measured with that. Nobody comes twice in a row.
class Orders {
 public:
  explicit Orders(std::size_t n) : order_(n) { std::iota(order_.begin(), order_.end(), std::size_t{0}); }
  const std::vector<std::size_t>& next() {
    if (order_.size() < 2) return order_;
    const std::size_t last = order_.back();
    do {
      for (std::size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random_() % (i + 1)]);
    } while (order_.front() == last);
    return order_;
  }

 private:
  std::mt19937 random_;
  std::vector<std::size_t> order_;
};

SizeResult measure_size(const CollectiveOptions& options, const std::vector<Mode>& modes, const Bound& bound,
                        CollectiveWork& work, Communicator& comm) {
  SizeResult result;
  result.operand_bytes = work.operand_bytes();
  const double width = common_range(comm.transport(), work).width();
  if (is_float(work.send().dtype))  // integers are exact
    result.absolute_bound = bound.kind == BoundKind::ratio ? HUGE_VAL : bound.absolute_for(width);
  std::vector<Runner> runners;
  runners.reserve(modes.size());
  for (const Mode& mode : modes) runners.emplace_back(mode, bound, work, comm, options.interface);
  for (Runner& r : runners) r.check(result.absolute_bound);
  for (int i = 1; i < options.warm_up; ++i)
    for (std::size_t m = 0; m < modes.size(); ++m)
      if (!modes[m].again) runners[m].warm_up();
  Orders orders(runners.size());
  for (int repetition = 0; repetition < options.repetitions; ++repetition)
    for (const std::size_t i : orders.next()) runners[i].take_turn(options.turn);
  for (Runner& r : runners) result.modes.push_back(r.finish());
  return result;
}

/// Ranks that were started with different command lines would crash or wait for ever.
void require_alike(const CollectiveOptions& options, const std::vector<std::size_t>& sizes, const LoadedField& field,
                   Communicator& comm) {
  Transport& t = comm.transport();
  require_same_words(
      t, fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", name_of(options.collective), options.op, options.root,
                     options.bound, sizes.size(), fmt::join(options.modes, ","), fmt::join(options.codecs, ","),
                     fmt::join(options.schedules, ","), options.repetitions, options.warm_up, options.turn,
                     name_of(field.field.shape.dtype)));
  for (const std::size_t bytes : sizes) require_same_count(t, bytes / size_of(field.field.shape.dtype));
  require_same_count(t, field.array().count);
  require_same_bytes(t, field.bytes, "read other files");
}

}  // namespace

double SizeResult::speedup(const ModeResult& mode) const {
  for (const ModeResult& m : modes)
    if (m.name == "plain") return m.seconds / mode.seconds;
  return 0;
}

CollectiveResult measure_collective(const CollectiveOptions& options, Communicator& comm,
                                    const std::function<void(const CollectiveResult&)>& each_size) {
  require_calls("--repetitions", options.repetitions);
  require_calls("--warm-up", options.warm_up);
  require_calls("--turn", options.turn);
  if (!options.link.empty()) require_link_rate(options.link);
  if (options.root < 0 || options.root >= comm.size())
    throw Failure(Exit::usage,
                  fmt::format("--root {}: of {} ranks the last is {}", options.root, comm.size(), comm.size() - 1));
  std::vector<std::size_t> sizes;
  for (const std::string& text : options.sizes) sizes.push_back(parse_size(text));
  Bound asked = Bound::parse(options.bound);
  const LoadedField field = load_data(options);
  if (!is_float(field.field.shape.dtype)) asked = {};
  const Bound bound = without_fill(asked, field);
  const Task task{options.collective, options.reduces() ? parse_op(options.op) : Op::none, options.root};
  const std::vector<Mode> modes = chosen_modes(options, bound, field);
  require_possible(options, modes, task, bound, field, comm);

  CollectiveResult result;
  result.collective = options.collective;
  if (options.reduces()) result.op = options.op;
  if (options.has_root()) result.root = options.root;
  result.field = field.field.name;
  result.dtype = name_of(field.field.shape.dtype);
  result.bound = asked.to_string();
  result.mpi = comm.transport().description();
  result.link = options.link;
  result.ranks = comm.size();
  result.repetitions = options.repetitions;
  result.counts_wire = !options.interface.empty();
  require_alike(options, sizes, field, comm);
  for (const std::size_t bytes : sizes) {
    CollectiveWork work(task, field, bytes, comm.rank(), comm.size());
    result.sizes.push_back(measure_size(options, modes, bound, work, comm));
    each_size(result);
  }
  return result;
}

}  // namespace laconic::app
