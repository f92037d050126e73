// The collectives with the arguments of the C interface. Each can be run now, or copied and run later; its counts are
// looked at first (make()).
#pragma once

#include "api/arguments.h"

namespace laconic::api {

struct Allreduce {
  static constexpr Collective collective = Collective::allreduce;
  const void* sendbuf;
  void* recvbuf;
  size_t count;
  laconic_dtype dtype;
  laconic_op op;
  void require_counts(const Communicator& /*on*/) const { require_count("count", count, as_dtype(dtype)); }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Reduce {
  static constexpr Collective collective = Collective::reduce;
  const void* sendbuf;
  void* recvbuf;
  size_t count;
  laconic_dtype dtype;
  laconic_op op;
  int root;
  void require_counts(const Communicator& /*on*/) const { require_count("count", count, as_dtype(dtype)); }
  const Report& run(Communicator& on, const Options& options) const;
};

/// Scan or exscan.
template <Collective which>
struct Prefix {
  static constexpr Collective collective = which;
  const void* sendbuf;
  void* recvbuf;
  size_t count;
  laconic_dtype dtype;
  laconic_op op;
  void require_counts(const Communicator& /*on*/) const { require_count("count", count, as_dtype(dtype)); }
  const Report& run(Communicator& on, const Options& options) const;
};
using Scan = Prefix<Collective::scan>;
using Exscan = Prefix<Collective::exscan>;

struct ReduceScatter {
  static constexpr Collective collective = Collective::reduce_scatter;
  const void* sendbuf;
  void* recvbuf;
  Numbers counts;
  laconic_dtype dtype;
  laconic_op op;
  void require_counts(const Communicator& /*on*/) const {
    api::require_counts("recvcounts", "", {.counts = counts.get()}, as_dtype(dtype));
  }
  const Report& run(Communicator& on, const Options& options) const;
};

struct ReduceScatterBlock {
  static constexpr Collective collective = Collective::reduce_scatter;
  const void* sendbuf;
  void* recvbuf;
  size_t recvcount;
  laconic_dtype dtype;
  laconic_op op;
  void require_counts(const Communicator& on) const {
    require_count("recvcount", recvcount, as_dtype(dtype), on.size());
  }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Bcast {
  static constexpr Collective collective = Collective::bcast;
  void* buf;
  size_t count;
  laconic_dtype dtype;
  int root;
  void require_counts(const Communicator& /*on*/) const { require_count("count", count, as_dtype(dtype)); }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Scatter {
  static constexpr Collective collective = Collective::scatter;
  const void* sendbuf;
  void* recvbuf;
  size_t count;
  laconic_dtype dtype;
  int root;
  void require_counts(const Communicator& on) const { require_count("count", count, as_dtype(dtype), on.size()); }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Scatterv {
  static constexpr Collective collective = Collective::scatter;
  const void* sendbuf;
  Placed shares;  ///< of the root
  void* recvbuf;
  size_t recvcount;
  laconic_dtype dtype;
  int root;
  void require_counts(const Communicator& on) const {
    if (on.rank() == root) api::require_counts("sendcounts", "displs", shares.parts(), as_dtype(dtype));
    if (!in_place(on)) require_count("recvcount", recvcount, as_dtype(dtype));
  }
  [[nodiscard]] bool in_place(const Communicator& on) const { return recvbuf == LACONIC_IN_PLACE && on.rank() == root; }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Gather {
  static constexpr Collective collective = Collective::gather;
  const void* sendbuf;
  size_t count;
  void* recvbuf;
  laconic_dtype dtype;
  int root;
  void require_counts(const Communicator& on) const { require_count("count", count, as_dtype(dtype), on.size()); }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Gatherv {
  static constexpr Collective collective = Collective::gather;
  const void* sendbuf;
  size_t sendcount;
  void* recvbuf;
  Placed parts;  ///< of the root
  laconic_dtype dtype;
  int root;
  void require_counts(const Communicator& on) const {
    if (on.rank() == root) api::require_counts("recvcounts", "displs", parts.parts(), as_dtype(dtype));
    if (!in_place(on)) require_count("sendcount", sendcount, as_dtype(dtype));
  }
  [[nodiscard]] bool in_place(const Communicator& on) const { return sendbuf == LACONIC_IN_PLACE && on.rank() == root; }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Allgather {
  static constexpr Collective collective = Collective::allgather;
  const void* sendbuf;
  size_t count;
  void* recvbuf;
  laconic_dtype dtype;
  void require_counts(const Communicator& on) const { require_count("count", count, as_dtype(dtype), on.size()); }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Allgatherv {
  static constexpr Collective collective = Collective::allgather;
  const void* sendbuf;
  void* recvbuf;
  Placed parts;
  laconic_dtype dtype;
  void require_counts(const Communicator& /*on*/) const {
    api::require_counts("recvcounts", "displs", parts.parts(), as_dtype(dtype));
  }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Alltoall {
  static constexpr Collective collective = Collective::alltoall;
  const void* sendbuf;
  void* recvbuf;
  size_t count;
  laconic_dtype dtype;
  void require_counts(const Communicator& on) const { require_count("count", count, as_dtype(dtype), on.size()); }
  const Report& run(Communicator& on, const Options& options) const;
};

struct Alltoallv {
  static constexpr Collective collective = Collective::alltoall;
  const void* sendbuf;
  Placed out;
  void* recvbuf;
  Placed in;
  laconic_dtype dtype;
  void require_counts(const Communicator& /*on*/) const {
    if (!sends_as_it_receives()) api::require_counts("sendcounts", "sdispls", out.parts(), as_dtype(dtype));
    api::require_counts("recvcounts", "rdispls", in.parts(), as_dtype(dtype));
  }
  [[nodiscard]] bool sends_as_it_receives() const { return sendbuf == LACONIC_IN_PLACE && out.counts.get().empty(); }
  const Report& run(Communicator& on, const Options& options) const;
};

}  // namespace laconic::api
