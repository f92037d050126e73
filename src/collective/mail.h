// The messages of one call between two ranks, step by step: what it sends, what it takes, and the first thing that goes
// wrong. Who makes the steps may wait for one call (p2p.h) or see to many (mailroom.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "collective/call.h"
#include "collective/communicator.h"
#include "collective/layout.h"
#include "collective/pool.h"
#include "collective/verify.h"
#include "core/array.h"
#include "core/error.h"

namespace laconic {

/// Largest tag; the least is 0. Messages from one rank to another with the same tag arrive in the order of the calls.
inline constexpr int largest_tag = 32000;

/// What a call sends, and where it wants what comes: one of them or both, which must not overlap.
struct Letter {
  struct Out {
    ConstArray x;
    int to = 0;
    int tag = 0;
  };
  struct In {
    MutArray room;
    int from = 0;
    int tag = 0;
  };
  std::optional<Out> out{};
  std::optional<In> in{};
  /// A rank may send to itself, and receive what it sends: not by a call that does one of these and blocks.
  bool may_be_own = false;
};

struct Received {
  std::size_t count = 0;  ///< elements that came
  Report report;
};

/// Made, used and destroyed by one thread.
class Mail {
 public:
  /// Throws where nobody is there who can be told what is wrong: see p2p.h, also for `refused`.
  Mail(const Letter& letter, Communicator& comm, const Options& options, const std::optional<Error>& refused);
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  /// Whether there is something left to post, and to take. Of calls that share rank and tag, one must be through with
  /// it before the next one begins.
  [[nodiscard]] bool posts() const { return out_.stage != Stage::over; }
  [[nodiscard]] bool takes() const { return in_.stage != Stage::over; }
  /// Nothing is left, and all that was posted has gone.
  [[nodiscard]] bool done() const { return !posts() && !takes() && outgoing_.empty(); }

  /// Does what can be done without waiting, at most a segment each way. Whether there was anything. Throws what leaves
  /// messages under way: then give_up().
  bool step(bool may_post, bool may_take);
  /// Waits until step() has something to do.
  void wait();
  /// For who waits for many: whether it has. `patient`: for what has not begun yet no time is counted; see
  /// Request::await().
  bool await(bool patient);

  /// The communicator is not used any more.
  static void give_up(Communicator& comm);

  /// Of all the time that it took, what was not its own work was waiting.
  void count_rest_as_wire();
  /// Throws the first thing that went wrong.
  Received finish();

 private:
  enum class Stage : std::uint8_t { head, segments, exact, over };

  /// What goes before the segments of a message: how many elements, and how they are cut.
  struct Opening {
    std::uint32_t magic = 0x3350434C;  // "LCP3"
    std::uint8_t dtype = 0;
    std::uint8_t refused = 0;   ///< a Code: no segments follow, `text` says why
    std::uint8_t verified = 0;  ///< 1: all segments follow once more, losslessly
    std::uint8_t unused = 0;
    std::uint64_t count = 0;
    std::uint64_t segment_values = 0;
    std::uint64_t check = 0;  ///< over the others but text
    char text[160] = {};

    [[nodiscard]] std::uint64_t digest_of_all() const;
    [[nodiscard]] bool sound() const;
  };

  struct Posted {
    Request request;
    MessagePtr message;
  };

  struct Outward {
    Stage stage = Stage::over;
    Opening opening;
    Budget budget;
    std::size_t at = 0;  ///< elements before it have been posted, losslessly where the stage is `exact`
  };
  struct Inward {
    Stage stage = Stage::over;
    Opening opening;
    std::size_t messages = 0;  ///< after the opening
    std::size_t posted = 0, taken = 0;
    double bound = 0;  ///< the largest that a frame said
  };

  void check_both(const std::optional<Error>& wrong_dest, const std::optional<Error>& wrong_source);
  [[nodiscard]] std::optional<Error> wrong_peer(const char* argument, int rank, int tag, bool other_only) const;

  void post_next();
  void post_head();
  void post_segment();
  void post(MessagePtr message);
  MessagePtr put_segment(ConstArray part, const Codec& codec, const Grid& grid);
  bool take_next();
  void expect(std::size_t capacity);
  void take_head(const Message& message);
  void take_segment(const Message& message);
  void open(MutArray part, const Message& message);
  void verify_sent(ConstArray part, const Message& message);
  void verify_received(ConstArray got, const Message& message, std::size_t first);
  void compare_with(ConstArray exact, ConstArray got, double bound, std::size_t first);
  MutArray scratch_for(ConstArray part);
  void fail(Code code, const std::string& text) {
    if (!failure_) failure_ = Error(code, text);
  }
  /// Runs codec work; what it throws is kept.
  template <typename Work>
  void guarded(const std::string& what, Work&& work);

  Communicator& comm_;
  Letter letter_;
  Call call_;
  std::optional<Error> failure_;
  Outward out_;
  Inward in_;
  std::deque<Posted> outgoing_, incoming_;
  Comparison found_;                   ///< of what was verified
  std::vector<std::uint8_t> scratch_;  ///< elements of a segment
};

}  // namespace laconic
