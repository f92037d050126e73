// Splits index ranges over threads.
#pragma once

#include <atomic>
#include <cstddef>

#include "core/share.h"

namespace laconic {

/// Calls f(part, first, last) for `parts` contiguous ranges of [0, n), which up to as many threads share (share.h), the
/// calling one among them. Returns when all are done. The first exception is rethrown; parts that nobody has begun then
/// may be left out.
template <class F>
void parallel_ranges(std::size_t n, std::size_t parts, F f) {
  std::atomic<std::size_t> taken = 0;
  share_work(parts, [&] {
    for (std::size_t part; (part = taken++) < parts;) f(part, n * part / parts, n * (part + 1) / parts);
  });
}

}  // namespace laconic
