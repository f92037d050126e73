// A thread of Laconic's within a program that has signals and limits of its own.
#pragma once

#include <functional>
#include <thread>

namespace laconic {

/// Like std::jthread without its stop token, but: what the program does about signals happens on its own threads alone
/// (a handler may count on that, and a signal that all of those block must wait for them); and there is enough stack
/// where the program's limit (ulimit -s), from which a thread has its own otherwise, is small.
class Thread {
 public:
  Thread() = default;
  /// Throws std::system_error where the system has no thread to give. `run` must not throw.
  explicit Thread(std::function<void()> run);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&&) = delete;
  /// Waits for its end.
  ~Thread();
  void start(std::function<void()> run);
  void join();
  [[nodiscard]] bool joinable() const { return joinable_; }
  [[nodiscard]] std::thread::native_handle_type native_handle() const { return handle_; }

 private:
  std::thread::native_handle_type handle_{};
  bool joinable_ = false;
};

}  // namespace laconic
