#include "transport/timeout.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <cstdio>

#include "core/config.h"
#include "core/error.h"

namespace laconic {
namespace {

std::string shown_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

#if defined(__linux__)
constexpr int least_slack_ns = 1000;

/// With all the arguments that the kernel might look at.
int timer_slack(int option, int nanoseconds) {
  return prctl(option, static_cast<unsigned long>(nanoseconds), 0UL, 0UL, 0UL);
}
#endif

}  // namespace

#if defined(__linux__)
PunctualNaps::PunctualNaps() : slack_(timer_slack(PR_GET_TIMERSLACK, 0)) {
  if (slack_ > 0) timer_slack(PR_SET_TIMERSLACK, least_slack_ns);
}
PunctualNaps::~PunctualNaps() {
  if (slack_ > 0) timer_slack(PR_SET_TIMERSLACK, slack_);
}
#else
PunctualNaps::PunctualNaps() : slack_(0) {}
PunctualNaps::~PunctualNaps() = default;
#endif

double default_timeout() { return config().timeout_seconds.value_or(60); }

// Beyond a century the clock's own arithmetic would overflow; nobody waits that long.
Deadline::Deadline(double seconds) : finite_(seconds > 0 && seconds < 3e9), at_(std::chrono::steady_clock::now()) {
  if (finite_) {
    at_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
  }
}

std::string no_sign_of(std::span<const int> ranks) {
  if (ranks.empty()) return "";
  constexpr std::size_t most = 8;
  const std::size_t named = ranks.size() <= most + 1 ? ranks.size() : most;
  std::string text = ranks.size() == 1 ? ": no sign of rank " : ": no sign of ranks ";
  for (std::size_t i = 0; i < named; ++i) {
    if (i != 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (named < ranks.size()) text += " and " + std::to_string(ranks.size() - named) + " others";
  return text;
}

void throw_timeout(int rank, const std::string& awaited, double seconds) {
  throw Error(Code::transport, "rank " + std::to_string(rank) + " gave up after waiting " + shown_seconds(seconds) +
                                   " for " + awaited + "; raise LACONIC_TIMEOUT if it is only slow");
}

}  // namespace laconic
