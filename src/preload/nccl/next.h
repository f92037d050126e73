// The functions of the program's NCCL, wherever the program has it from.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstdio>

namespace laconic::preload {

/// Null: no library that the process has loaded has it, but for this one.
void* find_next(const char* name);

/// Looked up when it is first needed, and until it is found. Thread safe.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}

  /// Null, and said once on standard error, where there is none: an NCCL that is too old, or one that was linked into a
  /// library which keeps it to itself.
  Function get() {
    Function found = found_;
    if (found != nullptr) return found;
    found_ = found = reinterpret_cast<Function>(find_next(name_));
    if (found == nullptr && !said_.exchange(true))
      std::fprintf(stderr, "laconic: the program's NCCL has no %s that can be found\n", name_);
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function> found_{nullptr};
  std::atomic<bool> said_{false};
};

template <typename Function, typename... Arguments>
ncclResult_t plainly(Next<Function>& next, Arguments... arguments) {
  const Function function = next.get();
  return function == nullptr ? ncclSystemError : function(arguments...);
}

}  // namespace laconic::preload
