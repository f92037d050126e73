#include "core/room.h"

#include <cxxabi.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

// Sanitizers take a stack that they do not know for a mistake.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LACONIC_OWN_STACKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LACONIC_OWN_STACKS 0
#endif
#endif
#ifndef LACONIC_OWN_STACKS
#define LACONIC_OWN_STACKS 1
#endif

namespace laconic {
namespace {

constexpr std::size_t enough = std::size_t{256} << 10;  // twice of what has been seen to be used
constexpr std::size_t stack_bytes = std::size_t{1} << 20;

/// Where this thread's stack lies, as it was when this was first asked for. Empty where the system does not say.
struct Bounds {
  std::uintptr_t first = 0, end = 0;
};

Bounds bounds_of_thread() {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
  void* first = nullptr;
  std::size_t bytes = 0;
  const int error = ::pthread_attr_getstack(&attributes, &first, &bytes);
  ::pthread_attr_destroy(&attributes);
  const auto at = reinterpret_cast<std::uintptr_t>(first);
  return error == 0 ? Bounds{at, at + bytes} : Bounds{};
}

/// Stacks that nobody is on. They stay until the process ends, for the next calls.
class Stacks {
 public:
  /// Null: there is no memory.
  void* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return make();
    void* const taken = free_.back();
    free_.pop_back();
    return taken;
  }
  void give_back(void* stack) {
    const std::lock_guard lock(mutex_);
    free_.push_back(stack);
  }

 private:
  /// Below it is a page that cannot be used: as below any thread's.
  static void* make() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const memory = ::mmap(nullptr, page + stack_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    void* const stack = static_cast<char*>(memory) + page;
    if (::mprotect(stack, stack_bytes, PROT_READ | PROT_WRITE) == 0) return stack;
    ::munmap(memory, page + stack_bytes);
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<void*> free_;
};

Stacks& stacks() {
  static auto& all = *new Stacks;  // programs call until their very end
  return all;
}

struct Work {
  const std::function<void()>& run;
  std::exception_ptr thrown;
};

/// On the other stack. A pointer comes in halves: such functions get ints.
void enter(unsigned high, unsigned low) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto& work = *reinterpret_cast<Work*>(std::uintptr_t{high} << 32 | low);
  try {
    work.run();
  } catch (const abi::__forced_unwind&) {  // the thread is cancelled: it goes to its end from here
    throw;
  } catch (...) {
    work.thrown = std::current_exception();
  }
}

void run_on(void* stack, Work& work) {
  ucontext_t here{}, there{};
  ::getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = stack_bytes;
  there.uc_link = &here;
  const auto at = reinterpret_cast<std::uintptr_t>(&work);
  ::makecontext(&there, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(at >> 32),
                static_cast<unsigned>(at));
  ::swapcontext(&here, &there);
}

}  // namespace

bool has_room() {
  if (!LACONIC_OWN_STACKS) return true;
  thread_local const Bounds bounds = bounds_of_thread();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here > bounds.first && here < bounds.end && here - bounds.first >= enough;
}

void call_on_own_stack(const std::function<void()>& work) {
  void* const stack = stacks().take();
  if (stack == nullptr) return work();
  Work given{work, nullptr};
  run_on(stack, given);
  stacks().give_back(stack);
  if (given.thrown) std::rethrow_exception(given.thrown);
}

}  // namespace laconic
