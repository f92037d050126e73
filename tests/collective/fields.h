// Operands for the tests of collectives: the same on every run, different on every rank, smooth and hostile ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace laconic::testing_fields {

template <typename T>
using Field = std::vector<T>;

/// What a rank brings, by name.
template <typename T>
Field<T> make(const std::string& kind, std::size_t count, int rank) {
  std::mt19937_64 random(static_cast<std::uint64_t>(rank) * 7919 + 17);
  std::normal_distribution<double> normal;
  Field<T> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) * 0.003 + rank;
    if (kind == "smooth") x[i] = static_cast<T>(std::sin(t) + 0.3 * std::cos(7 * t) + 0.001 * normal(random));
    if (kind == "noise") x[i] = static_cast<T>(normal(random));
    if (kind == "constant") x[i] = static_cast<T>(1.5 + rank);
    if (kind == "zero") x[i] = 0;
    if (kind == "offset") x[i] = static_cast<T>(300 + std::sin(t));
    if (kind == "denormal") x[i] = std::numeric_limits<T>::denorm_min() * static_cast<T>(random() % 1000);
    if (kind == "wild") x[i] = static_cast<T>(std::ldexp(normal(random), static_cast<int>(random() % 200) - 100));
    if (kind == "integer") x[i] = static_cast<T>(static_cast<std::int64_t>(random() % 2001) - 1000);
  }
  return x;
}

/// Overwrites some places: every stride-th, starting at `from`.
template <typename T>
void sprinkle(Field<T>& x, std::size_t from, std::size_t stride, T value) {
  for (std::size_t i = from; i < x.size(); i += stride) x[i] = value;
}

}  // namespace laconic::testing_fields
