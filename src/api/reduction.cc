// laconic_allreduce and the other calls that reduce.
#include "api/calls.h"
#include "collective/allreduce.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scan.h"

namespace laconic::api {

Work allreduce(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype,
               laconic_op op, const laconic_options* options) {
  return [=, chosen = Chosen(options, c)](Communicator& on) {
    const ConstArray send{in_place_or(sendbuf, recvbuf), count, as_dtype(dtype)};
    return laconic::allreduce(send, {recvbuf, count, as_dtype(dtype)}, as_op(op), on,
                              chosen.of(Collective::allreduce, on));
  };
}

Work reduce(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
            int root, const laconic_options* options) {
  return [=, chosen = Chosen(options, c)](Communicator& on) {
    const ConstArray send{in_place_or(sendbuf, recvbuf), count, as_dtype(dtype)};
    return laconic::reduce(send, {recvbuf, count, as_dtype(dtype)}, as_op(op), root, on,
                           chosen.of(Collective::reduce, on));
  };
}

Work scan(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
          const laconic_options* options) {
  return [=, chosen = Chosen(options, c)](Communicator& on) {
    const ConstArray send{in_place_or(sendbuf, recvbuf), count, as_dtype(dtype)};
    return laconic::scan(send, {recvbuf, count, as_dtype(dtype)}, as_op(op), on, chosen.of(Collective::scan, on));
  };
}

Work exscan(const Communicator& c, const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
            const laconic_options* options) {
  return [=, chosen = Chosen(options, c)](Communicator& on) {
    const ConstArray send{in_place_or(sendbuf, recvbuf), count, as_dtype(dtype)};
    return laconic::exscan(send, {recvbuf, count, as_dtype(dtype)}, as_op(op), on, chosen.of(Collective::exscan, on));
  };
}

Work reduce_scatter(const Communicator& c, const void* sendbuf, void* recvbuf, std::vector<std::size_t> counts,
                    laconic_dtype dtype, laconic_op op, const laconic_options* options) {
  return [=, counts = std::move(counts), chosen = Chosen(options, c)](Communicator& on) {
    const ConstArray send{in_place_or(sendbuf, recvbuf), total(counts), as_dtype(dtype)};
    return laconic::reduce_scatter(send, {recvbuf, own(counts, on), as_dtype(dtype)}, counts, as_op(op), on,
                                   chosen.of(Collective::reduce_scatter, on));
  };
}

}  // namespace laconic::api

namespace api = laconic::api;
using laconic::Communicator;

extern "C" {

int laconic_allreduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                      laconic_comm* comm, const laconic_options* options) {
  return api::now(
      comm, [&](const Communicator& c) { return api::allreduce(c, sendbuf, recvbuf, count, dtype, op, options); });
}

int laconic_reduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op, int root,
                   laconic_comm* comm, const laconic_options* options) {
  return api::now(
      comm, [&](const Communicator& c) { return api::reduce(c, sendbuf, recvbuf, count, dtype, op, root, options); });
}

int laconic_scan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                 laconic_comm* comm, const laconic_options* options) {
  return api::now(comm,
                  [&](const Communicator& c) { return api::scan(c, sendbuf, recvbuf, count, dtype, op, options); });
}

int laconic_exscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                   laconic_comm* comm, const laconic_options* options) {
  return api::now(comm,
                  [&](const Communicator& c) { return api::exscan(c, sendbuf, recvbuf, count, dtype, op, options); });
}

int laconic_reduce_scatter(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                           laconic_op op, laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::reduce_scatter(c, sendbuf, recvbuf, api::counts_from(recvcounts, c), dtype, op, options);
  });
}

int laconic_reduce_scatter_block(const void* sendbuf, void* recvbuf, size_t recvcount, laconic_dtype dtype,
                                 laconic_op op, laconic_comm* comm, const laconic_options* options) {
  return api::now(comm, [&](const Communicator& c) {
    return api::reduce_scatter(c, sendbuf, recvbuf, api::same_counts(recvcount, c), dtype, op, options);
  });
}

}  // extern "C"
