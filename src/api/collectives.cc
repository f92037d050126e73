// laconic_allreduce and its kin, and what there is to know of a communicator.
#include <numeric>
#include <vector>

#include "api/handle.h"
#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/call.h"
#include "collective/reduce_scatter.h"

namespace laconic::api {
namespace {

laconic::Communicator& required(laconic_comm* comm) {
  if (comm == nullptr) throw Error(Code::invalid_argument, "comm is null");
  return comm->comm;
}

/// The options of a call. Where they cannot be understood, the other ranks hear of it and fail too.
Options options_of_call(const laconic_options* given, Collective collective, Communicator& comm) {
  try {
    return options_from(given, comm.defaults());
  } catch (const Error& e) {
    refuse(collective, comm, e);
  }
}

DType as_dtype(laconic_dtype dtype) { return static_cast<DType>(dtype); }  // checked, with the others, by the call

/// The counts of all ranks; empty where recvcounts is null, which the call then refuses.
std::vector<std::size_t> counts_from(const size_t* recvcounts, const Communicator& comm) {
  if (recvcounts == nullptr) return {};
  return {recvcounts, recvcounts + comm.size()};
}

std::size_t before(const std::vector<std::size_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

const void* in_place_or(const void* sendbuf, const void* place) {
  return sendbuf == LACONIC_IN_PLACE ? place : sendbuf;
}

void fill(laconic_stats& out, const Stats& s, const Report& last) {
  if (out.struct_size < sizeof out) {
    throw Error(Code::invalid_argument, "stats: set struct_size to sizeof(laconic_stats)");
  }
  out.calls = s.calls;
  out.original_bytes = s.original_bytes;
  out.wire_bytes = s.wire_bytes;
  out.codec_seconds = s.codec_seconds;
  out.wire_seconds = s.wire_seconds;
  out.compute_seconds = s.compute_seconds;
  out.other_seconds = s.other_seconds;
  out.operand_bound = last.operand_bound;
  out.result_bound = last.result_bound;
}

const Communicator& required(const laconic_comm* comm, const laconic_stats* stats) {
  if (comm == nullptr || stats == nullptr) throw Error(Code::invalid_argument, "comm or stats is null");
  return comm->comm;
}

void gather(const void* sendbuf, void* recvbuf, const std::vector<std::size_t>& counts, DType dtype, Communicator& comm,
            const Options& options) {
  const std::size_t own = counts.empty() ? 0 : counts[static_cast<std::size_t>(comm.rank())];
  const std::size_t total = before(counts, static_cast<int>(counts.size()));
  const MutArray recv{recvbuf, total, dtype};
  const std::size_t first = counts.empty() ? 0 : before(counts, comm.rank());
  allgather({in_place_or(sendbuf, slice_of(recv, first, own).data), own, dtype}, recv, comm, options);
}

}  // namespace
}  // namespace laconic::api

namespace lac = laconic;
using lac::Collective;
using lac::api::as_dtype;
using lac::api::guarded;

extern "C" {

int laconic_comm_rank(const laconic_comm* comm) { return comm == nullptr ? -1 : comm->comm.rank(); }

int laconic_comm_size(const laconic_comm* comm) { return comm == nullptr ? -1 : comm->comm.size(); }

int laconic_comm_set_options(laconic_comm* comm, const laconic_options* options) {
  return guarded([&] {
    lac::Communicator& c = lac::api::required(comm);
    c.set_defaults(lac::api::options_from(options, lac::api::options_from_environment()));
  });
}

int laconic_comm_last(const laconic_comm* comm, laconic_stats* stats) {
  return guarded([&] {
    const lac::Communicator& c = lac::api::required(comm, stats);
    lac::api::fill(*stats, c.last().stats, c.last());
  });
}

int laconic_comm_total(const laconic_comm* comm, laconic_stats* stats) {
  return guarded([&] {
    const lac::Communicator& c = lac::api::required(comm, stats);
    lac::api::fill(*stats, c.total(), c.last());
  });
}

void laconic_comm_free(laconic_comm* comm) { delete comm; }

int laconic_allreduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                      laconic_comm* comm, const laconic_options* options) {
  return guarded([&] {
    lac::Communicator& c = lac::api::required(comm);
    const lac::Options o = lac::api::options_of_call(options, Collective::allreduce, c);
    lac::allreduce({lac::api::in_place_or(sendbuf, recvbuf), count, as_dtype(dtype)}, {recvbuf, count, as_dtype(dtype)},
                   static_cast<lac::Op>(op), c, o);
  });
}

int laconic_reduce_scatter(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                           laconic_op op, laconic_comm* comm, const laconic_options* options) {
  return guarded([&] {
    lac::Communicator& c = lac::api::required(comm);
    const lac::Options o = lac::api::options_of_call(options, Collective::reduce_scatter, c);
    const auto counts = lac::api::counts_from(recvcounts, c);
    const std::size_t own = counts.empty() ? 0 : counts[static_cast<std::size_t>(c.rank())];
    const std::size_t total = lac::api::before(counts, static_cast<int>(counts.size()));
    lac::reduce_scatter({lac::api::in_place_or(sendbuf, recvbuf), total, as_dtype(dtype)},
                        {recvbuf, own, as_dtype(dtype)}, counts, static_cast<lac::Op>(op), c, o);
  });
}

int laconic_reduce_scatter_block(const void* sendbuf, void* recvbuf, size_t recvcount, laconic_dtype dtype,
                                 laconic_op op, laconic_comm* comm, const laconic_options* options) {
  if (comm == nullptr) return lac::api::report(lac::Code::invalid_argument, "comm is null");
  return guarded([&] {
    const std::vector<size_t> counts(static_cast<std::size_t>(comm->comm.size()), recvcount);
    const int code = laconic_reduce_scatter(sendbuf, recvbuf, counts.data(), dtype, op, comm, options);
    if (code != LACONIC_OK) throw lac::Error(static_cast<lac::Code>(code), std::string(laconic_last_error()));
  });
}

int laconic_allgather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options) {
  return guarded([&] {
    lac::Communicator& c = lac::api::required(comm);
    const lac::Options o = lac::api::options_of_call(options, Collective::allgather, c);
    const std::vector<std::size_t> counts(static_cast<std::size_t>(c.size()), count);
    lac::api::gather(sendbuf, recvbuf, counts, as_dtype(dtype), c, o);
  });
}

int laconic_allgatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                       laconic_comm* comm, const laconic_options* options) {
  return guarded([&] {
    lac::Communicator& c = lac::api::required(comm);
    const lac::Options o = lac::api::options_of_call(options, Collective::allgather, c);
    if (recvcounts == nullptr) {
      lac::refuse(Collective::allgather, c, lac::Error(lac::Code::invalid_argument, "recvcounts is null"));
    }
    lac::api::gather(sendbuf, recvbuf, lac::api::counts_from(recvcounts, c), as_dtype(dtype), c, o);
  });
}

}  // extern "C"
