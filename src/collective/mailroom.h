// Messages between two ranks that are under way while the caller does something else: a thread sees to all of them at
// once, in whatever order they can go, and needs no help to make progress.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "collective/communicator.h"
#include "collective/mail.h"
#include "core/error.h"
#include "core/thread.h"

namespace laconic {

/// Used by one thread, and served by one of its own.
class Mailroom {
 public:
  /// Of the communicator whose calls that block may be the others' counterparts: what either sends, either receives. No
  /// such call may be made while something is under way here: submit it, too. Error(unsupported) as companion().
  explicit Mailroom(Transport& transport) : comm_(transport.companion()) {}
  Mailroom(const Mailroom&) = delete;
  Mailroom& operator=(const Mailroom&) = delete;
  /// Waits for what has been submitted.
  ~Mailroom();

  struct Outcome {
    Report report{};
    Code code = Code::ok;  ///< of what went wrong
    std::string text{};
  };
  /// A call that has been submitted; may outlive the mailroom. Used by one thread.
  class Submitted {
   public:
    Submitted(std::future<Outcome> outcome, std::shared_ptr<std::atomic<bool>> awaited)
        : outcome_(std::move(outcome)), awaited_(std::move(awaited)) {}
    [[nodiscard]] bool is_done() const {
      return outcome_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }
    /// Waits; once. Throws what went wrong. From now on a rank that does not answer is given up after its time; before,
    /// that holds only for a message that has begun to come.
    Report get();

   private:
    std::future<Outcome> outcome_;
    std::shared_ptr<std::atomic<bool>> awaited_;
  };

  /// Messages of the same rank and tag keep the order in which they are submitted. Arrays are the call's until the
  /// result is there; *received, if not null, is how many elements came. `refused`: see p2p.h. Throws Error(internal)
  /// where the system has no thread to give: nobody is told then.
  Submitted submit(const Letter& letter, const Options& options, const std::optional<Error>& refused,
                   std::size_t* received);

  /// Nothing is under way.
  [[nodiscard]] bool idle() const { return under_way_ == 0; }
  /// As Communicator::usable().
  [[nodiscard]] bool usable() const { return usable_; }

 private:
  struct Job {
    Letter letter;
    Options options;
    std::optional<Error> refused;
    std::size_t* received = nullptr;
    std::promise<Outcome> outcome{};
    std::shared_ptr<std::atomic<bool>> awaited = std::make_shared<std::atomic<bool>>(false);
    std::unique_ptr<Mail> mail{};
  };
  using Jobs = std::list<Job>;

  void run();
  /// New ones begin; where there are none at all, waits for them. False: there will be no more.
  bool take_in();
  void begin(Jobs::iterator job);
  /// One step of each. Whether there was one to make.
  bool step();
  /// Whether one of them now has a step to make.
  bool await();
  void finish(Jobs::iterator job);
  /// One is left in its middle by the exception that is being handled: so are all.
  void fail_all(Jobs::iterator job);
  void end(Jobs::iterator job, Outcome outcome);
  /// For longer and longer, unless something new comes.
  void nap();

  Communicator comm_;
  Jobs jobs_;  ///< the thread's
  int idle_passes_ = 0;
  std::atomic<std::size_t> under_way_ = 0;
  std::atomic<bool> usable_ = true;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  Jobs submitted_;
  bool closing_ = false;
  Thread thread_;
};

}  // namespace laconic
