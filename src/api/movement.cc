// laconic_bcast and the other calls in which data moves and nothing is computed.
#include "api/calls.h"
#include "collective/allgather.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/gather.h"
#include "collective/scatter.h"

namespace laconic::api {

Work bcast(const Communicator& c, void* buf, size_t count, laconic_dtype dtype, int root,
           const laconic_options* options) {
  return [=, chosen = Chosen(options, c)](Communicator& on) {
    return laconic::bcast({buf, count, as_dtype(dtype)}, root, on, chosen.of(Collective::bcast, on));
  };
}

Work scatter(const Communicator& c, const void* sendbuf, std::vector<std::size_t> counts, bool equal, void* recvbuf,
             size_t recvcount, laconic_dtype dtype, int root, const laconic_options* options) {
  return [=, counts = std::move(counts), chosen = Chosen(options, c)](Communicator& on) {
    const ConstArray send{sendbuf, total(counts), as_dtype(dtype)};
    // Writing to a part of sendbuf does not happen: in place, the root's part is where it should be.
    void* part = part_of(const_cast<void*>(sendbuf), counts, as_dtype(dtype), on);
    const bool in_place = recvbuf == LACONIC_IN_PLACE;
    const MutArray recv{in_place ? part : recvbuf, in_place ? own(counts, on) : recvcount, as_dtype(dtype)};
    const Options& o = chosen.of(Collective::scatter, on);
    return equal ? scatter_equal(send, recv, root, on, o) : laconic::scatter(send, counts, recv, root, on, o);
  };
}

Work gather(const Communicator& c, const void* sendbuf, size_t sendcount, void* recvbuf,
            std::vector<std::size_t> counts, bool equal, laconic_dtype dtype, int root,
            const laconic_options* options) {
  return [=, counts = std::move(counts), chosen = Chosen(options, c)](Communicator& on) {
    const bool in_place = sendbuf == LACONIC_IN_PLACE;
    const void* part = part_of(recvbuf, counts, as_dtype(dtype), on);
    const ConstArray send{in_place ? part : sendbuf, in_place ? own(counts, on) : sendcount, as_dtype(dtype)};
    const Options& o = chosen.of(Collective::gather, on);
    const MutArray recv{recvbuf, total(counts), as_dtype(dtype)};
    return equal ? gather_equal(send, recv, root, on, o) : laconic::gather(send, recv, counts, root, on, o);
  };
}

Work allgather(const Communicator& c, const void* sendbuf, void* recvbuf, std::vector<std::size_t> counts, bool equal,
               laconic_dtype dtype, const laconic_options* options) {
  return [=, counts = std::move(counts), chosen = Chosen(options, c)](Communicator& on) {
    const Options& o = chosen.of(Collective::allgather, on);
    if (counts.empty()) refuse(Collective::allgather, on, Error(Code::invalid_argument, "recvcounts is null"));
    const ConstArray send{in_place_or(sendbuf, part_of(recvbuf, counts, as_dtype(dtype), on)), own(counts, on),
                          as_dtype(dtype)};
    const MutArray recv{recvbuf, total(counts), as_dtype(dtype)};
    return equal ? allgather_equal(send, recv, on, o) : laconic::allgather(send, recv, on, o);
  };
}

Work alltoall(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype,
              const laconic_options* options) {
  return [=, chosen = Chosen(options, c)](Communicator& on) {
    const std::size_t all = count * static_cast<std::size_t>(on.size());
    return laconic::alltoall({in_place_or(sendbuf, recvbuf), all, as_dtype(dtype)}, {recvbuf, all, as_dtype(dtype)}, on,
                             chosen.of(Collective::alltoall, on));
  };
}

Work alltoallv(const Communicator& c, const void* sendbuf, const size_t* sendcounts, void* recvbuf,
               const size_t* recvcounts, laconic_dtype dtype, const laconic_options* options) {
  const bool as_received = sendbuf == LACONIC_IN_PLACE && sendcounts == nullptr;
  return [=, in = counts_from(recvcounts, c), out = counts_from(as_received ? recvcounts : sendcounts, c),
          chosen = Chosen(options, c)](Communicator& on) {
    return laconic::alltoallv({in_place_or(sendbuf, recvbuf), total(out), as_dtype(dtype)}, out,
                              {recvbuf, total(in), as_dtype(dtype)}, in, on, chosen.of(Collective::alltoall, on));
  };
}

}  // namespace laconic::api

namespace api = laconic::api;
using laconic::Communicator;

extern "C" {

int laconic_bcast(void* buf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                  const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) { return api::bcast(c, buf, count, dtype, root, options); });
}

int laconic_scatter(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                    const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::scatter(c, sendbuf, api::same_counts_at(root, count, c), true, recvbuf, count, dtype, root, options);
  });
}

int laconic_scatterv(const void* sendbuf, const size_t* sendcounts, void* recvbuf, size_t recvcount,
                     laconic_dtype dtype, int root, laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::scatter(c, sendbuf, api::counts_at(root, sendcounts, c), false, recvbuf, recvcount, dtype, root,
                        options);
  });
}

int laconic_gather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, int root, laconic_comm* comm,
                   const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::gather(c, sendbuf, count, recvbuf, api::same_counts_at(root, count, c), true, dtype, root, options);
  });
}

int laconic_gatherv(const void* sendbuf, size_t sendcount, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                    int root, laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::gather(c, sendbuf, sendcount, recvbuf, api::counts_at(root, recvcounts, c), false, dtype, root,
                       options);
  });
}

int laconic_allgather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::allgather(c, sendbuf, recvbuf, api::same_counts(count, c), true, dtype, options);
  });
}

int laconic_allgatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                       laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::allgather(c, sendbuf, recvbuf, api::counts_from(recvcounts, c), false, dtype, options);
  });
}

int laconic_alltoall(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_comm* comm,
                     const laconic_options* options) {
  return api::now(comm,
                  [&](const Communicator& c) { return api::alltoall(c, sendbuf, recvbuf, count, dtype, options); });
}

int laconic_alltoallv(const void* sendbuf, const size_t* sendcounts, void* recvbuf, const size_t* recvcounts,
                      laconic_dtype dtype, laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::alltoallv(c, sendbuf, sendcounts, recvbuf, recvcounts, dtype, options);
  });
}

}  // extern "C"
