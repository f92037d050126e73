// Has several threads share work. The threads are kept: to start one takes as long as a megabyte takes to encode.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace laconic {

/// Another thread gains more than it costs to have it come where each has so many bytes to encode, decode or copy.
inline constexpr std::size_t bytes_worth_a_thread = std::size_t{256} << 10;

/// How many of so many threads are worth it for so many bytes.
constexpr std::size_t threads_worth(std::size_t bytes, int threads) {
  return std::clamp<std::size_t>(bytes / bytes_worth_a_thread, 1, static_cast<std::size_t>(std::max(threads, 1)));
}

/// Something to call, which outlives who is given it.
struct WorkRef {
  const void* what;
  void (*call)(const void* what);
};

void share_work(std::size_t threads, WorkRef work);

/// Calls work() on this thread and at the same time on up to threads - 1 others, and returns when all have returned.
/// Each call takes parts of the work from where all take them, until no part is left: others begin late, or not at all
/// where this thread's call has returned, or where the system has no thread to give. The first exception is rethrown.
/// Others may run where this thread may (its processors), with signals as a Thread has them.
/// Thread safe, may be called by work() itself, and after fork().
template <class Work>
  requires(!std::is_same_v<Work, WorkRef>)
void share_work(std::size_t threads, const Work& work) {
  if (threads <= 1) return work();
  share_work(threads, WorkRef{&work, [](const void* what) { (*static_cast<const Work*>(what))(); }});
}

}  // namespace laconic
