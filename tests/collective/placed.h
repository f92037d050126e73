// Parts of an array that lie apart: in another order than the ranks', with gaps, some of them empty.
#pragma once

#include <cstddef>
#include <vector>

#include "transport/plain.h"

namespace laconic::placed {

struct Places {
  std::vector<std::size_t> counts, displs;
  std::size_t extent = 0;  ///< of the array, with a gap at its end

  [[nodiscard]] Parts parts() const { return {.counts = counts, .displs = displs}; }
};

/// The last part comes first; before each lies a gap.
inline Places reversed(std::vector<std::size_t> counts) {
  Places p{.counts = std::move(counts), .displs = {}, .extent = 0};
  p.displs.resize(p.counts.size());
  for (std::size_t r = p.counts.size(); r-- > 0;) {
    p.extent += 3 + r % 2;
    p.displs[r] = p.extent;
    p.extent += p.counts[r];
  }
  p.extent += 5;
  return p;
}

/// Of n ranks; every third has nothing.
inline Places uneven(std::size_t n, std::size_t unit) {
  std::vector<std::size_t> counts(n);
  for (std::size_t r = 0; r < n; ++r) counts[r] = (r + 1) % 3 * unit + r % 2;
  return reversed(counts);
}

/// Part r of the array.
template <typename T>
std::vector<T> part(const std::vector<T>& array, const Places& p, std::size_t r) {
  const auto first = array.begin() + static_cast<std::ptrdiff_t>(p.displs[r]);
  return {first, first + static_cast<std::ptrdiff_t>(p.counts[r])};
}

/// The array's elements that belong to no part.
template <typename T>
std::vector<T> gaps(const std::vector<T>& array, const Places& p) {
  std::vector<bool> inside(array.size(), false);
  for (std::size_t r = 0; r < p.counts.size(); ++r)
    for (std::size_t i = 0; i < p.counts[r]; ++i) inside[p.displs[r] + i] = true;
  std::vector<T> all;
  for (std::size_t i = 0; i < array.size(); ++i)
    if (!inside[i]) all.push_back(array[i]);
  return all;
}

}  // namespace laconic::placed
