// How the headers of a round (header.h) come to all ranks. By TCP between the ranks, where all of them can connect
// (sockets): that takes a few tens of microseconds, and none of the GPU. Else by an all-gather over a communicator of
// their own (NCCL), which takes about four times as long. All ranks use the same.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/nccl/cuda.h"
#include "transport/nccl/header.h"
#include "transport/nccl/link.h"
#include "transport/nccl/socket.h"
#include "transport/nccl/stop.h"

namespace laconic::nccl {

class Headers {
 public:
  Headers() = default;
  virtual ~Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;

  /// Whether a header that is out occupies the GPU until all ranks answer.
  [[nodiscard]] virtual bool on_device() const = 0;
  /// A round. The one before must have ended.
  virtual void begin(const Header& mine) = 0;
  /// Whether the headers of all ranks have come, and `mine` is with them or on its way. Never waits.
  [[nodiscard]] virtual bool ended() = 0;
  /// Throws Error(transport) if the round cannot end any more, since a rank has gone.
  virtual void require_ranks() const = 0;
  /// After the end, until the next begin(): by rank.
  [[nodiscard]] virtual std::span<const Header> all() const = 0;

  /// Nothing is out. Every rank must, sooner or later.
  virtual void close(double timeout) = 0;
  virtual void abort() noexcept = 0;
  /// Other ranks learn, if they can, that this one goes. From any thread, beside everything but close() and abort().
  virtual void hang_up() noexcept = 0;
  /// After abort(): until nothing touches memory any more.
  virtual void await_silence() noexcept = 0;
};

/// Of one rank, to which everything here must stay.
struct Setup {
  int rank, size;
  double timeout;
  Stop& stop;
  PinnedPool& pool;
  bool sockets;  ///< whether this rank may use them
};

/// Collective over `data`, on which nothing may be under way: ranks agree.
std::unique_ptr<Headers> make_headers(Link& data, const Setup& setup);

std::unique_ptr<Headers> make_nccl_headers(Link& data, const Setup& setup);
/// `peers`: one for each rank, connected; none for itself.
std::unique_ptr<Headers> make_socket_headers(std::vector<Socket> peers, int rank);

}  // namespace laconic::nccl
