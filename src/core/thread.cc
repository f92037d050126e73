#include "core/thread.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <system_error>
#include <utility>

namespace laconic {
namespace {

constexpr std::size_t least_stack = std::size_t{1} << 20;

void* run_it(void* given) {
  const std::unique_ptr<std::function<void()>> run(static_cast<std::function<void()>*>(given));
  (*run)();
  return nullptr;
}

/// All but those that a thread gets for what it does itself: programs handle faults in their memory (pages that they
/// bring in or watch), and it is their arrays that are touched.
sigset_t signals_of_others() {
  sigset_t set;
  ::sigfillset(&set);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) ::sigdelset(&set, own);
  return set;
}

}  // namespace

Thread::Thread(std::function<void()> run) { start(std::move(run)); }

Thread::Thread(Thread&& other) noexcept : handle_(other.handle_), joinable_(std::exchange(other.joinable_, false)) {}

Thread::~Thread() {
  if (joinable_) join();
}

void Thread::start(std::function<void()> run) {
  auto given = std::make_unique<std::function<void()>>(std::move(run));
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  std::size_t stack = 0;
  ::pthread_attr_getstacksize(&attributes, &stack);
  ::pthread_attr_setstacksize(&attributes, std::max(stack, least_stack));
  const sigset_t held = signals_of_others();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &held, &before);  // which the new thread inherits
  const int error = ::pthread_create(&handle_, &attributes, run_it, given.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category());
  static_cast<void>(given.release());
  joinable_ = true;
}

void Thread::join() {
  ::pthread_join(handle_, nullptr);
  joinable_ = false;
}

}  // namespace laconic
