#include "collective/call.h"

#include <algorithm>
#include <string>

#include "collective/pool.h"
#include "frame/frame.h"

namespace laconic {
namespace {

// A block travels in about this many segments: enough to keep the wire busy from early on and to have little left to
// decode at the end. Within limits: a message must cost little beside its bytes, and need not be larger than that.
constexpr std::size_t segments_per_block = 16;
constexpr std::size_t least_segment_bytes = std::size_t{128} << 10;
constexpr std::size_t most_segment_bytes = std::size_t{1} << 20;

constexpr int most_threads = 1024;

void require_pointer(const char* name, const void* data, std::size_t count) {
  if (data != nullptr || count == 0) return;
  throw Error(Code::invalid_argument, std::string(name) + " is null, but has " + std::to_string(count) + " elements");
}

}  // namespace

Call::Call(Collective collective, Communicator& comm, const Options& options)
    : comm_(comm), options_(options), start_(std::chrono::steady_clock::now()) {
  comm.require_usable();
  comm.pool().take_peak();
  proposal_.collective = collective;
  proposal_.bound = options.bound;
  proposal_.segment_values = options.segment_values;
  proposal_.confirm = options.confirm;
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
    require_pointer("send", send.data, send.count);
    require_pointer("recv", recv.data, recv.count);
    if (send.data != in_place && overlap(send, recv)) {
      throw Error(Code::invalid_argument, "send and recv overlap without being in place");
    }
    if (options_.threads < 1 || options_.threads > most_threads) {
      throw Error(Code::invalid_argument, "threads = " + std::to_string(options_.threads) + ": want 1 to 1024");
    }
  });
}

void Call::check_bound(DType dtype) {
  check([&] {
    if (is_float(dtype)) static_cast<void>(options_.bound.absolute_for(1));
  });
}

void Call::check_op(Op op, DType dtype) {
  proposal_.op = op;
  check([&] {
    if (op != Op::sum && op != Op::average) {
      throw Error(Code::unsupported, "op " + std::string(name_of(op)) + ": want sum or average");
    }
    if (op == Op::average && !is_float(dtype)) {
      throw Error(Code::unsupported,
                  "average of " + std::string(name_of(dtype)) + " is no integer: take the sum and divide");
    }
  });
}

void Call::scan_operand(ConstArray operand) {
  if (options_.bound.kind == BoundKind::lossless || !is_float(operand.dtype)) return;
  check([&] {
    const Timed clock(report_.stats.compute_seconds);
    proposal_.range = scan(operand);
  });
}

Agreement Call::agree(CountRule rule) {
  Agreement agreed = laconic::agree(comm_, proposal_, rule, report_);
  confirm_ = agreed.confirm;
  return agreed;
}

Budget Call::decide(Op op, ConstArray operand, const Agreement& agreed) {
  Budget budget = budget_reduction(op, operand.dtype, options_.bound, comm_.size(), agreed.range);
  if (budget.route == Route::on_grid && budget.outliers_beyond != 0) {
    Outliers mine;
    {
      const Timed clock(report_.stats.compute_seconds);
      mine = count_outliers(operand, budget.outliers_beyond, agreed.range.max_abs());
    }
    if (too_many_outliers(sum_outliers(comm_, mine, report_), agreed.range.count)) {
      budget = exact_instead(budget, "too many values beyond the grid");
    }
  }
  note(budget);
  return budget;
}

void Call::note(const Budget& budget) {
  report_.route = budget.route;
  report_.operand_bound = budget.operand_bound;
  report_.result_bound = budget.result_bound;
  if (budget.fallback != nullptr) report_.stats.add_fallback(budget.fallback);
}

std::size_t Call::segment_values(const Agreement& agreed, DType dtype, const std::vector<std::size_t>& blocks) const {
  const std::size_t largest = *std::max_element(blocks.begin(), blocks.end()) * size_of(dtype);
  const std::size_t bytes = std::clamp(largest / segments_per_block, least_segment_bytes, most_segment_bytes);
  const std::size_t wish = agreed.segment_values != 0 ? agreed.segment_values : bytes / size_of(dtype);
  const std::size_t chunks = (wish + frame::chunk_values - 1) / frame::chunk_values;
  return std::max<std::size_t>(chunks, 1) * frame::chunk_values;
}

void refuse(Collective collective, Communicator& comm, const Error& why) {
  Call call(collective, comm, {});
  call.check([&] { throw why; });
  call.agree(CountRule::equal);
  throw why;
}

Report Call::finish(const std::optional<Failure>& failure) {
  confirm(comm_, failure, confirm_, report_);
  return finish();
}

Report Call::finish() {
  report_.scratch_bytes = comm_.pool().take_peak();
  Stats& s = report_.stats;
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start_;
  s.other_seconds = std::max(0.0, whole.count() - s.codec_seconds - s.wire_seconds - s.compute_seconds);
  comm_.record(report_);
  return report_;
}

}  // namespace laconic
