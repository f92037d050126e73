// Who is there when a call does not come to its end: MPI does not say.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/mpi/mpi.h"
#include "transport/timeout.h"

namespace laconic {

/// A rank that gives up tells all others. Those who wait for it give up, too, and tell all; those who wait for another
/// say so and go on, since that one may still have what they need. So none waits for what cannot come any more, and
/// each learns who is there. With a tag that nothing else has. Thread safe: transports of several threads share one.
class RollCall {
 public:
  RollCall(std::shared_ptr<OwnComm> own, int tag);

  [[nodiscard]] OwnComm& own() const { return *own_; }
  /// Takes in what the others have said. Quick.
  void hear();
  /// Of what has been heard.
  [[nodiscard]] bool somebody_gave_up() const { return somebody_gave_up_; }
  [[nodiscard]] bool gave_up(int who) const {
    const std::lock_guard lock(mutex_);
    return gave_up_[static_cast<std::size_t>(who)];
  }
  /// Somebody has given up, and this rank has not: it waits for `awaited`, see Signs.
  void answer(int awaited);

  enum class Why : int { nothing_came, another_did };
  /// Tells the others, once.
  void give_up(Why why, int awaited);
  /// After that, waits for signs of all, but not longer than `seconds`, and only once. Who gave none, in words.
  [[nodiscard]] std::string missing(double seconds);
  /// Who gave up, best one that did because nothing came.
  [[nodiscard]] std::optional<int> first() const {
    const std::lock_guard lock(mutex_);
    return first_ ? first_ : last_;
  }

 private:
  enum class What : int { is_here, gave_up, gave_up_after_another };
  struct Word {
    What what;
    int awaited;
  };
  void hear_all();
  /// Whether there was a message; `sound`: MPI could look.
  bool hear_one(int from, bool& sound);
  void take_in(int who, Word word);
  void say(Word word);

  std::shared_ptr<OwnComm> own_;
  int tag_;
  int rank_, size_;
  std::atomic<bool> somebody_gave_up_ = false;
  mutable std::mutex mutex_;  ///< of all that follows, and of looking for messages
  bool answered_ = false, told_ = false, listened_ = false;
  std::vector<bool> gave_up_;
  std::optional<int> first_, last_;
  Signs signs_;
};

}  // namespace laconic
