// A library that has Laconic's code in itself, which a program may load and unload.
#include <atomic>
#include <thread>

#include "core/share.h"

extern "C" std::size_t plugin_gathered(std::size_t threads) {
  std::atomic<std::size_t> inside = 0;
  laconic::share_work(threads, [&] {
    ++inside;
    while (inside < threads) std::this_thread::yield();
  });
  return inside;
}
