#include "collective/mailroom.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "core/float_environment.h"
#include "transport/timeout.h"

namespace laconic {

// Thrown here: an exception, and its text, that two threads own is freed by whichever lets go of it last.
Report Mailroom::Submitted::get() {
  *awaited_ = true;
  Outcome outcome = outcome_.get();
  if (outcome.code != Code::ok) throw Error(outcome.code, outcome.text);
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
                                     std::size_t* received) {
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
    fail(job, e);
  } catch (...) {
    fail_all(job);
  }
}

bool Mailroom::step() {
  std::set<std::pair<int, int>> sending, receiving;  // rank and tag of those whose turn it is
  bool did = false;
  for (auto next = jobs_.begin(); next != jobs_.end();) {
    const auto job = next++;
    Mail& mail = *job->mail;
    const Letter& letter = job->letter;
    const bool may_post = mail.posts() && sending.emplace(letter.out->to, letter.out->tag).second;
    const bool may_take = mail.takes() && receiving.emplace(letter.in->from, letter.in->tag).second;
    try {
      if (mail.step(may_post, may_take)) did = true;
    } catch (...) {
      fail_all(job);
      return true;
    }
    if (mail.done()) {
      finish(job);
      did = true;
    }
  }
  return did;
}

bool Mailroom::await() {
  bool ready = false;
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    try {
      if (job->mail->await(!*job->awaited)) ready = true;
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
    return fail(job, e);
  }
  end(job, std::move(outcome));
}

void Mailroom::fail(Jobs::iterator job, const Error& why) {
  Outcome outcome;
  outcome.code = why.code();
  outcome.text = why.what();
  end(job, std::move(outcome));
}

void Mailroom::fail_all(Jobs::iterator job) {
  Mail::give_up(comm_);
  usable_ = false;
  Error why(Code::internal, "out of memory");
  try {
    throw;
  } catch (const Error& e) {
    why = e;
  } catch (...) {
  }
  fail(job, why);
  const Error others(Code::transport,
                     std::string("another message of this rank was left in its middle: ") + why.what());
  while (!jobs_.empty()) fail(jobs_.begin(), others);
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
  if (++idle_passes_ <= spins) return;
  const int doublings = std::min(idle_passes_ - spins, 7);
  const auto nap = std::chrono::microseconds(std::min(1 << doublings, longest_nap_us));
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, nap, [this] { return !submitted_.empty(); });
}

}  // namespace laconic
