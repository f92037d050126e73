// What the tests of movement have in common.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "collective/communicator.h"

namespace laconic::moved {

inline Options with(const char* bound, std::size_t segment = 0) {
  Options o;
  o.bound = Bound::parse(bound);
  o.segment_values = segment;
  return o;
}

/// Each element within the bound of what was sent; what is not finite, and everything for bound 0, bit for bit.
template <typename T>
void expect_within(const std::vector<T>& got, const std::vector<T>& sent, double bound) {
  ASSERT_EQ(got.size(), sent.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool bits = bound == 0 || !std::isfinite(static_cast<double>(sent[i]));
    if (bits) {
      ASSERT_EQ(std::memcmp(&got[i], &sent[i], sizeof(T)), 0) << "element " << i << ": " << got[i] << ", " << sent[i];
    } else {
      ASSERT_LE(std::abs(static_cast<double>(got[i]) - static_cast<double>(sent[i])), bound) << "element " << i;
    }
  }
}

template <typename T>
std::vector<T> joined(const std::vector<std::vector<T>>& parts) {
  std::vector<T> all;
  for (const auto& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}

template <typename T>
std::vector<std::size_t> counts_of(const std::vector<std::vector<T>>& parts) {
  std::vector<std::size_t> counts;
  for (const auto& p : parts) counts.push_back(p.size());
  return counts;
}

}  // namespace laconic::moved
