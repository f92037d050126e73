#include "core/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "core/of_thread.h"
#include "core/share.h"
#include "core/worker.h"

namespace laconic::thread_test {
namespace {

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

TEST(Thread, LeavesSignalsToTheProgramsThreads) {
  bool one = false, fault = true, part = false;
  {
    Worker worker;
    worker.submit([&] {
      one = is_blocked(SIGUSR1) && is_blocked(SIGALRM) && is_blocked(SIGPROF) && is_blocked(SIGTERM);
      fault = is_blocked(SIGSEGV);
    });
  }
  EXPECT_TRUE(one);
  EXPECT_FALSE(fault) << "a program's handler for pages that it watches is not asked";
  std::atomic<int> inside = 0;
  share_work(2, [&, caller = pthread_self()] {
    for (++inside; inside < 2;) std::this_thread::yield();
    if (pthread_equal(caller, pthread_self()) == 0) part = is_blocked(SIGUSR1);
  });
  EXPECT_TRUE(part);
  EXPECT_FALSE(is_blocked(SIGUSR1)) << "the caller's own are as they were";
}

struct Counted {
  static inline int made = 0, destroyed = 0;
  int value = 5;
  Counted() { ++made; }
  ~Counted() { ++destroyed; }
};

Counted& counted() {
  thread_local OfThread<Counted> own;
  return own.get();
}

/// Asks for it when the thread ends.
struct Asking {
  ~Asking() { EXPECT_EQ(counted().value, 5); }
};

TEST(OfThread, IsMadeAgainForDestructorsThatRunLater) {
  std::thread([] {
    thread_local const Asking last;  // made before, so destroyed behind it
    static_cast<void>(last);
    counted().value = 7;
    EXPECT_EQ(counted().value, 7);
    EXPECT_EQ(Counted::made, 1);
  }).join();
  EXPECT_EQ(Counted::made, 2);
  EXPECT_EQ(Counted::destroyed, 2);
}

TEST(Thread, HasStackEnoughWhereTheProgramsLimitIsSmall) {
  pthread_attr_t before, small;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 128 << 10);  // what glibc makes of ulimit -s 128
  ASSERT_EQ(pthread_setattr_default_np(&small), 0);
  std::size_t stack = 0;
  Thread([&] {
    pthread_attr_t own;
    pthread_getattr_np(pthread_self(), &own);
    pthread_attr_getstacksize(&own, &stack);
    pthread_attr_destroy(&own);
  }).join();
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&small);
  pthread_attr_destroy(&before);
  EXPECT_GE(stack, std::size_t{1} << 20);
}

}  // namespace
}  // namespace laconic::thread_test
