// Non-blocking calls: laconic_iallreduce and its kin, laconic_test, laconic_wait.
#include <chrono>

#include "api/calls.h"

namespace laconic::api {
namespace {

/// Takes a finished call's request away; throws what the call threw.
void finish(laconic_request** request) {
  const std::unique_ptr<laconic_request> done(std::exchange(*request, nullptr));
  done->comm->comm.record(done->result.get());
}

}  // namespace
}  // namespace laconic::api

namespace api = laconic::api;
using laconic::Communicator;

extern "C" {

int laconic_test(laconic_request** request, int* done) {
  return api::guarded([&] {
    if (request == nullptr || done == nullptr) {
      throw laconic::Error(laconic::Code::invalid_argument, "request or done is null");
    }
    using namespace std::chrono_literals;
    *done = *request == nullptr || (*request)->result.wait_for(0s) == std::future_status::ready ? 1 : 0;
    if (*request != nullptr && *done != 0) api::finish(request);
  });
}

int laconic_wait(laconic_request** request) {
  return api::guarded([&] {
    if (request == nullptr) throw laconic::Error(laconic::Code::invalid_argument, "request is null");
    if (*request != nullptr) api::finish(request);
  });
}

int laconic_iallreduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                       laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::allreduce(c, sendbuf, recvbuf, count, dtype, op, options);
  });
}

int laconic_ireduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op, int root,
                    laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::reduce(c, sendbuf, recvbuf, count, dtype, op, root, options);
  });
}

int laconic_iscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                  laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, request,
                    [&](const Communicator& c) { return api::scan(c, sendbuf, recvbuf, count, dtype, op, options); });
}

int laconic_iexscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                    laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, request,
                    [&](const Communicator& c) { return api::exscan(c, sendbuf, recvbuf, count, dtype, op, options); });
}

int laconic_ireduce_scatter(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                            laconic_op op, laconic_comm* comm, const laconic_options* options,
                            laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::reduce_scatter(c, sendbuf, recvbuf, api::counts_from(recvcounts, c), dtype, op, options);
  });
}

int laconic_ireduce_scatter_block(const void* sendbuf, void* recvbuf, size_t recvcount, laconic_dtype dtype,
                                  laconic_op op, laconic_comm* comm, const laconic_options* options,
                                  laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::reduce_scatter(c, sendbuf, recvbuf, api::same_counts(recvcount, c), dtype, op, options);
  });
}

int laconic_ibcast(void* buf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                   const laconic_options* options, laconic_request** request) {
  return api::later(comm, request,
                    [&](const Communicator& c) { return api::bcast(c, buf, count, dtype, root, options); });
}

int laconic_iscatter(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, int root,
                     laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::scatter(c, sendbuf, api::same_counts_at(root, count, c), true, recvbuf, count, dtype, root, options);
  });
}

int laconic_iscatterv(const void* sendbuf, const size_t* sendcounts, void* recvbuf, size_t recvcount,
                      laconic_dtype dtype, int root, laconic_comm* comm, const laconic_options* options,
                      laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::scatter(c, sendbuf, api::counts_at(root, sendcounts, c), false, recvbuf, recvcount, dtype, root,
                        options);
  });
}

int laconic_igather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, int root, laconic_comm* comm,
                    const laconic_options* options, laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::gather(c, sendbuf, count, recvbuf, api::same_counts_at(root, count, c), true, dtype, root, options);
  });
}

int laconic_igatherv(const void* sendbuf, size_t sendcount, void* recvbuf, const size_t* recvcounts,
                     laconic_dtype dtype, int root, laconic_comm* comm, const laconic_options* options,
                     laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::gather(c, sendbuf, sendcount, recvbuf, api::counts_at(root, recvcounts, c), false, dtype, root,
                       options);
  });
}

int laconic_iallgather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, laconic_comm* comm,
                       const laconic_options* options, laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::allgather(c, sendbuf, recvbuf, api::same_counts(count, c), true, dtype, options);
  });
}

int laconic_iallgatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                        laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::allgather(c, sendbuf, recvbuf, api::counts_from(recvcounts, c), false, dtype, options);
  });
}

int laconic_ialltoall(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options, laconic_request** request) {
  return api::later(comm, request,
                    [&](const Communicator& c) { return api::alltoall(c, sendbuf, recvbuf, count, dtype, options); });
}

int laconic_ialltoallv(const void* sendbuf, const size_t* sendcounts, void* recvbuf, const size_t* recvcounts,
                       laconic_dtype dtype, laconic_comm* comm, const laconic_options* options,
                       laconic_request** request) {
  return api::later(comm, request, [&](const Communicator& c) {
    return api::alltoallv(c, sendbuf, sendcounts, recvbuf, recvcounts, dtype, options);
  });
}

}  // extern "C"
