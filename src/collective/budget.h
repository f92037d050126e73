// The error budget: what bound each operand gets so that the result keeps the bound that the user stated.
#pragma once

#include <cstddef>
#include <limits>

#include "codec/codec.h"
#include "codec/grid.h"
#include "collective/options.h"
#include "core/array.h"
#include "core/bound.h"
#include "core/op.h"
#include "core/range.h"

namespace laconic {

/// How a call's data will be coded.
struct Budget {
  Route route = Route::exact;
  Grid grid{};  ///< of every operand; lossless on the exact route
  CodecId codec = CodecId::slice;
  bool reopens = false;  ///< what is forwarded is decompressed and compressed again
  double operand_bound = 0;
  double result_bound = 0;  ///< promised for each element of the result, besides half a unit in its last place
  /// Not 0: some values are larger than this and cannot be on the grid, which has room up to here until it is known
  /// what the others need. Few of them travel as exceptions; many make the exact route cheaper, see outliers.h.
  double outliers_beyond = 0;
  std::size_t sum_chunk = 0;       ///< most bytes of a chunk of a sum with these outliers; 0: as many as others take
  const char* fallback = nullptr;  ///< why a bound that was given is not used; null where it is, or where there is none
};

/// The sum, average, minimum or maximum of `ranks` operands with this common range. E is the user's bound, e an
/// operand's:
///
///   sum      e = E / n, the result is within E            operand scope: e = E, the result is within n E
///   average  e = E,     the result is within E            operand scope: the same
///   min, max e = E,     the result is within E            operand scope: the same
///
/// With k sigmas, where that is more (the result is within n e of a sum, e of an average, for certain, and beyond E as
/// seldom as a normal error is beyond k sigma, if operands err independently; see error_model.h):
///
///   sum      e = E / (k sqrt(n / 3))
///   average  e = E sqrt(3 n) / k
///
/// less what the roundings of the values themselves may add (an ulp or two of the largest magnitude). The route is
/// exact where that leaves nothing, where the bound is lossless, for integers, and where no grid can hold the sum, or
/// share_of_noise() is more than 1.
///
/// `within`: where some values are outliers, the largest magnitude of all others. The grid is theirs.
Budget budget_reduction(Op op, DType dtype, const Bound& bound, int ranks, const Range& range,
                        double within = std::numeric_limits<double>::infinity());

/// How long a sum of noise on the grid is, of its elements' bytes. Only of 16-bit types, whose grids have the digits of
/// f32, that can be more than all.
double share_of_noise(const Grid& grid, int ranks);

/// Data that only moves: e = E whatever the scope. The range may be that of some of the values (moving_range.h):
/// see has_usual_reach(). What lies beyond any grid travels exactly.
Budget budget_movement(DType dtype, const Bound& bound, const Range& range);

/// How large values of moved f32 and f64 may be at no cost: so many times an absolute bound. (Rounding them takes half
/// a percent of an f32's bound, and a grid of 14 bits reaches to its end.) 0: of other types, and beyond the type's
/// end.
double usual_reach(DType dtype, double bound);

/// Whether a grid of moved data has it: where it is twice as far as their range, as far as that is known.
bool has_usual_reach(DType dtype, double bound, const Range& range);

/// Data that only moves, by any codec, compressed at most `encodings` times on its way: e = E / encodings.
Budget budget_movement(const Codec& codec, int encodings, DType dtype, const Bound& bound, const Range& range);

/// A reduction that decompresses, operates and compresses, where at most `encodings` compressions (leaves and partial
/// results) go into one element of the result. E is the user's bound, e that of each compression; r is what rounding
/// the partial sums may add, half an ulp of the largest possible sum for each of ranks - 1:
///
///   sum      e = (E - r) / encodings       operand scope: e = E, the result is within encodings E + r
///   average  e = (n E - r) / encodings     operand scope: e = E, the result is within (encodings E + r) / n
///   min, max e = E / encodings             operand scope: e = E, the result is within encodings E
///   product  operand scope or lossless only; nothing is promised for the result (result_bound is infinite)
///
/// A lossless codec leaves r alone. A lossless bound: e = 0, and r unknown. The route is exact for sums that could
/// overflow on the way and where nothing is left for e, or r alone is more than E.
Budget budget_stepwise(const Codec& codec, int encodings, Op op, DType dtype, const Bound& bound, int ranks,
                       const Range& range);

/// The budget of the exact route in place of `b`, with the reason.
Budget exact_instead(const Budget& b, const char* reason);

/// e of a reduction as above, before roundings, given E.
double share_of_operand(Op op, const Bound& bound, int ranks, double whole);

/// What the bound comes to for data of this range; 0 where every bit is to be kept.
double absolute_bound(DType dtype, const Bound& bound, const Range& range);

/// Distance from |x| to the next larger value of the type; the least positive value for 0, infinity beyond the type.
double ulp_of(DType dtype, double x);

}  // namespace laconic
