#include "bench/error_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "bench/collective_work.h"
#include "collective/allreduce.h"
#include "collective/budget.h"
#include "report/quality.h"
#include "transport/threads.h"

namespace laconic::app {
namespace {

constexpr std::size_t bins = 160;

/// What all ranks bring, and what that exactly comes to.
struct Problem {
  std::vector<std::vector<std::uint8_t>> operands;
  std::vector<long double> sum, least, most;
  std::vector<bool> counts;  ///< no operand is a fill value or not finite there
};

long double exactly(const Problem& p, Op op, std::size_t i) {
  if (op == Op::min) return p.least[i];
  if (op == Op::max) return p.most[i];
  return op == Op::average ? p.sum[i] / static_cast<long double>(p.operands.size()) : p.sum[i];
}

Problem make_problem(const LoadedField& field, std::size_t bytes, int ranks) {
  const ConstArray source = field.array();
  const std::size_t element = size_of(source.dtype);
  const std::size_t count = std::max<std::size_t>(bytes / element, 1);
  const auto fill = field.field.fill;
  const double missing = fill.value_or(NAN);
  Problem p;
  p.sum.assign(count, 0);
  p.least.assign(count, HUGE_VALL);
  p.most.assign(count, -HUGE_VALL);
  p.counts.assign(count, true);
  for (int r = 0; r < ranks; ++r) {
    std::vector<std::uint8_t> operand(count * element);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t from = (i + static_cast<std::size_t>(r) * operand_shift) % source.count;
      std::memcpy(operand.data() + i * element, field.bytes.data() + from * element, element);
      const double x = value_at(source, from);
      if (!std::isfinite(x) || x == missing) p.counts[i] = false;
      p.sum[i] += x;
      p.least[i] = std::min<long double>(p.least[i], x);
      p.most[i] = std::max<long double>(p.most[i], x);
    }
    p.operands.push_back(std::move(operand));
  }
  return p;
}

/// Rank 0's result; all have the same.
struct Outcome {
  std::vector<std::uint8_t> result;
  Report report;
};

Outcome reduce_by_threads(const Problem& p, DType dtype, Op op, const Options& options) {
  Outcome outcome;
  run_ranks(static_cast<int>(p.operands.size()), [&](Transport& t) {
    Communicator comm(t);
    const auto& operand = p.operands[static_cast<std::size_t>(t.rank())];
    std::vector<std::uint8_t> result(operand.size());
    const std::size_t count = operand.size() / size_of(dtype);
    const Report report = allreduce({operand.data(), count, dtype}, {result.data(), count, dtype}, op, comm, options);
    if (t.rank() == 0) outcome = {std::move(result), report};
  });
  return outcome;
}

/// Errors in units of e.
struct Errors {
  std::vector<float> outward;  ///< positive: away from zero
  double plain_sum = 0;        ///< with their own sign
  double over_promise = 0;
  double bound = 0;          ///< what was asked for
  std::uint64_t beyond = 0;  ///< errors, less half an ulp, that are larger

  void add(const Errors& other) {
    outward.insert(outward.end(), other.outward.begin(), other.outward.end());
    plain_sum += other.plain_sum;
    over_promise = std::max(over_promise, other.over_promise);
    bound = std::max(bound, other.bound);
    beyond += other.beyond;
  }
};

/// `bound`: what was asked for, absolute.
Errors errors_of(const Problem& p, DType dtype, Op op, const Outcome& outcome, double bound) {
  Errors errors;
  const ConstArray result{outcome.result.data(), p.counts.size(), dtype};
  const double e = outcome.report.operand_bound;
  errors.bound = bound / e;
  for (std::size_t i = 0; i < p.counts.size(); ++i) {
    if (!p.counts[i]) continue;
    const long double exact = exactly(p, op, i);
    const double got = value_at(result, i);
    if (!std::isfinite(got)) {  // where sums may leave the type's range, all is exact, and not measured
      errors.over_promise = std::numeric_limits<double>::max();
      continue;
    }
    const auto error = static_cast<double>(got - exact);
    errors.plain_sum += error / e;
    errors.outward.push_back(static_cast<float>(exact < 0 ? -error / e : error / e));
    const double rounding = ulp_of(dtype, static_cast<double>(exact)) / 2;
    errors.over_promise = std::max(errors.over_promise, (std::abs(error) - rounding) / outcome.report.result_bound);
    if (std::abs(error) - rounding > bound) ++errors.beyond;
  }
  return errors;
}

double scale_of(Op op, int ranks) {
  if (is_extreme(op)) return 1;
  return op == Op::average ? 1 / std::sqrt(ranks) : std::sqrt(ranks);
}

std::vector<double> density_of(const std::vector<float>& errors, double scale) {
  std::vector<double> density(bins, 0);
  const double width = 2 * density_reach / bins;
  for (const float x : errors) {
    const double at = (x / scale + density_reach) / width;
    const auto bin = static_cast<std::size_t>(std::clamp(at, 0.0, static_cast<double>(bins) - 1));
    density[bin] += 1 / (width * static_cast<double>(errors.size()));
  }
  return density;
}

ErrorFigures figures_of(Errors errors, Op op, int ranks) {
  ErrorFigures f;
  f.count = errors.outward.size();
  f.scale = scale_of(op, ranks);
  f.over_promise = errors.over_promise;
  if (f.count == 0) return f;
  const auto n = static_cast<double>(f.count);
  double sum = 0, squares = 0;
  for (const double x : errors.outward) {
    sum += x;
    squares += x * x;
  }
  f.beyond_bound = static_cast<double>(errors.beyond) / n;
  f.bias = sum / n;
  f.plain_mean = errors.plain_sum / n;
  f.rms = std::sqrt(squares / n);
  f.sigma = std::sqrt(std::max(0.0, squares / n - f.bias * f.bias));
  f.density = density_of(errors.outward, f.scale);
  auto& sizes = errors.outward;
  for (float& x : sizes) x = std::abs(x);
  std::sort(sizes.begin(), sizes.end());
  const auto quantile = [&](double share) { return sizes[static_cast<std::size_t>(share * (n - 1))]; };
  f.p50 = quantile(0.5);
  f.p90 = quantile(0.9);
  f.p99 = quantile(0.99);
  f.p999 = quantile(0.999);
  f.max = sizes.back();
  f.exact = static_cast<double>(std::upper_bound(sizes.begin(), sizes.end(), 0.0F) - sizes.begin()) / n;
  const double limit = 2 * error_model::papers_sigma(op, ranks, 1);
  f.within_papers = static_cast<double>(std::upper_bound(sizes.begin(), sizes.end(), limit) - sizes.begin()) / n;
  return f;
}

ErrorRow row_of(const ErrorMode& mode, const std::string& field, Op op, int ranks, Errors errors) {
  ErrorRow row;
  row.mode = mode.name;
  row.codec = find_codec(mode.codec)->name();
  row.field = field;
  row.op = op;
  row.ranks = ranks;
  row.law = error_model::law_of(mode.codec);
  if (mode.framework == Framework::on_grid)
    row.expected_beyond = 1 - error_model::share_within(errors.bound, row.law, op, ranks, 1);
  row.measured = figures_of(std::move(errors), op, ranks);
  row.expected = error_model::expect(row.law, op, ranks, 1);
  row.papers_sigma = error_model::papers_sigma(op, ranks, 1);
  row.expected_within = error_model::share_within(2 * row.papers_sigma, row.law, op, ranks, 1);
  return row;
}

/// The errors of all fields.
using Pool = std::map<std::pair<Op, std::string>, Errors>;

void measure_field(const LoadedField& field, const ErrorBenchOptions& options, int ranks, Pool& pool,
                   ErrorResult& result) {
  const DType dtype = field.field.shape.dtype;
  const Problem problem = make_problem(field, options.bytes, ranks);
  for (const Op op : options.ops) {
    for (const ErrorMode& mode : error_modes()) {
      Options call;
      call.bound = without_fill(options.bound, field);
      call.codec = mode.codec;
      call.framework = mode.framework;
      const Outcome outcome = reduce_by_threads(problem, dtype, op, call);
      if (outcome.report.operand_bound == 0) {
        result.skipped.push_back(
            fmt::format("{} of {} over {} by {}", name_of(op), field.field.name, ranks, mode.name));
        continue;
      }
      const double asked = mode.framework == Framework::on_grid
                               ? outcome.report.operand_bound / share_of_operand(op, call.bound, ranks, 1)
                               : outcome.report.result_bound;
      Errors errors = errors_of(problem, dtype, op, outcome, asked);
      pool[{op, mode.name}].add(errors);
      result.per_field.push_back(row_of(mode, field.field.name, op, ranks, std::move(errors)));
    }
  }
}

}  // namespace

const std::vector<ErrorMode>& error_modes() {
  static const std::vector<ErrorMode> modes{{"laconic", CodecId::slice, Framework::on_grid},
                                            {"zccl", CodecId::fzlight, Framework::stepwise},
                                            {"ccoll", CodecId::szx, Framework::stepwise}};
  return modes;
}

ErrorResult bench_error(const ErrorBenchOptions& options, const std::function<void()>& step) {
  ErrorResult result;
  for (const int ranks : options.ranks) {
    Pool pool;
    for (const LoadedField& field : options.fields) {
      measure_field(field, options, ranks, pool, result);
      step();
    }
    for (const Op op : options.ops)
      for (const ErrorMode& mode : error_modes())
        result.rows.push_back(row_of(mode, "", op, ranks, std::move(pool[{op, mode.name}])));
  }
  return result;
}

}  // namespace laconic::app
