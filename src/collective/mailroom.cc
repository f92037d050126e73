#include "collective/mailroom.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "core/float_environment.h"
#include "transport/timeout.h"

namespace laconic {
namespace {

/// Ranks and tags that calls have to do with.
class Turns {
 public:
  /// False: another call has had it.
  bool take_sending(const Letter& l) { return sending_.emplace(l.out->to, l.out->tag).second; }
  bool take_receiving(const Letter& l) { return receiving_.emplace(l.in->from, l.in->tag).second; }
  void take(const Letter& l) {
    if (l.out) take_sending(l);
    if (l.in) take_receiving(l);
  }
  [[nodiscard]] bool has_any(const Letter& l) const {
    return (l.out && sending_.contains({l.out->to, l.out->tag})) ||
           (l.in && receiving_.contains({l.in->from, l.in->tag}));
  }

 private:
  std::set<std::pair<int, int>> sending_, receiving_;
};

/// Memory may have run out: without its text then.
Mailroom::Outcome failed(Code code, const char* before, const char* text) noexcept {
  Mailroom::Outcome outcome;
  outcome.code = code;
  try {
    outcome.text = std::string(before) + text;
  } catch (const std::bad_alloc&) {
    outcome.text.clear();
  }
  return outcome;
}

}  // namespace

// Thrown here: an exception, and its text, that two threads own is freed by whichever lets go of it last.
Report Mailroom::Submitted::get() {
  *awaited_ = true;
  Outcome outcome = outcome_.get();
  if (outcome.code != Code::ok) throw Error(outcome.code, outcome.text.empty() ? "out of memory" : outcome.text);
  return outcome.report;
}

Mailroom::~Mailroom() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
}

Mailroom::Submitted Mailroom::submit(const Letter& letter, const Options& options, const std::optional<Error>& refused,
                                     std::size_t* received) {  // NOLINT(readability-non-const-parameter): see finish()
  Jobs one;
  one.push_back({.letter = letter, .options = options, .refused = refused, .received = received});
  Submitted made(one.front().outcome.get_future(), one.front().awaited);
  if (!thread_.joinable()) {
    try {
      thread_.start([this] { run(); });
    } catch (const std::system_error& e) {
      throw Error(Code::internal, std::string("no thread for messages in the background: ") + e.what());
    }
  }
  {
    const std::lock_guard lock(mutex_);
    submitted_.splice(submitted_.end(), one);
    ++under_way_;
  }
  changed_.notify_one();
  return made;
}

void Mailroom::run() {
  const FloatEnvironment ours;  // around those of all calls, which begin and end in any order
  const PunctualNaps naps;
  while (take_in()) {
    if (step() || await()) {
      idle_passes_ = 0;
    } else {
      nap();
    }
  }
}

bool Mailroom::take_in() {
  Jobs fresh;
  bool closing = false;
  {
    std::unique_lock lock(mutex_);
    if (jobs_.empty()) changed_.wait(lock, [this] { return closing_ || !submitted_.empty(); });
    closing = closing_;  // then these are the last
    fresh.swap(submitted_);
  }
  if (!fresh.empty()) idle_passes_ = 0;
  while (!fresh.empty()) {
    jobs_.splice(jobs_.end(), fresh, fresh.begin());
    begin(std::prev(jobs_.end()));
  }
  for (auto job = jobs_.begin(); closing && job != jobs_.end(); ++job) *job->awaited = true;
  return !jobs_.empty() || !closing;
}

// What is no Error (memory that ran out) leaves the other rank waiting.
void Mailroom::begin(Jobs::iterator job) {
  try {
    job->mail = std::make_unique<Mail>(job->letter, comm_, job->options, job->refused);
  } catch (const Error& e) {
    end(job, failed(e.code(), "", e.what()));
  } catch (...) {
    fail_all(job);
  }
}

bool Mailroom::step() {
  Turns turns;
  bool did = false;
  for (auto next = jobs_.begin(); next != jobs_.end();) {
    const auto job = next++;
    try {
      Mail& mail = *job->mail;
      const bool may_post = mail.posts() && turns.take_sending(job->letter);
      const bool may_take = mail.takes() && turns.take_receiving(job->letter);
      if (mail.step(may_post, may_take)) did = true;
    } catch (...) {
      fail_all(job);
      return true;
    }
    if (job->mail->done()) {
      finish(job);
      did = true;
    }
  }
  return did;
}

// Who waits for one waits for those before it, too, whose turn comes first.
bool Mailroom::await() {
  bool ready = false;
  Turns awaited;
  for (auto job = jobs_.end(); job != jobs_.begin();) {
    --job;
    try {
      if (*job->awaited) awaited.take(job->letter);
      if (job->mail->await(!awaited.has_any(job->letter))) ready = true;
    } catch (...) {
      fail_all(job);
      return true;
    }
  }
  return ready;
}

void Mailroom::finish(Jobs::iterator job) {
  Outcome outcome;
  try {
    job->mail->count_rest_as_wire();
    Received got = job->mail->finish();
    if (job->received != nullptr) *job->received = got.count;
    outcome.report = std::move(got.report);
  } catch (const Error& e) {
    outcome = failed(e.code(), "", e.what());
  } catch (...) {
    outcome = failed(Code::internal, "", "out of memory");
  }
  end(job, std::move(outcome));
}

void Mailroom::fail_all(Jobs::iterator job) {
  Mail::give_up(comm_);
  usable_ = false;
  Outcome its;
  try {
    throw;
  } catch (const Error& e) {
    its = failed(e.code(), "", e.what());
  } catch (...) {
    its = failed(Code::internal, "", "out of memory");
  }
  const Outcome others =
      failed(Code::transport, "another message of this rank was left in its middle: ", its.text.c_str());
  end(job, std::move(its));
  while (!jobs_.empty()) end(jobs_.begin(), failed(others.code, "", others.text.c_str()));
}

// Before the outcome is there, nothing of the call is left: then it is as if it had blocked.
void Mailroom::end(Jobs::iterator job, Outcome outcome) {
  job->mail.reset();
  --under_way_;
  job->outcome.set_value(std::move(outcome));
  jobs_.erase(job);
}

void Mailroom::nap() {
  constexpr int spins = 30, longest_nap_us = 100;
  constexpr int doublings_to_longest = 7;
  idle_passes_ = std::min(idle_passes_ + 1, spins + doublings_to_longest);
  if (idle_passes_ <= spins) return;
  const int doublings = idle_passes_ - spins;
  const auto nap = std::chrono::microseconds(std::min(1 << doublings, longest_nap_us));
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, nap, [this] { return !submitted_.empty(); });
}

}  // namespace laconic
