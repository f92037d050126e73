// Messages over NCCL, which has no tags, no message lengths, no receive of unknown length and nothing that completes
// one by one. So they go in rounds, in which all ranks take part:
//
//   1. Every rank tells all others, in a header of fixed size, which messages it sends in this round.
//   2. So everyone knows every message of the round, and issues its sends and receives as one group.
//
// Headers go by TCP where they can, else over a communicator and a stream of their own (headers.h). While the data of
// one round travel, the headers of the next are already under way; by NCCL only once it has launched the former. The
// host never waits for either: it asks (drive()) and goes on with its own work. All ranks issue the same sequence of
// all-gathers and groups, so kernels of one rank that hold each other up cannot make a circle.
//
// A group takes 0.1 ms beside its bytes, and what comes in it is there when all of it is. So there are several links,
// each with a communicator and a stream of its own, that groups take in turn: while one begins or ends, others keep the
// wire busy. What a rank would send on as soon as it is there waits for what was begun before: so one group is under
// way on each link, and takes a share of what there is (pace.h).
//
// A round needs every rank, so a header of NCCL's that nobody answers would occupy the GPU for ever. Therefore a rank
// begins a round only when it has messages to announce or to expect, stands in the small exchange, or is told to
// join(); and the small exchange, which completes on all ranks with the same round, ends what they do together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/nccl/header.h"
#include "transport/nccl/headers.h"
#include "transport/nccl/link.h"
#include "transport/nccl/pace.h"
#include "transport/nccl/stop.h"

namespace laconic::nccl {

/// What a rank is in a communicator.
struct Membership {
  int rank = 0, size = 1, device = 0;
};
/// `comm` may be gone once `stop` is set: then Error(transport).
Membership membership_in(ncclComm_t comm, Stop& stop);

class Rounds {
 public:
  /// One message that this rank sends.
  struct Outgoing {
    enum class State : std::uint8_t { queued, announced, travelling, done };
    std::span<const std::uint8_t> data;
    int to = 0, tag = 0;
    Memory memory = Memory::pageable;
    State state = State::queued;
    Pinned copy{};  ///< of pageable memory, while it travels
  };

  /// One receive that this rank has posted.
  struct Incoming {
    enum class State : std::uint8_t { posted, matched, copying, done };
    std::span<std::uint8_t> buffer;
    int from = 0, tag = 0;
    Memory memory = Memory::pageable;
    State state = State::posted;
    std::size_t length = 0;  ///< of the message, also when the buffer was too short for it
  };
  using Sent = std::shared_ptr<Outgoing>;
  using Awaited = std::shared_ptr<Incoming>;

  /// Collective over the ranks of `parent`, see Link; `own`: this rank's there. Once `stop` is set, everything fails,
  /// waits that are under way too. `sockets`: whether headers may go by TCP, which they do if all ranks may and can.
  Rounds(ncclComm_t parent, const Membership& own, double timeout, std::shared_ptr<Stop> stop, bool sockets);
  /// Every rank must, sooner or later. What is under way and needs a rank that may be gone is aborted.
  ~Rounds();
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] double timeout() const { return timeout_; }
  [[nodiscard]] const std::shared_ptr<Stop>& stop() const { return stop_; }
  [[nodiscard]] bool sockets() const { return sockets_; }
  [[nodiscard]] bool headers_on_device() const { return headers_->on_device(); }
  [[nodiscard]] PinnedPool& pool() { return pool_; }
  /// For PlainCollectives; messages go over it, too.
  [[nodiscard]] Link& data_link() { return *links_.front(); }

  Sent send(std::span<const std::uint8_t> data, int to, int tag);
  Awaited receive(std::span<std::uint8_t> buffer, int from, int tag);
  /// Nobody wants it any more. What others have been promised still goes to them.
  void drop(const Sent& sent) noexcept;
  void drop(const Awaited& awaited) noexcept;

  /// Does what can be done without waiting. Throws Error(transport), the same again after a failure.
  void drive();
  /// The same, and takes part in a round for the sake of others.
  void join();
  /// Drives until done() is true. `awaited`: for the text of the error.
  void wait(const std::function<bool()>& done, const std::string& awaited);
  /// See Transport::allgather_small.
  void exchange(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all);
  /// Until this rank's own data have landed.
  void flush();
  /// A collective of NCCL's own.
  struct Alone {
    ncclComm_t comm = nullptr;  ///< whose operation it is
    cudaStream_t stream = nullptr;
    bool leave = false;  ///< it is not waited for once it is on its stream; see await_left()
  };
  /// Runs what `issue` launches. All ranks, in the same order.
  void run_alone(const Alone& where, const std::string& what, const std::function<void()>& issue);
  /// Until all that was left is through. Before anything else waits for its stream: that would neither give up nor
  /// stop.
  void await_left();

 private:
  /// A message on its way to this rank, or arrived and not yet asked for.
  struct Arrival {
    int from = 0, tag = 0;
    std::size_t bytes = 0;
    Pinned room{};       ///< none: it goes straight into the receiver's buffer
    Awaited receiver{};  ///< none: nobody has asked for it
    bool landed = false;
  };
  using Arriving = std::shared_ptr<Arrival>;

  /// The data of one round.
  struct Flight {
    std::optional<Operation> operation{};  ///< none: nothing to send or to receive
    std::vector<Sent> sends{};
    std::vector<Arriving> arrivals{};
    std::vector<Transfer> transfers{};
    Pace::Time begin{};
    bool answers = false;  ///< the small exchange
  };

  /// The copy of a late message into device memory.
  struct Delivery {
    Delivery(Arriving a, int rank) : arrival(std::move(a)), end(rank) {}
    Arriving arrival;
    Event end;
  };

  struct Small {
    std::span<const std::uint8_t> mine;
    std::span<std::uint8_t> all;
    Pinned out{}, in{};  ///< of a payload that no header holds
    bool answered = false;
    bool travelling = false;
  };

  void guarded(const std::function<void()>& work);
  /// Until it is through, or at least on its stream.
  void await(Operation& operation, bool to_its_end, const std::string& what);
  void advance(bool join);
  /// Whether something is to be announced or expected.
  [[nodiscard]] bool has_wish() const;
  /// Whether this rank itself needs the present round.
  [[nodiscard]] bool needs_round() const;
  /// Whether the data of all rounds so far are on their streams.
  [[nodiscard]] bool data_is_launched();
  [[nodiscard]] bool has_enough_under_way() const;
  void offer_header();
  [[nodiscard]] bool has_its_share() const;
  void take_headers();
  void require_in_step(std::span<const Header> all) const;
  void plan_sends(Flight& flight);
  void plan_arrivals(const Header& header, int from, Flight& flight);
  void plan_small(std::span<const Header> all, Flight& flight);
  /// The one that this round's data go over, on all ranks.
  [[nodiscard]] Link& link_for(std::span<const Header> all, const Flight& flight);
  void answer(const std::uint8_t* payloads, std::size_t stride);
  /// True: something has come that this rank waits for.
  bool land();
  void land(Flight& flight);
  void deliver(const Arriving& arrival);
  void finish_deliveries();
  void fail(const std::string& what) noexcept;
  void close();

  int rank_, size_, device_;
  double timeout_;
  std::shared_ptr<Stop> stop_;
  bool sockets_;
  std::optional<std::string> failure_;
  PinnedPool pool_;
  std::vector<std::unique_ptr<Link>> links_;  ///< for data
  std::unique_ptr<Headers> headers_;
  std::optional<Stop::Reaction> hang_up_;  ///< of the headers
  bool offered_ = false;                   ///< this rank's header of the present round
  std::optional<Stream> copies_;           ///< of late messages into device memory

  std::deque<Sent> queued_;      ///< not yet announced
  std::vector<Sent> announced_;  ///< in the present round
  std::list<Awaited> posted_;    ///< not yet matched
  std::list<Arriving> unasked_;  ///< not yet matched, under way or landed
  std::list<Flight> flights_;
  std::list<Delivery> deliveries_;
  Pace pace_;
  std::size_t share_ = Pace::least_share;  ///< bytes in a round, but for the message with which they are reached

  std::optional<Operation> left_;  ///< the last one; a communicator's operations follow each other

  std::uint64_t round_ = 0;
  std::uint64_t groups_ = 0;  ///< rounds in which some rank had data to send
  std::optional<Small> small_;
};

}  // namespace laconic::nccl
