// What to expect of a result's error beside its certain bound (budget.h): our model, and the one of the published
// designs, to compare with. docs/error-theory.md derives both.
#pragma once

#include <cstdint>

#include "codec/codec.h"
#include "core/op.h"

namespace laconic::error_model {

/// How one compression within e changes a dense value.
enum class Law : std::uint8_t {
  unknown = 0,
  nearest = 1,    ///< to the nearest multiple of 2 e: uniform in [-e, e]. slice
  truncated = 2,  ///< toward zero to a multiple of e: uniform in [0, e] toward zero. fzlight
};
Law law_of(CodecId codec);

/// A result's error. Positive is away from zero.
struct Expectation {
  double bias = 0;     ///< the mean
  double sigma = 0;    ///< the standard deviation
  double certain = 0;  ///< no error is larger, whatever the data
};

/// Of a reduction whose n operands, or their partial results, are compressed n times in all with independent errors (on
/// the grid, and along a ring). Truncation: of values of one sign.
///
///               sum                        average                  min, max
///   nearest     0, sqrt(n/3) e             0, e / sqrt(3 n)         0, e / sqrt(3)
///   truncated   -n e / 2, sqrt(n/12) e     -e / 2, e / sqrt(12 n)   -e / 2, e / sqrt(12)
///   certain     n e                        e                        e; truncated: n e
///
/// A minimum is one of the operands, and what is on the grid once stays there. Law::unknown: certain only.
Expectation expect(Law law, Op op, int n, double e);

/// Share of the errors within +-limit, under the same assumptions.
double share_within(double limit, Law law, Op op, int n, double e);

/// The standard deviation in the papers' model: every compression's error is normal with 3 sigma = e (ZCCL, Theorem 1
/// with its corollaries 1 and 2; Theorem 2 for min and max).
double papers_sigma(Op op, int n, double e);
/// Of the errors, this share lies within 2 papers_sigma(), they say.
constexpr double papers_share = 0.9544;

/// The probability that the sum of n independent values, uniform in [0, 1], is at most x.
double uniform_sum_below(int n, double x);

}  // namespace laconic::error_model
