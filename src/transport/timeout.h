// How long a rank waits for another, and how it says so when it gives up.
#pragma once

#include <chrono>
#include <string>

namespace laconic {

/// Seconds that a rank waits for another before it gives up (LACONIC_TIMEOUT, see core/config.h). 0 or less: for ever.
double default_timeout();

/// A point in time after which waiting is over.
class Deadline {
 public:
  explicit Deadline(double seconds);
  [[nodiscard]] bool passed() const { return finite_ && std::chrono::steady_clock::now() >= at_; }
  [[nodiscard]] bool finite() const { return finite_; }
  [[nodiscard]] std::chrono::steady_clock::time_point at() const { return at_; }

 private:
  bool finite_;
  std::chrono::steady_clock::time_point at_;
};

/// Throws Error(transport): "rank 1 waited 60 s for a message from rank 2 ...".
[[noreturn]] void throw_timeout(int rank, const std::string& awaited, double seconds);

}  // namespace laconic
