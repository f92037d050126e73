// `laconic bench error`: how the error of a reduction's result is distributed, over ranks that threads play and over
// real fields, beside what the models (collective/error_model.h) expect.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/dataset.h"
#include "collective/error_model.h"
#include "collective/options.h"
#include "core/bound.h"
#include "core/op.h"

namespace laconic::app {

/// Who reduces.
struct ErrorMode {
  const char* name;
  CodecId codec;
  Framework framework;
};
/// laconic (on the grid), zccl (fzlight, step by step), ccoll (szx, step by step).
const std::vector<ErrorMode>& error_modes();

/// Errors in units of e, the bound of one compression. Positive: away from zero.
struct ErrorFigures {
  std::uint64_t count = 0;
  double bias = 0;                             ///< mean
  double plain_mean = 0;                       ///< of the errors with their own sign
  double rms = 0;                              ///< about 0
  double sigma = 0;                            ///< about the mean
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0;  ///< of the magnitudes
  double max = 0;
  double exact = 0;             ///< share of the elements without any error
  double within_papers = 0;     ///< share within 2 sigma of the papers' model
  double over_promise = 0;      ///< largest error (less half an ulp of the result) over what was promised; the largest
                                ///< number there is where a result is not finite, which is not counted elsewhere
  double beyond_bound = 0;      ///< share beyond the bound that was asked for, which one in sigmas allows
  std::vector<double> density;  ///< over [-density_reach, density_reach], bins of the same width; of error / scale
  double scale = 1;             ///< sqrt(n) of a sum, 1 / sqrt(n) of an average, else 1
  [[nodiscard]] bool measured() const { return count > 0 || over_promise > 0; }
};
constexpr double density_reach = 4;

/// One mode, operation and number of ranks.
struct ErrorRow {
  std::string mode, codec, field;  ///< field empty: all fields together
  Op op{};
  int ranks = 0;
  ErrorFigures measured;
  error_model::Law law{};
  error_model::Expectation expected;  ///< in units of e
  double expected_within = 0;         ///< share in the papers' interval that our model expects; 0: no law
  double expected_beyond = 0;         ///< the same of beyond_bound, on the grid
  double papers_sigma = 0;            ///< in units of e
};

struct ErrorBenchOptions {
  std::vector<LoadedField> fields;
  std::size_t bytes = 0;  ///< of each rank's operand
  Bound bound;
  std::vector<int> ranks;
  std::vector<Op> ops;
};

struct ErrorResult {
  std::vector<ErrorRow> rows;        ///< all fields together
  std::vector<ErrorRow> per_field;   ///< each by itself
  std::vector<std::string> skipped;  ///< what took the exact route, and so has no error to measure
};

/// `step` is called after every field. Rank r's operand is the field, repeated, from value 4099 r on.
ErrorResult bench_error(const ErrorBenchOptions& options, const std::function<void()>& step);

}  // namespace laconic::app
