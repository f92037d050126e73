// How a thread ends the waiting of the one that works on a communicator: ncclCommAbort may come from any.
#pragma once

#include <atomic>
#include <mutex>

#include "core/error.h"

namespace laconic::nccl {

class Stop {
 public:
  /// From now on check() throws. When this returns, nobody is within unless_set() any more.
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
  }

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
};

}  // namespace laconic::nccl
