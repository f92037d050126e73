#include "collective/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/common_log2.h"

namespace laconic {
namespace {

constexpr const char* finer = "bound is finer than the values' own rounding";

struct Precision {
  int digits;        ///< of the significand, the hidden one included
  int min_exponent;  ///< of the ulp of the smallest normal value
  double largest;
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {53, -1074, std::numeric_limits<double>::max()};
    case DType::f16:
      return {11, -24, 65504.0};
    case DType::bf16:
      return {8, -133, 0x1.fep127};
    default:
      return {24, -149, static_cast<double>(std::numeric_limits<float>::max())};
  }
}

/// Then nothing is promised of the error.
bool keeps_ratio(const Codec& codec, DType dtype, const Bound& bound) {
  return bound.is_ratio_of(dtype) && codec.promise() != Promise::lossless;
}

Budget lossless(DType dtype, const char* fallback = nullptr) {
  Budget b;
  b.grid = make_grid(dtype, 0, 0);
  b.fallback = fallback;
  return b;
}

/// The absolute bound for the whole, or 0 with the reason why there is none.
struct Whole {
  double bound;
  const char* reason;
};
Whole whole_of(DType dtype, const Bound& bound, const Range& range) {
  if (bound.kind == BoundKind::lossless) return {0, nullptr};
  if (!is_float(dtype)) return {0, "integers are exact"};
  const double whole = bound.absolute_for(range.width());
  if (!std::isfinite(whole)) return {0, "range overflows"};
  return {whole, whole > 0 ? nullptr : "all values are equal"};
}

/// The furthest that a value on the grid can lie from its point q * step, as the encoder finds q: by rounding
/// x * inverse to the nearest integer, where the inverse is not quite 1 / step. (Its check of |x - value| <= bound is
/// of the rounded value; a sum is taken of points.)
double furthest_from_point(const Grid& grid, double max_abs) {
  const double inverse =
      grid.dtype == DType::f64 ? 1 / grid.step : static_cast<double>(static_cast<float>(1 / grid.step));
  const double slant = std::abs(std::fma(inverse, grid.step, -1.0));
  const double largest_q = std::min(max_abs / grid.step + 1, std::ldexp(1.0, grid.qbits));
  return grid.step * (0.5 + largest_q * slant) * (1 + 0x1p-40);
}

/// A grid of operands, or why there is none.
struct OperandGrid {
  Grid grid{};
  const char* none = nullptr;
};

/// That keeps e for operands up to `largest`.
OperandGrid grid_of_operands(Op op, DType dtype, double e, double largest) {
  // Dividing by the number of ranks happens to the step, and rounds it.
  const double division = op == Op::average ? largest * (dtype == DType::f64 ? 0x1p-51 : 0x1p-50) : 0;
  if (division >= e / 2) return {{}, finer};
  double target = e - division;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const Grid grid = make_grid(dtype, target, largest);
    if (grid.lossless()) return {{}, finer};
    const double furthest = furthest_from_point(grid, largest) + division;
    if (furthest <= e) return {grid};
    target *= e / furthest * (1 - 0x1p-10);
  }
  return {{}, "no grid keeps the bound"};
}

/// Values up to this find their integer on the grid.
double reach_of(const Grid& grid) { return grid.step * (std::ldexp(1.0, grid.qbits) - 1); }

/// Integers of operands have fewer bits than this where so many can be added.
int most_qbits(DType dtype, int ranks) {
  Grid widest{.dtype = dtype, .step = 1, .qbits = dtype == DType::f64 ? 50 : 22};
  while (widest.qbits > 0 && !sum_fits(widest, static_cast<std::uint64_t>(ranks))) --widest.qbits;
  return widest.qbits;
}

/// Whether operands up to this are on the grid that is made for them, and so is their sum.
bool holds(const OperandGrid& made, double largest, int ranks) {
  return largest <= reach_of(made.grid) && sum_fits(made.grid, static_cast<std::uint64_t>(ranks));
}

/// The largest operands of which that can be said; 0: of none. The larger they are, the smaller the step, but for what
/// a good inverse takes.
double furthest_reach(Op op, DType dtype, double e, int ranks) {
  double low = 0, high = std::ldexp(2 * e, most_qbits(dtype, ranks));
  for (int i = 0; i < 8; ++i) {
    const double middle = (low + high) / 2;
    (holds(grid_of_operands(op, dtype, e, middle), middle, ranks) ? low : high) = middle;
  }
  return low * (1 - 0x1p-5);
}

}  // namespace

double ulp_of(DType dtype, double x) {
  const Precision p = precision_of(dtype);
  if (!(std::abs(x) <= p.largest)) return std::numeric_limits<double>::infinity();
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, x == 0 ? p.min_exponent : std::max(exponent - p.digits, p.min_exponent));
}

double share_of_noise(const Grid& grid, int ranks) {
  return (grid.qbits + 1 + common_log2(ranks) / 2) / (8 * static_cast<double>(size_of(grid.dtype)));
}

double share_of_operand(Op op, const Bound& bound, int ranks, double whole) {
  if (bound.scope == BoundScope::operand || (op != Op::sum && op != Op::average)) return whole;
  const double sum = op == Op::sum ? whole : whole * ranks;
  const double certain = op == Op::sum ? whole / ranks : whole;
  if (bound.scope != BoundScope::sigmas) return certain;
  return std::max(sum / (bound.sigmas * std::sqrt(ranks / 3.0)), certain);
}

Budget budget_reduction(Op op, DType dtype, const Bound& bound, int ranks, const Range& range, double within) {
  if (is_extreme(op)) return budget_movement(dtype, bound, range);  // one of the operands is the result
  const auto [whole, none] = whole_of(dtype, bound, range);
  if (whole == 0) return lossless(dtype, none);
  const double share = share_of_operand(op, bound, ranks, whole);
  const double e = std::nextafter(share, 0.0);
  // A sum near the end of the type may only become infinite where the exact one does, and its average never.
  if (range.max_abs() * ranks > precision_of(dtype).largest / 2) return lossless(dtype, "sum would overflow");

  Budget b;
  const double largest = range.max_abs();
  OperandGrid operands = grid_of_operands(op, dtype, e, std::min(largest, within));
  const bool too_fine = operands.none != nullptr && largest < std::ldexp(2 * e, most_qbits(dtype, 1));
  if (too_fine) return lossless(dtype, operands.none);
  if (!holds(operands, largest, ranks)) {
    if (op == Op::average && dtype == DType::f64) return lossless(dtype, "averages of outliers would be rounded twice");
    b.outliers_beyond = furthest_reach(op, dtype, e, ranks);
    if (b.outliers_beyond == 0) return lossless(dtype, operands.none ? operands.none : "no grid holds the sum");
    if (within > b.outliers_beyond) operands = grid_of_operands(op, dtype, e, b.outliers_beyond);
    if (operands.none != nullptr) return lossless(dtype, operands.none);
  }
  if (share_of_noise(operands.grid, ranks) > 1)
    return lossless(dtype, "on a grid the sum would be longer than its values");
  b.grid = operands.grid;
  b.route = Route::on_grid;
  b.operand_bound = b.grid.bound;
  b.result_bound = op == Op::average ? share : bound.scope == BoundScope::result ? whole : share * ranks;
  return b;
}

double usual_reach(DType dtype, double bound) {
  if (dtype != DType::f32 && dtype != DType::f64) return 0;
  const double reach = 0x1p15 * 0.99 * bound;
  return reach < precision_of(dtype).largest ? reach : 0;
}

bool has_usual_reach(DType dtype, double bound, const Range& range) {
  return 2 * range.max_abs() <= usual_reach(dtype, bound);
}

Budget budget_movement(DType dtype, const Bound& bound, const Range& range) {
  const auto [whole, none] = whole_of(dtype, bound, range);
  if (whole == 0) return lossless(dtype, none);
  Budget b;
  const bool usual = has_usual_reach(dtype, whole, range);
  b.grid = make_grid(dtype, whole, usual ? usual_reach(dtype, whole) : range.max_abs());
  if (b.grid.lossless()) return lossless(dtype, finer);
  b.route = Route::on_grid;
  b.operand_bound = whole;
  b.result_bound = whole;
  return b;
}

Budget budget_movement(const Codec& codec, int encodings, DType dtype, const Bound& bound, const Range& range) {
  Budget b;
  if (keeps_ratio(codec, dtype, bound)) {
    b.grid = rate_grid(dtype, bound.value, BeyondRatio::lossless);
    b.route = Route::on_grid;
    b.operand_bound = b.result_bound = std::numeric_limits<double>::infinity();
  } else if (codec.promise() == Promise::lossless) {
    b = lossless(dtype);
  } else {
    Bound each = bound;
    if (encodings > 1 && bound.kind != BoundKind::lossless) {
      const auto [whole, none] = whole_of(dtype, bound, range);
      each.kind = BoundKind::absolute;
      each.value = whole / encodings * (1 - 0x1p-20);
      if (whole == 0) each = {};
    }
    b = budget_movement(dtype, each, range);
    b.result_bound = b.grid.lossless() ? 0 : b.operand_bound * encodings;
  }
  b.codec = codec.id();
  return b;
}

Budget budget_stepwise(const Codec& codec, int encodings, Op op, DType dtype, const Bound& bound, int ranks,
                       const Range& range) {
  Budget b;
  b.codec = codec.id();
  b.route = Route::stepwise;
  b.result_bound = std::numeric_limits<double>::infinity();
  if (keeps_ratio(codec, dtype, bound)) {
    b.grid = rate_grid(dtype, bound.value, BeyondRatio::lossless);
    b.operand_bound = b.result_bound;
    return b;
  }
  const bool sums = op == Op::sum || op == Op::average;
  const auto [whole, none] = whole_of(dtype, bound, range);
  b.grid = make_grid(dtype, 0, 0);
  // What the scan did not look at (lossless bounds) is added as plain MPI adds it.
  const double largest = range.max_abs() * (sums ? ranks : 1);
  const double rounding = sums && is_float(dtype) ? (ranks - 1) * ulp_of(dtype, largest + whole) / 2 : 0;
  if (whole != 0 && sums && largest > precision_of(dtype).largest / 2) return lossless(dtype, "sum would overflow");
  const double shares = op == Op::average ? ranks : 1;
  const bool operand = bound.scope == BoundScope::operand;
  if (bound.kind != BoundKind::lossless && !operand && rounding > whole * shares)
    return lossless(dtype, none ? none : finer);
  if (whole == 0 || codec.promise() == Promise::lossless) {
    if (whole == 0) b.fallback = none;
    // Without a bound nobody has looked how large the values are.
    const bool unknown = sums && is_float(dtype) && bound.kind == BoundKind::lossless;
    const bool rounds_alone = op == Op::product && is_float(dtype);  // by how much depends on the factors
    if (!rounds_alone && !unknown) b.result_bound = rounding / shares;
    return b;
  }
  const double e = operand ? whole : (whole * shares - rounding) / encodings * (1 - 0x1p-20);
  // A product may be of any size.
  const double reach = op == Op::product ? std::numeric_limits<double>::infinity() : largest + std::abs(e) * encodings;
  if (e > 0) b.grid = make_grid(dtype, e, reach);
  if (b.grid.lossless() && sums) return lossless(dtype, finer);
  b.operand_bound = b.grid.bound;
  if (op != Op::product) b.result_bound = operand ? (whole * encodings + rounding) / shares : whole;
  return b;
}

double absolute_bound(DType dtype, const Bound& bound, const Range& range) {
  return whole_of(dtype, bound, range).bound;
}

Budget exact_instead(const Budget& b, const char* reason) { return lossless(b.grid.dtype, reason); }

}  // namespace laconic
