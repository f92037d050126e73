// What every rank of a measurement learns from all the others.
#pragma once

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "exit_code.h"
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

/// Throws Failure(bad_data) on every rank, before a plain library is called with what does not fit together, where
/// ranks have different numbers of values.
inline void require_same_count(Transport& t, std::uint64_t mine) {
  const auto all = allgather_value(t, mine);
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      throw Failure(Exit::bad_data, fmt::format("rank {} has {} values, rank 0 {}", r, all[r], all[0]));
}

/// The same where bytes are not those of rank 0.
inline void require_same_bytes(Transport& t, std::span<const std::uint8_t> mine, const char* what) {
  const auto all = allgather_value(t, static_cast<std::uint32_t>(::crc32_z(0, mine.data(), mine.size())));
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) throw Failure(Exit::bad_data, fmt::format("rank {} {} than rank 0", r, what));
}

inline void require_same_words(Transport& t, const std::string& mine, const char* what = "was given other options") {
  require_same_bytes(t, {reinterpret_cast<const std::uint8_t*>(mine.data()), mine.size()}, what);
}

}  // namespace laconic::app
