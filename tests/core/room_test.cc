#include "core/room.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>

namespace laconic {
namespace {

std::uintptr_t here() { return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)); }

/// Less than the library needs, where a thread may have so little: on aarch64 128 KiB is the least.
std::size_t small_stack() {
  return std::max(std::size_t{64} << 10, static_cast<std::size_t>(sysconf(_SC_THREAD_STACK_MIN)));
}

/// Runs on a thread with so much stack.
void on_thread(std::size_t stack, const std::function<void()>& run) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, stack), 0);
  pthread_t thread{};
  const auto call = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&run)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

/// Touches so much stack.
int use(std::size_t bytes) {
  auto* const memory = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 512) memory[i] = 1;
  return memory[0];
}

TEST(Room, IsThisThreadsStackWhereThereIsEnough) {
  on_thread(std::size_t{1} << 20, [] {
    EXPECT_TRUE(has_room());
    std::uintptr_t inside = 0;
    with_room([&] { inside = here(); });
    EXPECT_LT(here() - inside, 4096U);
  });
}

TEST(Room, IsElsewhereOnASmallStack) {
  on_thread(small_stack(), [] {
    EXPECT_FALSE(has_room());
    const pthread_t self = pthread_self();
    int used = 0;
    for (int round = 0; round < 3; ++round) {
      with_room([&] {
        used += use(std::size_t{900} << 10);
        EXPECT_NE(pthread_equal(self, pthread_self()), 0);
      });
    }
    EXPECT_EQ(used, 3);
  });
}

TEST(Room, LetsExceptionsThrough) {
  on_thread(small_stack(), [] {
    EXPECT_THROW(with_room([] { throw std::runtime_error("no"); }), std::runtime_error);
    EXPECT_THROW(with_room([] { throw 3; }), int);  // NOLINT(hicpp-exception-baseclass): a program's may be anything
    bool caught_outside = false;
    try {
      throw std::logic_error("outside");
    } catch (const std::logic_error&) {
      EXPECT_THROW(with_room([] { throw std::runtime_error("inside"); }), std::runtime_error);
      caught_outside = true;
    }
    EXPECT_TRUE(caught_outside);
  });
}

TEST(Room, IsGivenToEachOfSeveralThreads) {
  on_thread(small_stack(), [] {
    with_room([] {
      std::uintptr_t first = here(), second = 0;
      on_thread(small_stack(), [&] { with_room([&] { second = here(); }); });
      EXPECT_GE(first > second ? first - second : second - first, std::size_t{1} << 20);
    });
  });
}

TEST(Room, LetsTheThreadBeCancelled) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, small_stack()), 0);
  pthread_t thread{};
  const auto forever = [](void*) -> void* {
    with_room([] {
      for (;;) pthread_testcancel();
    });
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, forever, nullptr), 0);
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace laconic
