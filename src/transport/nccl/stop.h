// How a thread ends the waiting of the one that works on a communicator: ncclCommAbort may come from any.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <utility>

#include "core/error.h"

namespace laconic::nccl {

class Stop {
 public:
  /// What set() does beside, as long as this lives; at once if it is set already. Brief, and throws nothing.
  class Reaction {
   public:
    Reaction(Stop& stop, std::function<void()> react) : stop_(stop) {
      const std::lock_guard lock(stop_.mutex_);
      if (stop_.set_) react();
      at_ = stop_.reactions_.insert(stop_.reactions_.end(), std::move(react));
    }
    ~Reaction() {
      const std::lock_guard lock(stop_.mutex_);
      stop_.reactions_.erase(at_);
    }
    Reaction(const Reaction&) = delete;
    Reaction& operator=(const Reaction&) = delete;

   private:
    Stop& stop_;
    std::list<std::function<void()>>::iterator at_;
  };

  /// From now on check() throws. When this returns, nobody is within unless_set() any more.
  void set() {
    const std::lock_guard lock(mutex_);
    if (set_.exchange(true)) return;
    for (const auto& react : reactions_) react();
  }

  [[nodiscard]] bool is_set() const { return set_; }
  /// Throws Error(transport) once it is set.
  void check() const {
    if (set_) throw Error(Code::transport, "the communicator was aborted or revoked");
  }

  /// work(), briefly, on what may be gone once it is set. Throws as check().
  template <typename Work>
  auto unless_set(Work&& work) {
    const std::lock_guard lock(mutex_);
    check();
    return work();
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> set_ = false;
  std::list<std::function<void()>> reactions_;
};

}  // namespace laconic::nccl
