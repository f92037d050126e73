// How ranks exchange bytes. Knows nothing of compression; a collective uses nothing else to communicate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "transport/plain.h"

namespace laconic {

/// One non-blocking operation. Move-only; a destroyed unfinished request is cancelled or completed by its transport.
class Request {
 public:
  /// What a transport keeps for an operation in flight.
  struct State {
    virtual ~State() = default;
    /// True once complete. A receive has stored its byte count in `received`. Throws Error(transport) when it failed.
    virtual bool test() = 0;
    virtual void wait() = 0;
    /// See Request::await(); by default test(), which gives nobody up.
    virtual bool await(bool patient);
    std::size_t received = 0;
  };

  Request() = default;
  explicit Request(std::unique_ptr<State> s) : state_(std::move(s)) {}
  [[nodiscard]] bool active() const { return state_ != nullptr; }
  /// Completes (and deactivates) if it can; an inactive request is complete.
  bool test();
  void wait();
  /// For who waits for several at once: as test(), but throws Error(transport) where wait() would have given up by now:
  /// since the first of these calls, or the last one that was `patient`, a rank's time for waiting has passed; or the
  /// other rank has given up.
  bool await(bool patient);
  /// Bytes of a completed receive.
  [[nodiscard]] std::size_t received() const { return received_; }

 private:
  std::unique_ptr<State> state_;
  std::size_t received_ = 0;
};

/// Ranks 0..size-1 of one group. One thread at a time per rank.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Messages between two ranks with the same tag arrive in order. Buffers belong to the transport until complete.
  /// Any length up to SIZE_MAX; a message longer than the posted buffer is Error(transport) on the receiver.
  virtual Request isend(std::span<const std::uint8_t> data, int to, int tag) = 0;
  virtual Request irecv(std::span<std::uint8_t> buffer, int from, int tag) = 0;

  /// The small exact exchange that agrees on metadata: every rank gets every rank's `mine` (same length everywhere),
  /// ordered by rank, in `all` (size() * mine.size() bytes). Latency-bound: one library call where there is one.
  virtual void allgather_small(std::span<const std::uint8_t> mine, std::span<std::uint8_t> all) = 0;

  /// Lets outstanding operations make progress without waiting (cheap; called between chunks of codec work).
  virtual void poll() = 0;

  /// Another transport over the same ranks, for another thread, whose messages never meet this one's. Collective, and
  /// every rank gets one or none: Error(unsupported) then says why.
  virtual std::unique_ptr<Transport> duplicate() = 0;

  /// Another transport over the same ranks for another thread of this rank, for messages of tags that this one does not
  /// use meanwhile: what either sends, either can receive. Nobody else is asked. Error(unsupported) where there is
  /// none.
  virtual std::unique_ptr<Transport> companion();

  /// Which ranks share a node, and so its memory: those with the same number. One for each rank, the same everywhere.
  [[nodiscard]] virtual const std::vector<int>& nodes() const = 0;

  /// Whether a message needs the help of ranks that it does not concern. Every rank must then go on driving (test,
  /// wait, poll) until its own messages are through, and after that enter an allgather_small, with which whatever they
  /// do together must end: nobody needs to help any more when that is done. So a message between two ranks alone cannot
  /// be.
  [[nodiscard]] virtual bool needs_everyone() const { return false; }

  /// Whether nothing touches the buffers of requests that are destroyed, even after a failure.
  [[nodiscard]] virtual bool lets_go() const { return false; }

  /// Whether messages of this rank may lie in the memory of its GPU, wherever they lie on the other side. What one
  /// holds must be there when it is sent; what has been received is there for every stream.
  [[nodiscard]] virtual bool takes_device_memory() const { return false; }

  /// The plain library's own collectives over these ranks; null where there is no such library.
  virtual PlainCollectives* plain() { return nullptr; }

  /// For messages: "MPI (Open MPI 4.1.4)", "threads".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Collective: every rank's values, in rank order. The same number of them everywhere.
template <typename T>
std::vector<T> allgather_values(Transport& t, std::span<const T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(mine.size() * static_cast<std::size_t>(t.size()));
  t.allgather_small({reinterpret_cast<const std::uint8_t*>(mine.data()), mine.size_bytes()},
                    {reinterpret_cast<std::uint8_t*>(all.data()), all.size() * sizeof(T)});
  return all;
}
template <typename T>
std::vector<T> allgather_value(Transport& t, const T& mine) {
  return allgather_values(t, std::span<const T>(&mine, 1));
}

}  // namespace laconic
