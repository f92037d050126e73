#include "core/share.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "core/spin_lock.h"
#include "core/thread.h"

namespace laconic {
namespace {

// How long threads look before they sleep, which takes about 50 us to be woken from.
constexpr std::chrono::microseconds until_others_end{100};  // who shares work ends at about the same time
constexpr std::chrono::microseconds until_next_work{30};    // the next segment

/// Processors that a thread may run on.
class Affinity {
 public:
  static Affinity of_this_thread() {
    Affinity a;
    a.known_ = ::sched_getaffinity(0, sizeof a.set_, &a.set_) == 0;
    return a;
  }
  [[nodiscard]] bool operator==(const Affinity& other) const {
    return known_ == other.known_ && std::memcmp(&set_, &other.set_, sizeof set_) == 0;
  }
  void impose(pthread_t thread) const {
    if (known_) ::pthread_setaffinity_np(thread, sizeof set_, &set_);
  }

 private:
  cpu_set_t set_{};
  bool known_ = false;  ///< not on a machine of more processors than a set has room for
};

/// The first exception of several threads.
class FirstFailure {
 public:
  void run(WorkRef work) {
    try {
      work.call(work.what);
    } catch (...) {
      const std::lock_guard lock(guard_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  SpinLock guard_;
  std::exception_ptr failure_;
};

/// A thread that is kept for work.
class Helper {
 public:
  explicit Helper(const Affinity& affinity) : affinity_(affinity), thread_([this] { live(); }) {}
  ~Helper() { set(State::ending); }

  std::unique_ptr<Helper> next;  ///< in whatever list it is in

  /// To one that is idle.
  void offer(WorkRef work, FirstFailure& failure, const Affinity& affinity) {
    if (affinity != affinity_) {
      affinity.impose(thread_.native_handle());
      affinity_ = affinity;
    }
    work_ = work;
    failure_ = &failure;
    set(State::offered);
  }
  /// Has it begin no more, or waits until it has ended. It is idle then.
  void take_back() {
    State is = State::offered;
    if (state_.compare_exchange_strong(is, State::idle)) return;
    await([this] { return state_.load(std::memory_order_acquire) == State::done; }, until_others_end);
  }

 private:
  enum class State : int { idle, offered, working, done, ending };

  template <class Done>
  void await(Done done, std::chrono::microseconds watching) {
    const auto until = std::chrono::steady_clock::now() + watching;
    for (Patience patience; std::chrono::steady_clock::now() < until; patience.wait())
      if (done()) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, done);
  }
  void set(State s) {
    {
      const std::lock_guard lock(mutex_);  // so that nobody goes to sleep between its last look and this
      state_.store(s, std::memory_order_release);
    }
    changed_.notify_one();
  }
  void live() {
    for (State is = State::idle; is != State::ending;) {
      await([&] { return (is = state_.load(std::memory_order_acquire)) == State::offered || is == State::ending; },
            until_next_work);
      if (is != State::offered || !state_.compare_exchange_strong(is, State::working)) continue;
      failure_->run(work_);
      set(State::done);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<State> state_ = State::idle;
  WorkRef work_{};
  FirstFailure* failure_ = nullptr;
  Affinity affinity_;
  Thread thread_;  // last: it uses all others
};

/// The helpers of a process that have nothing to do.
class Crew {
 public:
  static Crew& of_this_process();

  /// Null where the system has no thread to give.
  std::unique_ptr<Helper> take(const Affinity& affinity) {
    {
      const std::lock_guard lock(mutex_);
      if (auto helper = std::move(idle_)) {
        idle_ = std::move(helper->next);
        return helper;
      }
    }
    try {
      return std::make_unique<Helper>(affinity);
    } catch (const std::exception&) {  // nor memory
      return nullptr;
    }
  }
  void give_back(std::unique_ptr<Helper> helper) {
    const std::lock_guard lock(mutex_);
    helper->next = std::move(idle_);
    idle_ = std::move(helper);
  }
  void dismiss() {
    const std::lock_guard lock(mutex_);
    while (idle_) idle_ = std::exchange(idle_->next, nullptr);
  }

 private:
  explicit Crew(Crew* before) : before_(before) {}

  static std::atomic<Crew*> current_;
  pid_t process_ = ::getpid();
  [[maybe_unused]] Crew*
      before_;  ///< of the process that forked: its threads are not in this one, and it may have been locked
  std::mutex mutex_;
  std::unique_ptr<Helper> idle_;  ///< the one that was used last, and so on

  friend struct Ending;
};
std::atomic<Crew*> Crew::current_ = nullptr;

Crew& Crew::of_this_process() {
  // Not destroyed, as others may be at work when a program ends, and gone with a library that is unloaded.
  alignas(Crew) static std::array<std::byte, sizeof(Crew)> room;
  static Crew* const first = new (room.data()) Crew(nullptr);
  Crew* crew = current_.load();
  if (crew == nullptr && current_.compare_exchange_strong(crew, first)) crew = first;
  if (crew->process_ == ::getpid()) return *crew;
  std::unique_ptr<Crew> fresh(new Crew(crew));
  return current_.compare_exchange_strong(crew, fresh.get()) ? *fresh.release() : *crew;
}

/// A program that unloads the library that this is linked into, or ends, has no threads of it left.
struct Ending {
  ~Ending() {
    Crew* const crew = Crew::current_.load();
    if (crew != nullptr && crew->process_ == ::getpid()) crew->dismiss();
  }
} ending;

/// Helpers that have been offered work.
class Helpers {
 public:
  Helpers(std::size_t most, WorkRef work, FirstFailure& failure) : crew_(Crew::of_this_process()) {
    const Affinity own = Affinity::of_this_thread();
    for (; most > 0; --most) {
      auto helper = crew_.take(own);
      if (!helper) break;
      helper->offer(work, failure, own);
      helper->next = std::move(helpers_);
      helpers_ = std::move(helper);
    }
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  ~Helpers() {
    while (auto helper = std::move(helpers_)) {
      helpers_ = std::move(helper->next);
      helper->take_back();
      crew_.give_back(std::move(helper));
    }
  }

 private:
  Crew& crew_;
  std::unique_ptr<Helper> helpers_;
};

}  // namespace

void share_work(std::size_t threads, WorkRef work) {
  FirstFailure failure;
  {
    const Helpers helpers(threads - 1, work, failure);
    failure.run(work);
  }
  failure.rethrow();
}

}  // namespace laconic
