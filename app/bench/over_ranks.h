// What every rank of a measurement learns from all the others.
#pragma once

#include <algorithm>

#include "transport/transport.h"

namespace laconic::app {

inline double sum_over(Transport& t, double mine) {
  double sum = 0;
  for (const double v : allgather_value(t, mine)) sum += v;
  return sum;
}

inline double max_over(Transport& t, double mine) {
  const auto all = allgather_value(t, mine);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace laconic::app
