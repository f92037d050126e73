// The error that a user allows, as text and as a value; and how it becomes the absolute bound of one operand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace laconic {

/// What the number of a Bound means.
enum class BoundKind : std::uint8_t {
  lossless = 0,
  absolute = 1,  ///< |error| <= value
  relative = 2,  ///< |error| <= value * (max - min of the finite input values, over all ranks)
  psnr = 3,      ///< |error| <= sqrt(3) * range * 10^(-value / 20): spread evenly, a PSNR of `value` dB, peak = range
  ratio = 4,     ///< fixed ratio; the error is reported, not promised
};

/// Whom the bound is promised to.
enum class BoundScope : std::uint8_t {
  result = 0,   ///< each element of the result (default)
  operand = 1,  ///< each operand, as the papers state theirs
  sigmas = 2,   ///< the result's elements, but for errors beyond so many standard deviations; see budget.h
};

/// Text form, everywhere (environment, command line, API): `1e-3`, `1e-4rel`, `80dB`, `lossless`, `10x`, each
/// optionally preceded by `operand:` or, with any number from 2 on, `6sigma:`. `0` means lossless.
struct Bound {
  BoundKind kind = BoundKind::lossless;
  BoundScope scope = BoundScope::result;
  double value = 0;
  double sigmas = 0;  ///< of that scope, else 0

  /// Throws Error(invalid_argument) whose text shows the input and the position that is wrong.
  static Bound parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;

  /// Whether arrays of this type get a ratio in place of a bound: integers stay exact.
  [[nodiscard]] bool is_ratio_of(DType dtype) const { return kind == BoundKind::ratio && is_float(dtype); }

  [[nodiscard]] bool needs_range() const { return kind == BoundKind::relative || kind == BoundKind::psnr; }

  /// The absolute bound this stands for, given range = max - min of the finite values (0 where there are none). 0 means
  /// lossless. Throws Error(unsupported) for `ratio`.
  [[nodiscard]] double absolute_for(double range) const;

  friend bool operator==(const Bound&, const Bound&) = default;
};

}  // namespace laconic
