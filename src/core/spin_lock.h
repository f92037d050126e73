// A lock for what takes less time than to put a thread to sleep and wake it up.
#pragma once

#include <atomic>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace laconic {

/// Waits for something that other threads are about to do: at first without giving the processor away.
class Patience {
 public:
  void wait() {
    if (++times_ > 200) {
      std::this_thread::yield();
      return;
    }
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  int times_ = 0;
};

/// Meets std's requirements for a mutex.
class SpinLock {
 public:
  bool try_lock() { return !taken_.test_and_set(std::memory_order_acquire); }
  void lock() {
    for (Patience patience; !try_lock(); patience.wait()) {
    }
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

}  // namespace laconic
