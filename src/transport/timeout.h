// How long a rank waits for another, and how it says so when it gives up.
#pragma once

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

/// What a rank waits for in an exchange among all.
inline constexpr const char* all_to_call = "all ranks to call the same collective";
/// ": no sign of ranks 2 and 5"; nothing of none.
std::string no_sign_of(std::span<const int> ranks);

/// What a rank that gives up has heard of the others. Who is stuck or dead is silent; so may be who has done its part.
class Signs {
 public:
  static constexpr int nobody = -1, everybody = -2;

  Signs(int rank, int size);
  /// Rank `who` is there, and waits for `awaited`.
  void hear(int who, int awaited);
  [[nodiscard]] bool of_all() const;
  /// Those of whom nothing was heard, as no_sign_of(); first those whom others wait for.
  [[nodiscard]] std::string missing() const;

 private:
  std::vector<bool> heard_, awaited_;
};

/// Seconds for which a rank that gives up after `timeout` listens for the others.
double patience_after(double timeout);

/// Throws Error(transport): "rank 1 gave up after waiting 60 s for a message from rank 2 ...".
[[noreturn]] void throw_timeout(int rank, const std::string& awaited, double seconds);

/// For as long as it lives, the calling thread's naps last about as long as asked. By default Linux adds 50 us to each.
class PunctualNaps {
 public:
  PunctualNaps();
  ~PunctualNaps();
  PunctualNaps(const PunctualNaps&) = delete;
  PunctualNaps& operator=(const PunctualNaps&) = delete;

 private:
  int slack_;
};

/// Waits by testing: a library's own wait would burn a core that another rank's codec may need, and would never give
/// up. `spins` tests at once catch what is about to arrive, then the core is given away for longer and longer. False:
/// it gave up.
template <typename Test>
[[nodiscard]] bool done_in_time(Test&& done, double timeout, int spins = 30) {
  constexpr int longest_nap_us = 100;
  for (int i = 0; i < spins; ++i) {
    if (done()) return true;
  }
  const Deadline deadline(timeout);
  const PunctualNaps naps;
  int nap_us = 1;
  while (!done()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(nap_us));
    nap_us = std::min(nap_us * 2, longest_nap_us);
  }
  return true;
}
template <typename Test>
void wait_until(Test&& done, int rank, const std::string& awaited, double timeout, int spins = 30) {
  if (!done_in_time(std::forward<Test>(done), timeout, spins)) throw_timeout(rank, awaited, timeout);
}

}  // namespace laconic
