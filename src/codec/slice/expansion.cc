#include "codec/slice/expansion.h"

#include <cmath>
#include <limits>

#include "core/one_nan.h"
#include "core/two_sum.h"

namespace laconic::slice {

void Expansion::add(double v) {
  if (!terms_.empty() && !std::isfinite(terms_.back())) {
    terms_ = {one_nan(terms_.back() + v)};
    return;
  }
  if (!std::isfinite(v)) {
    terms_ = {one_nan(v)};
    return;
  }
  std::vector<double> grown;
  grown.reserve(terms_.size() + 1);
  for (const double t : terms_) {
    const auto [high, low] = two_sum(v, t);
    if (low != 0) grown.push_back(low);
    v = high;
  }
  if (!std::isfinite(v)) grown.clear();
  if (v != 0) grown.push_back(v);
  terms_ = std::move(grown);
}

void Expansion::add(const Expansion& other) {
  for (const double t : other.terms_) add(t);
}

void Expansion::add_product(double a, double b) {
  const double p = a * b;
  add(std::fma(a, b, -p));
  add(p);
}

double Expansion::to_double() const {
  if (terms_.empty()) return 0;
  // From the top: the components do not overlap, so the first inexact step leaves the rounded value and its remainder.
  std::size_t i = terms_.size() - 1;
  double high = terms_[i];
  double low = 0;
  while (i > 0 && low == 0) {
    const auto [h, l] = two_sum(high, terms_[--i]);
    high = h;
    low = l;
  }
  // A tie was broken to even without knowing what follows: let the sign of the rest decide.
  if (i > 0 && low != 0 && std::signbit(low) == std::signbit(terms_[i - 1])) {
    const double twice = low * 2;
    const double moved = high + twice;
    if (moved - high == twice) high = moved;
  }
  return high;
}

double Expansion::to_odd() const {
  const double nearest = to_double();
  if (!std::isfinite(nearest) || terms_.size() < 2) return nearest;
  Expansion rest = *this;
  rest.add(-nearest);
  if (rest.terms_.empty()) return nearest;
  int exponent = 0;
  const double odd = std::ldexp(std::abs(std::frexp(nearest, &exponent)), 53);
  if (std::fmod(odd, 2) == 1) return nearest;
  const bool up = rest.terms_.back() > 0;
  return std::nextafter(nearest,
                        up ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
}

float Expansion::to_float() const { return static_cast<float>(to_odd()); }

}  // namespace laconic::slice
