// A communicator of our own and the stream that its operations go on. Everything here goes by the pnccl names, so that
// no wrapper of NCCL calls, Laconic's own drop-in library least of all, meets what it sends.
//
// The communicator does not block: a call that sets up a connection returns ncclInProgress, and its work is on the
// stream only when NCCL says so. A rank that never comes can then be given up.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <span>
#include <string>

#include "transport/nccl/cuda.h"
#include "transport/nccl/stop.h"

namespace laconic::nccl {

/// Part of a group: a send if `from` is set, else a receive. Any memory that a GPU reaches.
struct Transfer {
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
};

/// False while NCCL puts the last operation of a communicator on its stream; nothing else may be called then. Throws
/// Error(transport) if the communicator has failed, whatever it was doing.
[[nodiscard]] bool is_settled(int rank, ncclComm_t comm);

class Link {
 public:
  /// Collective over the ranks of `parent`, which must have nothing under way and need not live on. Gives up after
  /// `timeout` seconds, unless `parent` is a communicator that blocks, and when it is stopped, after which it does not
  /// touch `parent`.
  Link(ncclComm_t parent, int rank, double timeout, Stop& stop);
  /// Aborts what is under way, unless closed.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] ncclComm_t comm() const { return comm_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  [[nodiscard]] int rank() const { return rank_; }

  [[nodiscard]] bool ready() { return is_settled(rank_, comm_); }
  /// Of a call of NCCL: throws Error(transport) with its own text.
  void require(const char* call, ncclResult_t status) const;
  /// All of them at once, on `stream`.
  void exchange(std::span<const Transfer> transfers, cudaStream_t stream);

  /// Nothing is under way: flushes and destroys. Every rank must, sooner or later.
  void close(double timeout);
  void abort() noexcept;
  /// After abort(): until nothing on the stream touches memory any more.
  void await_silence() noexcept;

 private:
  int rank_;
  Stream stream_;
  ncclComm_t comm_ = nullptr;
};

/// What was launched last over a communicator, from there to its end.
class Operation {
 public:
  Operation(const Link& link, cudaStream_t stream) : Operation(link.rank(), link.comm(), stream) {}
  Operation(int rank, ncclComm_t comm, cudaStream_t stream) : rank_(rank), comm_(comm), stream_(stream), end_(rank) {}
  [[nodiscard]] ncclComm_t comm() const { return comm_; }
  /// Whether it is on its stream.
  [[nodiscard]] bool launched();
  [[nodiscard]] bool done() { return launched() && end_.passed(); }

 private:
  int rank_;
  ncclComm_t comm_;
  cudaStream_t stream_;
  Event end_;
  bool launched_ = false;
};

}  // namespace laconic::nccl
