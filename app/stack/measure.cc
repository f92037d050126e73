#include "stack/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bench/meter.h"
#include "bench/over_ranks.h"
#include "collective/allreduce.h"
#include "collective/operate.h"
#include "exit_code.h"

namespace laconic::app {
namespace {

/// Half a unit in the last place of the result type at x.
template <class T>
long double half_ulp(long double x) {
  const T size = std::fabs(static_cast<T>(x));
  return (static_cast<long double>(std::nextafter(size, std::numeric_limits<T>::infinity())) - size) / 2;
}

/// What lies beyond the type's range is infinite in it; everything else stays as exact as it is.
template <class T>
long double in_range_of(long double x) {
  const T nearest = static_cast<T>(x);
  return std::isinf(nearest) ? nearest : x;
}

/// Compares a mosaic of results with one exact image.
template <class T>
Quality judge(const ImageSet& set, const Mosaic& mosaic, const T* result, const std::vector<ExactSum>& exact,
              double bound) {
  Quality q;
  q.min = HUGE_VAL;
  q.max = -HUGE_VAL;
  const std::size_t rows = exact.size() / set.cols;
  for (std::size_t r = 0; r < rows * mosaic.down; ++r) {
    const ExactSum* truth = exact.data() + r % rows * set.cols;
    for (std::size_t i = 0; i < set.cols * mosaic.across; ++i) {
      const long double x = in_range_of<T>(truth[i % set.cols].value());
      const long double got = *result++;
      if (!std::isfinite(x)) {
        q.violations += std::isnan(x) != std::isnan(got) || (std::isinf(x) && x != got) ? 1 : 0;
        continue;
      }
      const long double error = std::fabs(truth[i % set.cols].error_of(got));
      if (!(error <= bound) && !(error <= bound + half_ulp<T>(x))) ++q.violations;
      q.max_error = std::max(q.max_error, static_cast<double>(error));
      q.sum_squares += error * error;
      q.min = std::min(q.min, static_cast<double>(x));
      q.max = std::max(q.max, static_cast<double>(x));
      ++q.compared;
    }
  }
  if (q.compared == 0) q.min = q.max = 0;
  return q;
}

/// The experiment of one rank, in steps.
class Experiment {
 public:
  Experiment(const StackOptions& options, const ImageSet& set, Communicator& comm, const PlainAllreduce& plain,
             const std::function<void()>& step)
      : options_(options),
        set_(set),
        comm_(comm),
        plain_(plain),
        step_(step),
        t_(comm.transport()),
        op_(parse_op(options.op)) {
    if (op_ != Op::sum && op_ != Op::average)
      throw Failure(Exit::usage, fmt::format("--op {}: only sum and average stack images", options.op));
    if (options.repetitions < 1 || options.repetitions > 10000)
      throw Failure(Exit::usage, fmt::format("--repetitions {} is not between 1 and 10000", options.repetitions));
    result_.link_rate = parse_link_rate(options.link);
    mosaic_ = choose_mosaic(set, parse_size(options.size));
    operand_ = lay_mosaic(set, share_of_rank(set, t_.rank(), t_.size(), op_), mosaic_);
    plain_result_.resize(operand_.size());
    laconic_result_.resize(operand_.size());
    laconic_options_.bound = Bound::parse(options.bound);
    if (laconic_options_.bound.kind == BoundKind::ratio)
      throw Failure(Exit::usage,
                    fmt::format("--bound {}: promises nothing that the sum could be held against", options.bound));
    laconic_options_.mode = laconic::Mode::compressed;
    laconic_options_.threads = checked_threads(options.threads);
  }

  StackResult run() {
    require_alike();
    time_both();
    describe();
    break_down();
    judge_both();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t count() const { return operand_.size() / size_of(set_.dtype); }

  /// Every rank reads all images. Ranks that differ would crash or wait for ever.
  void require_alike() {
    require_same_count(t_, count());
    require_same_words(t_, fmt::format("{} {} {}", options_.op, options_.bound, options_.repetitions));
    require_same_words(t_,
                       fmt::format("{} {} {} {} {} {}", name_of(set_.dtype), set_.images, set_.slabs, set_.rows,
                                   set_.cols, mosaic_.across),
                       "has images of another shape");
    require_same_bytes(t_, set_.bytes, "read other files");
  }

  void time_both() {
    const ConstArray send{operand_.data(), count(), set_.dtype};
    Meter plain(t_, options_.interface);
    Meter laconic(t_, options_.interface);
    for (int r = -1; r < options_.repetitions; ++r) {
      if (r == 0) comm_.reset_total();
      plain.call([&] { plain_.run(send, {plain_result_.data(), count(), set_.dtype}, op_); }, r >= 0);
      laconic.call(
          [&] { allreduce(send, {laconic_result_.data(), count(), set_.dtype}, op_, comm_, laconic_options_); },
          r >= 0);
      step_();
    }
    keep(plain, result_.plain);
    keep(laconic, result_.laconic);
  }

  static void keep(const Meter& meter, Side& side) {
    side.seconds = meter.seconds();
    side.fastest = meter.fastest();
    side.slowest = meter.slowest();
    side.wire_bytes = meter.wire_bytes();
  }

  void describe() {
    result_.plain_name = plain_.name;
    result_.transport = t_.description();
    result_.ranks = t_.size();
    result_.set = set_.name;
    result_.op = name_of(op_);
    result_.bound = laconic_options_.bound.to_string();
    result_.images = set_.images;
    result_.rows = set_.slabs * set_.rows * mosaic_.down;
    result_.cols = set_.cols * mosaic_.across;
    result_.raw_bytes = operand_.size();
  }

  void break_down() {
    const auto& total = comm_.total();
    const double calls = options_.repetitions;
    const double ranks = t_.size();
    result_.absolute_bound = comm_.last().result_bound;
    result_.payload_bytes = sum_over(t_, static_cast<double>(total.wire_bytes)) / calls;
    result_.payload_bytes_busiest = max_over(t_, static_cast<double>(total.wire_bytes)) / calls;
    result_.uncompressed_bytes = sum_over(t_, static_cast<double>(total.original_bytes)) / calls;
    result_.codec = sum_over(t_, total.codec_seconds) / calls / ranks;
    result_.wire = sum_over(t_, total.wire_seconds) / calls / ranks;
    result_.compute = sum_over(t_, total.compute_seconds) / calls / ranks;
    result_.other = sum_over(t_, total.other_seconds) / calls / ranks;
  }

  void judge_both() {
    result_.plain.identical = identical_everywhere(t_, plain_result_);
    result_.laconic.identical = identical_everywhere(t_, laconic_result_);
    if (t_.rank() != 0) return;
    const std::vector<ExactSum> exact = exact_stack(set_, t_.size(), op_);
    const auto judge_one = [&](const std::vector<std::uint8_t>& bytes) {
      return set_.dtype == DType::f64
                 ? judge(set_, mosaic_, reinterpret_cast<const double*>(bytes.data()), exact, result_.absolute_bound)
                 : judge(set_, mosaic_, reinterpret_cast<const float*>(bytes.data()), exact, result_.absolute_bound);
    };
    result_.plain.quality = judge_one(plain_result_);
    result_.laconic.quality = judge_one(laconic_result_);
    keep_picture(exact);
  }

  /// The first tile: copies differ in nothing.
  void keep_picture(const std::vector<ExactSum>& exact) {
    const ConstArray all{laconic_result_.data(), count(), set_.dtype};
    const std::size_t rows = exact.size() / set_.cols;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < set_.cols; ++c)
        result_.picture.push_back(value_at(all, r * set_.cols * mosaic_.across + c));
    for (const ExactSum& s : exact) result_.exact.push_back(static_cast<double>(s.value()));
  }

  const StackOptions& options_;
  const ImageSet& set_;
  Communicator& comm_;
  const PlainAllreduce& plain_;
  const std::function<void()>& step_;
  Transport& t_;
  Op op_;
  Mosaic mosaic_;
  std::vector<std::uint8_t> operand_, plain_result_, laconic_result_;
  Options laconic_options_;
  StackResult result_;
};

/// Reduce-scatter and allgather around a ring, values uncompressed.
void plain_ring(Transport& t, ConstArray send, MutArray recv, Op op) {
  const auto n = static_cast<std::size_t>(t.size());
  const auto me = static_cast<std::size_t>(t.rank());
  const std::size_t element = size_of(send.dtype);
  auto* data = static_cast<std::uint8_t*>(recv.data);
  if (send.count > 0) std::memcpy(data, send.data, send.bytes());
  const auto begin = [&](std::size_t block) { return send.count * (block % n) / n; };
  const auto size = [&](std::size_t block) { return send.count * (block % n + 1) / n - begin(block); };
  std::vector<std::uint8_t> arrived((send.count / n + 1) * element);
  const int next = static_cast<int>((me + 1) % n);
  const int previous = static_cast<int>((me + n - 1) % n);
  for (std::size_t step = 0; step < 2 * (n - 1); ++step) {
    const bool reducing = step + 1 < n;
    const std::size_t out = me + 3 * n - step;
    const std::size_t in = out - 1;
    std::uint8_t* home = data + begin(in) * element;
    Request r = t.irecv({reducing ? arrived.data() : home, size(in) * element}, previous, 0);
    Request s = t.isend({data + begin(out) * element, size(out) * element}, next, 0);
    r.wait();
    s.wait();
    if (!reducing) continue;
    operate(Op::sum, {home, size(in), send.dtype}, {arrived.data(), size(in), send.dtype});
  }
  if (op == Op::average) divide(recv, t.size());
}

}  // namespace

StackResult measure_stack(const StackOptions& options, const ImageSet& set, Communicator& comm,
                          const PlainAllreduce& plain, const std::function<void()>& step) {
  return Experiment(options, set, comm, plain, step).run();
}

PlainAllreduce ring_baseline(Transport& transport) {
  return {"plain ring, " + transport.description(),
          [&transport](ConstArray send, MutArray recv, Op op) { plain_ring(transport, send, recv, op); }};
}

}  // namespace laconic::app
