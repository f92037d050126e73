// laconic_allreduce and the other calls that reduce.
#include "api/calls.h"
#include "collective/allreduce.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scan.h"

namespace laconic::api {

const Report& Allreduce::run(Communicator& on, const Options& options) const {
  const MutArray recv{buffer(recvbuf), count, as_dtype(dtype)};
  return laconic::allreduce({in_place_or(sendbuf, recv.data), count, recv.dtype}, recv, as_op(op), on, options);
}

const Report& Reduce::run(Communicator& on, const Options& options) const {
  const MutArray recv{buffer(recvbuf), count, as_dtype(dtype)};
  const ConstArray send{in_place_or(sendbuf, recv.data), count, recv.dtype};
  return laconic::reduce(send, recv, as_op(op), root, on, options);
}

// Exscan writes nothing on rank 0, which therefore needs no array to write to. (As if in place: it is left alone.)
template <Collective which>
const Report& Prefix<which>::run(Communicator& on, const Options& options) const {
  const bool to_nowhere = which == Collective::exscan && on.rank() == 0 && recvbuf == nullptr;
  const MutArray recv{to_nowhere ? const_cast<void*>(buffer(sendbuf)) : buffer(recvbuf), count, as_dtype(dtype)};
  const ConstArray send{in_place_or(sendbuf, recv.data), count, recv.dtype};
  return which == Collective::scan ? laconic::scan(send, recv, as_op(op), on, options)
                                   : laconic::exscan(send, recv, as_op(op), on, options);
}
template struct Prefix<Collective::scan>;
template struct Prefix<Collective::exscan>;

const Report& ReduceScatter::run(Communicator& on, const Options& options) const {
  const MutArray recv{buffer(recvbuf), counts.own(on), as_dtype(dtype)};
  const ConstArray send{in_place_or(sendbuf, recv.data), extent_of({.counts = counts.get()}), recv.dtype};
  return laconic::reduce_scatter(send, recv, counts.get(), as_op(op), on, options);
}

const Report& ReduceScatterBlock::run(Communicator& on, const Options& options) const {
  const std::size_t all = recvcount * static_cast<std::size_t>(on.size());
  const MutArray recv{buffer(recvbuf), recvcount, as_dtype(dtype)};
  return laconic::reduce_scatter_block({in_place_or(sendbuf, recv.data), all, recv.dtype}, recv, as_op(op), on,
                                       options);
}

}  // namespace laconic::api

namespace api = laconic::api;

extern "C" {

int laconic_allreduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                      laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, options, api::Allreduce{sendbuf, recvbuf, count, dtype, op});
}

int laconic_reduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op, int root,
                   laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, options, api::Reduce{sendbuf, recvbuf, count, dtype, op, root});
}

int laconic_scan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                 laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, options, api::Scan{sendbuf, recvbuf, count, dtype, op});
}

int laconic_exscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                   laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, options, api::Exscan{sendbuf, recvbuf, count, dtype, op});
}

int laconic_reduce_scatter(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                           laconic_op op, laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, options, api::ReduceScatter{sendbuf, recvbuf, {recvcounts, comm}, dtype, op});
}

int laconic_reduce_scatter_block(const void* sendbuf, void* recvbuf, size_t recvcount, laconic_dtype dtype,
                                 laconic_op op, laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, options, api::ReduceScatterBlock{sendbuf, recvbuf, recvcount, dtype, op});
}

}  // extern "C"
