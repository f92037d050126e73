#include "collective/error_model.h"

#include <cmath>

namespace laconic::error_model {
namespace {

constexpr int most_exact =
    16;  // summands; beyond, the alternating series loses digits and the normal law has taken over

double normal_below(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

}  // namespace

Law law_of(CodecId codec) {
  if (codec == CodecId::slice) return Law::nearest;
  return codec == CodecId::fzlight ? Law::truncated : Law::unknown;
}

Expectation expect(Law law, Op op, int n, double e) {
  const bool extreme = is_extreme(op);
  const double summands = extreme ? 1 : n;
  const double divisor = op == Op::average ? n : 1;
  Expectation x;
  x.certain = extreme && law == Law::nearest ? e : n * e / divisor;
  if (law == Law::nearest) x.sigma = std::sqrt(summands / 3) * e / divisor;
  if (law == Law::truncated) {
    x.bias = -summands * e / 2 / divisor;
    x.sigma = std::sqrt(summands / 12) * e / divisor;
  }
  return x;
}

double share_within(double limit, Law law, Op op, int n, double e) {
  const int summands = is_extreme(op) ? 1 : n;
  const double scaled = limit * (op == Op::average ? n : 1) / e;  // of the sum of errors, in units of e
  if (law == Law::truncated) return uniform_sum_below(summands, scaled);
  if (law == Law::unknown) return 0;
  const double centre = summands / 2.0;
  return uniform_sum_below(summands, centre + scaled / 2) - uniform_sum_below(summands, centre - scaled / 2);
}

double papers_sigma(Op op, int n, double e) {
  const double sigma = e / 3;
  if (is_extreme(op)) return std::sqrt(2 - (n + 2) / std::exp2(n)) * sigma;
  return op == Op::average ? sigma / std::sqrt(n) : std::sqrt(n) * sigma;
}

// Irwin and Hall's law: the sum over k <= x of (-1)^k C(n, k) (x - k)^n / n!.
double uniform_sum_below(int n, double x) {
  if (x <= 0) return 0;
  if (x >= n) return 1;
  if (n > most_exact) return normal_below((x - n / 2.0) / std::sqrt(n / 12.0));
  if (x > n / 2.0) return 1 - uniform_sum_below(n, n - x);
  double sum = 0;
  for (int k = 0; k <= static_cast<int>(x); ++k) {
    double term = k % 2 == 0 ? 1 : -1;  // C(n, k) (x - k)^n / n! = product of (x - k) / i over those i that remain
    for (int i = 1; i <= n; ++i) term *= x - k;
    for (int i = 1; i <= k; ++i) term /= i;
    for (int i = 1; i <= n - k; ++i) term /= i;
    sum += term;
  }
  return sum;
}

}  // namespace laconic::error_model
