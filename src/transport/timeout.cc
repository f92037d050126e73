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

constexpr int least_slack_ns = 1000;

}  // namespace

#if defined(__linux__)
PunctualNaps::PunctualNaps() : slack_(prctl(PR_GET_TIMERSLACK)) {
  if (slack_ > 0) prctl(PR_SET_TIMERSLACK, least_slack_ns);
}
PunctualNaps::~PunctualNaps() {
  if (slack_ > 0) prctl(PR_SET_TIMERSLACK, slack_);
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

void throw_timeout(int rank, const std::string& awaited, double seconds) {
  throw Error(Code::transport, "rank " + std::to_string(rank) + " gave up after waiting " + shown_seconds(seconds) +
                                   " for " + awaited + "; raise LACONIC_TIMEOUT if it is only slow");
}

}  // namespace laconic
