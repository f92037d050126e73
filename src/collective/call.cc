#include "collective/call.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "collective/layout.h"
#include "collective/moving_range.h"
#include "collective/outliers.h"
#include "collective/plain_way.h"
#include "collective/pool.h"
#include "frame/frame.h"

namespace laconic {
namespace {

// The published designs work in pieces of 20 KiB; what a message costs asks for more.
constexpr std::size_t stepwise_segment_bytes = std::size_t{128} << 10;

/// Compressions that may go into one element of the result of a reduction in steps, and of its way to the last rank.
int encodings_of(const Proposal& p, bool reopens, int ranks) {
  const bool around =
      p.schedule == Schedule::automatic || p.schedule == Schedule::ring || p.schedule == Schedule::two_level;
  const bool ring = p.collective == Collective::reduce_scatter || (p.collective == Collective::allreduce && around);
  // Along a ring every partial sum is compressed once; in any other tree every operand may be, too. (2 n for scans: the
  // average over few ranks has few to divide by.)
  const bool prefix = p.collective == Collective::scan || p.collective == Collective::exscan;
  const int sum = ring ? ranks : prefix ? 2 * ranks : 2 * ranks - 1;
  return sum + (reopens && p.collective == Collective::allreduce ? ranks - 1 : 0);
}

void require_buffer(const char* name, const ConstArray& x, const Memory& memory) {
  if (x.count == 0) return;
  if (x.count > most_elements_of(x.dtype)) {
    throw Error(Code::invalid_argument, std::string(name) + " has " + std::to_string(x.count) +
                                            " elements: want at most " + std::to_string(most_elements_of(x.dtype)));
  }
  if (x.data == nullptr) {  // as the C interface has it for LACONIC_IN_PLACE, too, where that means nothing
    throw Error(Code::invalid_argument, std::string(name) + " is null, or in place where that means nothing, but has " +
                                            std::to_string(x.count) + " elements");
  }
  if (!memory.holds(x.data)) {
    throw Error(Code::invalid_argument, std::string(name) + " does not lie in the memory of the communicator's arrays");
  }
}

}  // namespace

void require_ready(Communicator& comm) {
  comm.require_usable();
  try {
    comm.memory().before_call(comm.transport());
  } catch (const Error&) {
    comm.mark_unusable();
    throw;
  }
}

Call::Call(Collective collective, Communicator& comm, const Options& options) : comm_(comm), options_(options) {
  require_ready(comm);
  start_ = std::chrono::steady_clock::now();
  comm.pool().take_peak();
  proposal_.collective = collective;
  proposal_.bound = options.bound;
  proposal_.threads = options.threads;
  proposal_.segment_values = options.segment_values;
  proposal_.segment_bytes = comm.memory().segment_bytes();
  proposal_.confirm = options.confirm;
  proposal_.verify = options.verify;
  proposal_.check = options.check;
  proposal_.schedule = options.schedule;
  proposal_.codec = options.codec;
  proposal_.framework = options.framework;
  proposal_.mode = options.mode;
  report_.stats.calls = 1;
}

void Call::check_arrays(ConstArray send, MutArray recv, const void* in_place) {
  proposal_.dtype = send.dtype;
  proposal_.count = send.count;
  check([&] {
    if (!is_valid(send.dtype)) {
      throw Error(Code::invalid_argument,
                  "dtype " + std::to_string(static_cast<int>(send.dtype)) + " is none that Laconic knows");
    }
    if (send.dtype != recv.dtype) {
      throw Error(Code::invalid_argument, "send is " + std::string(name_of(send.dtype)) + ", recv is " +
                                              std::string(name_of(recv.dtype)) + "; both must have the same dtype");
    }
    require_buffer(proposal_.collective == Collective::bcast ? "buf" : "send", send, comm_.memory());
    require_buffer("recv", recv, comm_.memory());
    if (send.data != in_place && overlap(send, recv)) {
      throw Error(Code::invalid_argument, "send and recv overlap without being in place");
    }
    require_threads(options_.threads);
  });
  check_codec(send.dtype);
}

void Call::check_codec(DType dtype) {
  check([&] {
    const Codec* codec = find_codec(options_.codec);
    if (codec == nullptr) {
      throw Error(Code::invalid_argument,
                  "codec " + std::to_string(static_cast<int>(options_.codec)) + " is none that Laconic knows");
    }
    require_dtype(*codec, dtype);
    if (options_.framework == Framework::on_grid && options_.bound.is_ratio_of(dtype)) {
      throw Error(Code::unsupported,
                  "framework on_grid: within a ratio each message has a grid of its own; take stepwise");
    }
    if (framework() == Framework::on_grid && codec->linear() == nullptr) {
      throw Error(Code::unsupported, "codec " + std::string(codec->name()) +
                                         " cannot add compressed arrays: take slice, or the framework stepwise");
    }
    if (!codec->available()) {  // says what to install
      std::uint8_t none[8] = {};
      std::uint8_t frame[64];
      frame::encode(*codec, {none, 1, dtype}, Grid{.dtype = dtype}, frame);
    }
  });
}

Framework Call::framework() const {
  if (options_.framework != Framework::automatic) return options_.framework;
  const bool on_one_grid = !options_.bound.is_ratio_of(proposal_.dtype);
  const bool adds = options_.codec == CodecId::slice && proposal_.op != Op::product && on_one_grid;
  return adds ? Framework::on_grid : Framework::stepwise;
}

void Call::check_bound(DType dtype) {
  check([&] {
    if (is_float(dtype)) static_cast<void>(grid_for(*find_codec(options_.codec), dtype, options_.bound, {}));
  });
}

void Call::check_op(Op op, DType dtype) {
  proposal_.op = op;
  const bool prefix = proposal_.collective == Collective::scan || proposal_.collective == Collective::exscan;
  // The first ranks average few operands, whose errors do not even out.
  if (prefix && op == Op::average && options_.bound.scope == BoundScope::sigmas)
    options_.bound.scope = BoundScope::result;
  check([&] {
    if (op == Op::product) {
      if (framework() == Framework::on_grid) {
        throw Error(Code::unsupported, "op product: factors do not add on a grid; take the framework stepwise");
      }
      if (is_float(dtype) && options_.bound.kind != BoundKind::lossless &&
          options_.bound.scope != BoundScope::operand && options_.bound.kind != BoundKind::ratio) {
        throw Error(Code::unsupported,
                    "op product: its error depends on the factors; state a bound for each of them, as operand:1e-3");
      }
    } else if (op != Op::sum && op != Op::average && !is_extreme(op)) {
      throw Error(Code::unsupported, "op " + std::string(name_of(op)) + ": want sum, average, min, max or product");
    }
    if (op == Op::average && !is_float(dtype) && framework() != Framework::on_grid) {
      throw Error(Code::unsupported, "average of " + std::string(name_of(dtype)) + " in framework " +
                                         name_of(framework()) +
                                         ": a sum of two may leave the type; take slice, on the grid");
    }
  });
}

void Call::check_root(int root) {
  proposal_.root = root;
  check([&] {
    if (root >= 0 && root < comm_.size()) return;
    throw Error(Code::invalid_argument,
                "root " + std::to_string(root) + ": want 0 to " + std::to_string(comm_.size() - 1));
  });
}

void Call::check_same_count(ConstArray send, ConstArray recv) {
  check([&] {
    if (send.count == recv.count) return;
    throw Error(Code::invalid_argument, "send has " + std::to_string(send.count) + " elements, recv has " +
                                            std::to_string(recv.count) + "; " + name_of(proposal_.collective) +
                                            " wants the same");
  });
}

void Call::check_reduction(ConstArray send, MutArray recv, Op op) {
  check_arrays(send, recv, recv.data);
  check_op(op, send.dtype);
  check_bound(send.dtype);
  check_same_count(send, recv);
}

void Call::check_parts(const Parts& parts, std::size_t total, std::size_t own, const std::string& side) {
  const auto& counts = parts.counts;
  const auto& displs = parts.displs;
  const auto require_one_each = [&](const char* name, std::size_t entries) {
    if (entries == static_cast<std::size_t>(comm_.size())) return;
    throw Error(Code::invalid_argument, side + name + " has " + std::to_string(entries) +
                                            " entries, want one for each of " + std::to_string(comm_.size()) +
                                            " ranks");
  };
  check([&] {
    require_one_each("counts", counts.size());
    if (!displs.empty()) require_one_each("displs", displs.size());
    const std::size_t sum = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    if (displs.empty() && total != sum) {
      throw Error(Code::invalid_argument, "the " + side + "array for all ranks has " + std::to_string(total) +
                                              " elements, counts add up to " + std::to_string(sum));
    }
    for (std::size_t r = 0; r < displs.size(); ++r) {
      if (counts[r] == 0 || (displs[r] <= total && counts[r] <= total - displs[r])) continue;
      throw Error(Code::invalid_argument, "the " + side + "array for all ranks has " + std::to_string(total) +
                                              " elements, displs[" + std::to_string(r) +
                                              "] = " + std::to_string(displs[r]) + " and counts[" + std::to_string(r) +
                                              "] = " + std::to_string(counts[r]) + " lead beyond");
    }
    const auto me = static_cast<std::size_t>(comm_.rank());
    if (counts[me] != own) {
      throw Error(Code::invalid_argument, "this rank's own array has " + std::to_string(own) + " elements, counts[" +
                                              std::to_string(me) + "] is " + std::to_string(counts[me]));
    }
  });
}

void Call::check_apart(const std::vector<ConstArray>& sent, const std::vector<MutArray>& written) {
  check([&] {
    const std::vector<ConstArray> parts(written.begin(), written.end());
    if (const auto both = first_overlap(parts)) {
      throw Error(Code::invalid_argument, "recv: the parts of ranks " + std::to_string(both->first) + " and " +
                                              std::to_string(both->second) + " overlap");
    }
    if (overlap(sent, parts)) {
      throw Error(Code::invalid_argument, "send and recv overlap without being in place");
    }
  });
}

void Call::scan_operand(ConstArray operand) { scan_operand(std::span(&operand, 1)); }

void Call::scan_operand(std::span<const ConstArray> parts) {
  const BoundKind kind = options_.bound.kind;
  if (kind == BoundKind::lossless || kind == BoundKind::ratio || !is_float(proposal_.dtype)) return;
  check([&] {
    const Timed clock(report_.stats.compute_seconds);
    proposal_.range = moves_on_grid() ? moving_range(comm_.memory(), parts, options_.bound, options_.threads)
                                      : whole_range(comm_.memory(), parts, options_.threads);
  });
}

bool Call::moves_on_grid() const {
  const DType t = proposal_.dtype;
  return proposal_.op == Op::none && options_.bound.kind != BoundKind::ratio && options_.bound.value > 0 &&
         options_.codec == CodecId::slice && framework() == Framework::on_grid && (t == DType::f32 || t == DType::f64);
}

Agreement Call::agree(CountRule rule) {
  Agreement agreed;
  try {
    agreed = laconic::agree(comm_, proposal_, rule, report_);
  } catch (const Error&) {  // on all ranks; but each has noted the kind of call that it meant, or none
    history_ = nullptr;
    comm_.routing().forget();
    throw;
  }
  // Who verifies needs all others to have come so far.
  confirm_ = agreed.confirm || agreed.verify || comm_.transport().needs_everyone();
  return agreed;
}

void Call::verify(const Agreement& agreed, Verification::Blocks blocks, Verification::Exactly exactly) {
  if (!agreed.verify) return;
  // The result is rounded once, the exact sum that it is compared with too; an average of f64 may be off by one more.
  double ulps = proposal_.op == Op::sum || proposal_.op == Op::average ? 1 : 0.5;
  if (proposal_.op == Op::average && proposal_.dtype == DType::f64) ulps = 2;
  verification_.emplace(std::move(blocks), ulps, options_.threads, std::move(exactly), comm_.memory());
}

const Budget& Call::budget_within(const Range& range) {
  if (budget_ && budget_range_.min == range.min && budget_range_.max == range.max) return *budget_;
  const Proposal& p = proposal_;
  budget_range_ = range;
  budget_ = p.op == Op::none ? budget_movement(p.dtype, options_.bound, range)
                             : budget_reduction(p.op, p.dtype, options_.bound, comm_.size(), range);
  return *budget_;
}

Budget Call::decide_movement(DType dtype, const Agreement& agreed) {
  const bool reopens = framework() == Framework::point_to_point;
  Budget budget = framework() == Framework::on_grid
                      ? budget_within(agreed.range)
                      : budget_movement(*find_codec(options_.codec), reopens ? std::max(comm_.size() - 1, 1) : 1, dtype,
                                        options_.bound, agreed.range);
  budget.reopens = reopens;
  note(budget);
  return budget;
}

Budget Call::decide(Op op, ConstArray operand, const Agreement& agreed) {
  if (framework() != Framework::on_grid) {
    const bool reopens = framework() == Framework::point_to_point;
    Budget budget = budget_stepwise(*find_codec(options_.codec), encodings_of(proposal_, reopens, comm_.size()), op,
                                    operand.dtype, options_.bound, comm_.size(), agreed.range);
    budget.reopens = reopens && budget.route == Route::stepwise;
    note(budget);
    return budget;
  }
  Budget budget = budget_within(agreed.range);
  if (budget.route == Route::on_grid && budget.outliers_beyond != 0) budget = without_outliers(budget, operand, agreed);
  note(budget);
  return budget;
}

Budget Call::without_outliers(const Budget& budget, ConstArray operand, const Agreement& agreed) {
  Outliers mine;
  {
    const Timed clock(report_.stats.compute_seconds);
    mine = comm_.memory().count_outliers(operand, budget.outliers_beyond, agreed.range.max_abs());
  }
  const AllOutliers all = sum_outliers(comm_, mine, report_);
  const Proposal& p = proposal_;
  Budget others = budget_reduction(p.op, p.dtype, options_.bound, comm_.size(), agreed.range, all.within);
  if (others.route != Route::on_grid) return others;
  const auto sum_chunk = largest_sum_chunk(all, others.grid, comm_.size(), agreed.range);
  if (!sum_chunk || too_many_outliers(all, others.grid, comm_.size(), agreed.range)) {
    return exact_instead(budget, "too many values beyond the grid");
  }
  others.sum_chunk = *sum_chunk;
  return others;
}

void Call::note(const Budget& budget) {
  report_.route = budget.route;
  report_.operand_bound = budget.operand_bound;
  report_.result_bound = budget.result_bound;
  if (budget.fallback != nullptr) report_.stats.add_fallback(budget.fallback);
}

std::size_t Call::segment_values(const Agreement& agreed, DType dtype, const std::vector<std::size_t>& blocks) const {
  const std::size_t largest = *std::max_element(blocks.begin(), blocks.end()) * size_of(dtype);
  std::size_t bytes = agreed.segment_bytes.of_block(largest);  // ranks must cut alike
  if (framework() == Framework::stepwise && proposal_.op != Op::none) bytes = stepwise_segment_bytes;
  if (framework() == Framework::point_to_point) bytes = std::max(largest, agreed.segment_bytes.least);
  const std::size_t wish = agreed.segment_values != 0 ? agreed.segment_values : bytes / size_of(dtype);
  return whole_chunks(wish);
}

Schedule Call::faster_schedule(ConstArray operand, const Budget& budget, const Agreement& agreed,
                               const Choose& choose) {
  if (direct_) return choose(direct_);
  const auto model = model_of_schedules(proposal_.collective, proposal_.op, operand, budget, agreed, comm_);
  const Schedule expected = choose(model.ring > 0 ? std::optional(model.direct_pays()) : std::nullopt);
  if (history_ == nullptr || choose(true) == choose(false)) return expected;
  const bool direct = history_->goes_directly(expected == Schedule::direct, model, agreed.schedule_seconds);
  by_schedule_ = direct ? &history_->direct : &history_->ring;
  return choose(direct);
}

void refuse(const CallShape& shape, Communicator& comm, const Options& options, const Error& why) {
  if (goes_plainly_unasked(shape, comm, options)) {
    throw refusal(shape.collective, comm.rank(), why);
  }
  Call call(shape.collective, comm, {});
  call.check([&] { throw why; });
  try {
    call.agree(CountRule::equal);
  } catch (const Error& e) {
    if (e.code() != Code::transport && comm.usable()) throw;
    throw Error(e.code(), std::string(e.what()) + "; this rank could not begin its call: " + why.what());
  }
  throw why;
}

const Report& Call::finish(const std::optional<Failure>& failure) {
  confirm(comm_, failure, confirm_, report_);
  return finish();
}

double Call::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

const Report& Call::finish() {
  report_.scratch_bytes = comm_.pool().take_peak();
  Stats& s = report_.stats;
  const double whole = seconds();
  s.other_seconds = std::max(0.0, whole - s.codec_seconds - s.wire_seconds - s.compute_seconds);
  if (history_ != nullptr) history_->note_compressed(whole, by_schedule_);
  if (verification_) verification_->run(name_of(proposal_.collective), comm_, report_);
  comm_.record(report_);
  return comm_.last();
}

const Report& Call::finish_alone(const ConstArray& send, const MutArray& recv) {
  if (send.data != recv.data) comm_.memory().copy(recv.data, send.data, send.bytes());
  return finish();
}

}  // namespace laconic
