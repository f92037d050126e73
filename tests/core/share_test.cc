#include "core/share.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "support/sanitized.h"

namespace laconic::share_test {
namespace {

/// Shares work that ends when so many threads are at it; returns how many were.
std::size_t gathered(std::size_t threads) {
  std::atomic<std::size_t> inside = 0;
  share_work(threads, [&] {
    ++inside;
    while (inside < threads) std::this_thread::yield();
  });
  return inside;
}

TEST(ShareWork, BringsAsManyThreadsAsAreAskedFor) {
  for (const std::size_t threads : {1, 2, 5, 2, 7}) EXPECT_EQ(gathered(threads), threads);
}

TEST(ShareWork, ReturnsWhenAllHaveReturned) {
  for (int i = 0; i < 2000; ++i) {
    std::atomic<int> begun = 0, ended = 0;
    share_work(3, [&] {
      ++begun;
      ++ended;
    });
    ASSERT_GE(begun, 1);
    ASSERT_EQ(begun, ended);
  }
}

TEST(ShareWork, IsSafeFromManyThreadsAndWithinItself) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&wrong] {
      for (int i = 0; i < 300; ++i) {
        std::vector<int> times(100);
        parallel_ranges(times.size(), 4, [&](std::size_t, std::size_t first, std::size_t last) {
          parallel_ranges(last - first, 2, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t k = from; k < to; ++k) ++times[first + k];
          });
        });
        if (times != std::vector(100, 1)) ++wrong;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ShareWork, RethrowsWhatAnyThreadThrows) {
  for (const bool on_caller : {true, false}) {
    std::atomic<std::size_t> inside = 0;
    const auto caller = std::this_thread::get_id();
    const auto work = [&] {
      ++inside;
      while (inside < 3) std::this_thread::yield();
      if ((std::this_thread::get_id() == caller) == on_caller) throw std::runtime_error("mine");
    };
    EXPECT_THROW(share_work(3, work), std::runtime_error);
  }
  EXPECT_EQ(gathered(3), 3U);
}

TEST(ShareWork, WorksInAForkedProcess) {
  if (test::thread_sanitized) GTEST_SKIP() << "ThreadSanitizer lets no forked process of several threads start any";
  ASSERT_EQ(gathered(3), 3U);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(gathered(4) == 4 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(gathered(4), 4U);
}

/// Processors that each of so many threads may run on.
std::set<std::vector<int>> processors_of(std::size_t threads) {
  std::atomic<std::size_t> inside = 0;
  std::mutex guard;
  std::set<std::vector<int>> all;
  share_work(threads, [&] {
    ++inside;
    while (inside < threads) std::this_thread::yield();
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    std::vector<int> processors;
    for (int p = 0; p < CPU_SETSIZE; ++p)
      if (CPU_ISSET(p, &set)) processors.push_back(p);
    const std::lock_guard lock(guard);
    all.insert(processors);
  });
  return all;
}

TEST(ShareWork, RunsWhereTheCallerMay) {
  cpu_set_t usual;
  ASSERT_EQ(sched_getaffinity(0, sizeof usual, &usual), 0);
  if (CPU_COUNT(&usual) < 2) GTEST_SKIP() << "one processor";
  const auto before = processors_of(3);
  EXPECT_EQ(before.size(), 1U);
  int one = 0;
  while (!CPU_ISSET(one, &usual)) ++one;
  cpu_set_t single;
  CPU_ZERO(&single);
  CPU_SET(one, &single);
  ASSERT_EQ(sched_setaffinity(0, sizeof single, &single), 0);
  EXPECT_EQ(processors_of(3), std::set{std::vector{one}});
  ASSERT_EQ(sched_setaffinity(0, sizeof usual, &usual), 0);
  EXPECT_EQ(processors_of(3), before);
}

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

/// One that has been waited for is listed for another moment.
bool threads_become(std::size_t n) {
  for (int tries = 0; tries < 2000 && threads_of_this_process() != n; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return threads_of_this_process() == n;
}

// A plugin that a program closes must leave no thread behind that would run in what is no longer there.
TEST(ShareWork, LeavesNoThreadsBehindWhereItsLibraryIsUnloaded) {
  gathered(2);  // with the second thread a sanitizer starts one of its own
  const std::size_t before = threads_of_this_process();
  for (int i = 0; i < 3; ++i) {
    void* const plugin = dlopen(LACONIC_SHARE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(plugin, nullptr) << dlerror();
    const auto gather = reinterpret_cast<std::size_t (*)(std::size_t)>(dlsym(plugin, "plugin_gathered"));
    ASSERT_NE(gather, nullptr);
    EXPECT_EQ(gather(4), 4U);
    EXPECT_EQ(threads_of_this_process(), before + 3);
    ASSERT_EQ(dlclose(plugin), 0);
    ASSERT_EQ(dlopen(LACONIC_SHARE_PLUGIN, RTLD_NOW | RTLD_NOLOAD), nullptr) << "it is still there";
    EXPECT_TRUE(threads_become(before));
  }
}

}  // namespace
}  // namespace laconic::share_test
