// What every rank of a measurement learns from all the others.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "transport/transport.h"

namespace laconic::app {

/// Collective: everybody's value, by rank.
template <class T>
std::vector<T> gather_over(Transport& t, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(t.size()));
  t.allgather_small({reinterpret_cast<const std::uint8_t*>(&mine), sizeof(T)},
                    {reinterpret_cast<std::uint8_t*>(all.data()), all.size() * sizeof(T)});
  return all;
}

inline double sum_over(Transport& t, double mine) {
  double sum = 0;
  for (const double v : gather_over(t, mine)) sum += v;
  return sum;
}

inline double max_over(Transport& t, double mine) {
  const auto all = gather_over(t, mine);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace laconic::app
