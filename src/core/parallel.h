// Splits index ranges over threads.
#pragma once

#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <vector>

#include "core/thread.h"

namespace laconic {

/// From so many bytes on, to copy or to look at, threads gain more than it costs to start them.
inline constexpr std::size_t bytes_worth_threads = std::size_t{1} << 20;

/// Calls f(part, first, last) for `parts` contiguous ranges of [0, n), part 0 on the calling thread, as is any that the
/// system has no thread for, and returns when all are done. The first exception of any part is rethrown.
template <class F>
void parallel_ranges(std::size_t n, std::size_t parts, F f) {
  if (parts <= 1) {
    f(std::size_t{0}, std::size_t{0}, n);
    return;
  }
  std::exception_ptr failure;
  std::mutex guard;
  auto one = [&](std::size_t part) {
    try {
      f(part, n * part / parts, n * (part + 1) / parts);
    } catch (...) {
      const std::lock_guard lock(guard);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<Thread> threads;
    threads.reserve(parts - 1);
    for (std::size_t part = 1; part < parts; ++part) {
      try {
        threads.emplace_back([&one, part] { one(part); });
      } catch (const std::system_error&) {
        one(part);
      }
    }
    one(0);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace laconic
