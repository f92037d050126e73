#include "transport/timeout.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <algorithm>
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

/// "ranks 2 and 5".
std::string in_words(std::span<const int> ranks) {
  constexpr std::size_t most = 8;
  const std::size_t named = ranks.size() <= most + 1 ? ranks.size() : most;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < named; ++i) {
    if (i != 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (named < ranks.size()) text += " and " + std::to_string(ranks.size() - named) + " others";
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

std::string no_sign_of(std::span<const int> ranks) { return ranks.empty() ? "" : ": no sign of " + in_words(ranks); }

Signs::Signs(int rank, int size) : heard_(static_cast<std::size_t>(size)), awaited_(static_cast<std::size_t>(size)) {
  hear(rank, nobody);
}

void Signs::hear(int who, int awaited) {
  heard_[static_cast<std::size_t>(who)] = true;
  if (awaited == everybody) awaited_.assign(awaited_.size(), true);
  if (awaited >= 0) awaited_.at(static_cast<std::size_t>(awaited)) = true;
}

bool Signs::of_all() const { return std::ranges::find(heard_, false) == heard_.end(); }

std::string Signs::missing() const {
  std::vector<int> awaited, others;
  for (std::size_t r = 0; r < heard_.size(); ++r) {
    if (!heard_[r]) (awaited_[r] ? awaited : others).push_back(static_cast<int>(r));
  }
  std::string text = no_sign_of(awaited);
  if (others.empty()) return text;
  text += awaited.empty() ? no_sign_of(others) : ", nor of " + in_words(others);
  return text + ", which nobody is known to wait for";
}

double patience_after(double timeout) {
  constexpr double most = 1;
  return timeout > 0 ? std::min(timeout, most) : most;
}

void throw_timeout(int rank, const std::string& awaited, double seconds) {
  throw Error(Code::transport, "rank " + std::to_string(rank) + " gave up after waiting " + shown_seconds(seconds) +
                                   " for " + awaited + "; raise LACONIC_TIMEOUT if it is only slow");
}

}  // namespace laconic
