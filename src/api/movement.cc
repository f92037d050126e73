// laconic_bcast and the other calls in which data moves and nothing is computed.
#include "api/calls.h"
#include "collective/allgather.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/gather.h"
#include "collective/scatter.h"

namespace laconic::api {

const Report& Bcast::run(Communicator& on, const Options& options) const {
  return laconic::bcast({buffer(buf), count, as_dtype(dtype)}, root, on, options);
}

// Writing to a part of sendbuf does not happen: in place, the root's part is where it should be.
const Report& Scatter::run(Communicator& on, const Options& options) const {
  const bool at_root = on.rank() == root;
  const std::size_t all = at_root ? count * static_cast<std::size_t>(on.size()) : 0;
  const ConstArray send{buffer(sendbuf), all, as_dtype(dtype)};
  void* const part = at_root ? part_of(const_cast<void*>(send.data), count, send.dtype, on) : nullptr;
  void* const to = recvbuf == LACONIC_IN_PLACE ? part : recvbuf;
  return scatter_equal(send, {to, count, send.dtype}, root, on, options);
}

const Report& Scatterv::run(Communicator& on, const Options& options) const {
  const ConstArray send{buffer(sendbuf), shares.extent(), as_dtype(dtype)};
  void* const part = shares.part_of(const_cast<void*>(send.data), send.dtype, on);
  const MutArray recv = in_place(on) ? MutArray{part, shares.counts.own(on), send.dtype}
                                     : MutArray{buffer(recvbuf), recvcount, send.dtype};
  return laconic::scatter(send, shares.parts(), recv, root, on, options);
}

const Report& Gather::run(Communicator& on, const Options& options) const {
  const bool at_root = on.rank() == root;
  const std::size_t all = at_root ? count * static_cast<std::size_t>(on.size()) : 0;
  const MutArray recv{buffer(recvbuf), all, as_dtype(dtype)};
  const void* const part = at_root ? part_of(recv.data, count, recv.dtype, on) : nullptr;
  return gather_equal({in_place_or(sendbuf, part), count, recv.dtype}, recv, root, on, options);
}

const Report& Gatherv::run(Communicator& on, const Options& options) const {
  const MutArray recv{buffer(recvbuf), parts.extent(), as_dtype(dtype)};
  const void* const part = parts.part_of(recv.data, recv.dtype, on);
  const ConstArray send = in_place(on) ? ConstArray{part, parts.counts.own(on), recv.dtype}
                                       : ConstArray{buffer(sendbuf), sendcount, recv.dtype};
  return laconic::gather(send, recv, parts.parts(), root, on, options);
}

const Report& Allgather::run(Communicator& on, const Options& options) const {
  const MutArray recv{buffer(recvbuf), count * static_cast<std::size_t>(on.size()), as_dtype(dtype)};
  const void* const part = part_of(recv.data, count, recv.dtype, on);
  return allgather_equal({in_place_or(sendbuf, part), count, recv.dtype}, recv, on, options);
}

const Report& Allgatherv::run(Communicator& on, const Options& options) const {
  const MutArray recv{buffer(recvbuf), parts.extent(), as_dtype(dtype)};
  const void* const part = parts.part_of(recv.data, recv.dtype, on);
  const ConstArray send{in_place_or(sendbuf, part), parts.counts.own(on), recv.dtype};
  return laconic::allgather(send, recv, parts.parts(), on, options);
}

const Report& Alltoall::run(Communicator& on, const Options& options) const {
  const MutArray recv{buffer(recvbuf), count * static_cast<std::size_t>(on.size()), as_dtype(dtype)};
  return laconic::alltoall({in_place_or(sendbuf, recv.data), recv.count, recv.dtype}, recv, on, options);
}

const Report& Alltoallv::run(Communicator& on, const Options& options) const {
  const Placed& from = sends_as_it_receives() ? in : out;
  const MutArray recv{buffer(recvbuf), in.extent(), as_dtype(dtype)};
  return laconic::alltoallv({in_place_or(sendbuf, recv.data), from.extent(), recv.dtype}, from.parts(), recv,
                            in.parts(), on, options);
}

}  // namespace laconic::api

namespace api = laconic::api;

extern "C" {

int laconic_bcast(void* buf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                  const laconic_options* options) {
  return api::now(comm, options, api::Bcast{buf, count, dtype, root});
}

int laconic_scatter(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                    const laconic_options* options) {
  return api::now(comm, options, api::Scatter{sendbuf, recvbuf, count, dtype, root});
}

int laconic_scatterv(const void* sendbuf, const size_t* sendcounts, const size_t* displs, void* recvbuf,
                     size_t recvcount, laconic_dtype dtype, int root, laconic_comm* comm,
                     const laconic_options* options) {
  return api::now(comm, options,
                  api::Scatterv{sendbuf, {sendcounts, displs, root, comm}, recvbuf, recvcount, dtype, root});
}

int laconic_gather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, int root, laconic_comm* comm,
                   const laconic_options* options) {
  return api::now(comm, options, api::Gather{sendbuf, count, recvbuf, dtype, root});
}

int laconic_gatherv(const void* sendbuf, size_t sendcount, void* recvbuf, const size_t* recvcounts,
                    const size_t* displs, laconic_dtype dtype, int root, laconic_comm* comm,
                    const laconic_options* options) {
  return api::now(comm, options,
                  api::Gatherv{sendbuf, sendcount, recvbuf, {recvcounts, displs, root, comm}, dtype, root});
}

int laconic_allgather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options) {
  return api::now(comm, options, api::Allgather{sendbuf, count, recvbuf, dtype});
}

int laconic_allgatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts, const size_t* displs,
                       laconic_dtype dtype, laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, options, api::Allgatherv{sendbuf, recvbuf, {recvcounts, displs, comm}, dtype});
}

int laconic_alltoall(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_comm* comm,
                     const laconic_options* options) {
  return api::now(comm, options, api::Alltoall{sendbuf, recvbuf, count, dtype});
}

int laconic_alltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                      const size_t* recvcounts, const size_t* rdispls, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options) {
  return api::now(comm, options,
                  api::Alltoallv{sendbuf, {sendcounts, sdispls, comm}, recvbuf, {recvcounts, rdispls, comm}, dtype});
}

}  // extern "C"
