// Operands for the tests of collectives: the same on every run, different on every rank, smooth and hostile ones.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace laconic::testing_fields {

template <typename T>
using Field = std::vector<T>;

/// What a rank brings, by name. Of float, double, std::int32_t, std::int64_t.
template <typename T>
Field<T> make(const std::string& kind, std::size_t count, int rank);

/// Overwrites some places: every stride-th, starting at `from`.
template <typename T>
void sprinkle(Field<T>& x, std::size_t from, std::size_t stride, T value) {
  for (std::size_t i = from; i < x.size(); i += stride) x[i] = value;
}

template <typename T>
using Operands = std::vector<Field<T>>;

/// What all ranks bring.
template <typename T>
Operands<T> operands_of(const std::string& kind, std::size_t count, int ranks) {
  Operands<T> all;
  for (int r = 0; r < ranks; ++r) all.push_back(make<T>(kind, count, r));
  return all;
}

/// Smooth, of two ranks and more, with everything in it that cannot be on a grid; some of that in bursts, so that here
/// and there, depending on where blocks begin, a block is stored losslessly. Not so much of it that sums leave the
/// grid.
template <typename T>
Operands<T> hostile(std::size_t count, int ranks) {
  auto all = operands_of<T>("smooth", count, ranks);
  sprinkle(all[0], 3, 301, std::numeric_limits<T>::quiet_NaN());
  sprinkle(all[1], 7, 211, std::numeric_limits<T>::infinity());
  sprinkle(all[0], 7, 422, -std::numeric_limits<T>::infinity());
  sprinkle(all[0], 8, 211, -std::numeric_limits<T>::infinity());
  for (std::size_t i = 900; i < count; i += i % 900 < 45 ? 1 : 856) {
    all[1][i] = static_cast<T>(1e30 + 1e27 * static_cast<double>(i));
  }
  for (auto& x : all) sprinkle(x, 9, 53, static_cast<T>(-1e30));
  return all;
}

}  // namespace laconic::testing_fields
