// Exact sums of doubles as expansions of at most 32 terms, in memory that the caller lends. Source: Shewchuk, "Adaptive
// Precision Floating-Point Arithmetic", 1997 (grow-expansion). Step by step what codec/slice/expansion.cc does, which
// has no limit: more terms than 32 take values as unlike as 1e300 and 1e-300 in one sum, and are a fault here.
#pragma once

#include <cmath>
#include <limits>

#include "gpu/elements.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

class Terms {
 public:
  static constexpr int most = 32;
  static constexpr std::uint64_t nan = 0x7FF8000000000000;  ///< the bits of the only one

  /// `memory`: 32 doubles, `stride` apart.
  LACONIC_GPU_FN Terms(double* memory, int stride) : memory_(memory), stride_(stride) {}

  LACONIC_GPU_FN static bool finite(double v) { return (std::bit_cast<std::uint64_t>(v) >> 52 & 0x7FF) != 0x7FF; }
  /// a + b - s exactly, for s = a + b rounded.
  LACONIC_GPU_FN static double rest_of(double a, double b, double s) {
    const bool ordered = std::fabs(a) >= std::fabs(b);  // as core/two_sum.h
    return (ordered ? b : a) - (s - (ordered ? a : b));
  }

  LACONIC_GPU_FN void clear() { n_ = 0; }
  [[nodiscard]] LACONIC_GPU_FN int size() const { return n_; }
  [[nodiscard]] LACONIC_GPU_FN bool overflown() const { return overflown_; }
  LACONIC_GPU_FN double& operator[](int i) { return memory_[i * stride_]; }

  LACONIC_GPU_RARE void add(double v) {
    if (n_ > 0 && !finite((*this)[n_ - 1])) {
      const double sum = (*this)[n_ - 1] + v;
      return become(sum);
    }
    if (!finite(v)) return become(v);
    int kept = 0;
    for (int i = 0; i < n_; ++i) {
      const double t = (*this)[i];
      const double s = v + t;
      const double low = rest_of(v, t, s);
      if (low != 0) (*this)[kept++] = low;
      v = s;
    }
    if (!finite(v)) kept = 0;
    n_ = kept;
    if (v != 0) append(v);
  }
  /// Adds q * step exactly.
  LACONIC_GPU_FN void add_product(double q, double step) {
    const double p = q * step;
    add(std::fma(q, step, -p));
    add(p);
  }
  /// What it becomes when it is written and read again.
  LACONIC_GPU_FN void regrow() {
    const int n = n_;
    n_ = 0;
    for (int i = 0; i < n; ++i) add((*this)[i]);
  }

  /// Rounded once, to nearest.
  LACONIC_GPU_FN double to_double() {
    if (n_ == 0) return 0;
    int i = n_ - 1;
    double high = (*this)[i];
    double low = 0;
    while (i > 0 && low == 0) {
      const double t = (*this)[--i];
      const double s = high + t;
      low = rest_of(high, t, s);
      high = s;
    }
    // A tie was broken to even without knowing what follows: let the sign of the rest decide.
    if (i > 0 && low != 0 && (low < 0) == ((*this)[i - 1] < 0)) {
      const double twice = low * 2;
      const double moved = high + twice;
      if (moved - high == twice) high = moved;
    }
    return high;
  }
  /// Rounded to odd; the terms are used up.
  LACONIC_GPU_FN double to_odd() {
    const double nearest = to_double();
    if (!finite(nearest) || n_ < 2) return nearest;
    add(-nearest);
    if (n_ == 0 || (std::bit_cast<std::uint64_t>(nearest) & 1) != 0) return nearest;
    const double infinity = std::bit_cast<double>(std::uint64_t{0x7FF0000000000000});
    return nextafter(nearest, (*this)[n_ - 1] > 0 ? infinity : -infinity);
  }

 private:
  /// Not finite: one term, and one NaN for all.
  LACONIC_GPU_FN void become(double v) {
    n_ = 0;
    append(v == v ? v : std::bit_cast<double>(nan));
  }
  LACONIC_GPU_FN void append(double v) {
    if (n_ == most) {
      overflown_ = true;
      return;
    }
    (*this)[n_++] = v;
  }

  double* memory_;
  int stride_;
  int n_ = 0;
  bool overflown_ = false;
};

/// Rounds a double (itself rounded to odd) to the element, as one rounding of the exact value. Any NaN is the same one.
template <class T>
LACONIC_GPU_FN typename T::Bits bits_of_odd(double v) {
  if (v != v) return quiet_nan<T>;
  if constexpr (is_double<T>) {
    return T::bits(v);
  } else {
    auto f = static_cast<float>(v);
    if constexpr (!std::is_same_v<T, F32>) {
      const bool is_finite = (std::bit_cast<std::uint32_t>(f) >> 23 & 0xFF) != 0xFF;
      const float infinity = std::bit_cast<float>(0x7F800000U);
      if (is_finite && static_cast<double>(f) != v && (std::bit_cast<std::uint32_t>(f) & 1) == 0)
        f = nextafterf(f, static_cast<double>(f) < v ? infinity : -infinity);
    }
    return T::bits(f);
  }
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
