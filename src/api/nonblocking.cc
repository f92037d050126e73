// Non-blocking calls: laconic_iallreduce and its kin, laconic_test, laconic_wait.
#include <chrono>

#include "api/calls.h"

namespace laconic::api {
namespace {

bool is_done(const laconic_request& request) {
  if (request.message) return request.message->is_done();
  return request.result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

/// Takes a finished call's request away; throws what the call threw.
void finish(laconic_request** request) {
  const std::unique_ptr<laconic_request> done(std::exchange(*request, nullptr));
  const auto get = [&] { return done->message ? done->message->get() : done->result.get(); };
  if (const auto of = done->comm.lock()) {
    of->take_report(get);
  } else {
    get();
  }
}

}  // namespace

void require_background(laconic_comm& comm) {
  if (comm.background == nullptr && comm.no_background.empty()) {
    try {
      comm.begin_background();
    } catch (...) {  // the others have theirs, or wait
      comm.comm.mark_unusable();
      throw;
    }
  }
  if (comm.background == nullptr) throw Error(Code::unsupported, "non-blocking calls: " + comm.no_background);
}

}  // namespace laconic::api

namespace api = laconic::api;

extern "C" {

int laconic_test(laconic_request** request, int* done) {
  return api::guarded([&] {
    if (request == nullptr || done == nullptr) {
      throw laconic::Error(laconic::Code::invalid_argument, "request or done is null");
    }
    *done = *request == nullptr || api::is_done(**request) ? 1 : 0;
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
  return api::later(comm, options, request, api::Allreduce{sendbuf, recvbuf, count, dtype, op});
}

int laconic_ireduce(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op, int root,
                    laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request, api::Reduce{sendbuf, recvbuf, count, dtype, op, root});
}

int laconic_iscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                  laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request, api::Scan{sendbuf, recvbuf, count, dtype, op});
}

int laconic_iexscan(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_op op,
                    laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request, api::Exscan{sendbuf, recvbuf, count, dtype, op});
}

int laconic_ireduce_scatter(const void* sendbuf, void* recvbuf, const size_t* recvcounts, laconic_dtype dtype,
                            laconic_op op, laconic_comm* comm, const laconic_options* options,
                            laconic_request** request) {
  return api::later(comm, options, request, api::ReduceScatter{sendbuf, recvbuf, {recvcounts, comm}, dtype, op});
}

int laconic_ireduce_scatter_block(const void* sendbuf, void* recvbuf, size_t recvcount, laconic_dtype dtype,
                                  laconic_op op, laconic_comm* comm, const laconic_options* options,
                                  laconic_request** request) {
  return api::later(comm, options, request, api::ReduceScatterBlock{sendbuf, recvbuf, recvcount, dtype, op});
}

int laconic_ibcast(void* buf, size_t count, laconic_dtype dtype, int root, laconic_comm* comm,
                   const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request, api::Bcast{buf, count, dtype, root});
}

int laconic_iscatter(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, int root,
                     laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request, api::Scatter{sendbuf, recvbuf, count, dtype, root});
}

int laconic_iscatterv(const void* sendbuf, const size_t* sendcounts, const size_t* displs, void* recvbuf,
                      size_t recvcount, laconic_dtype dtype, int root, laconic_comm* comm,
                      const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request,
                    api::Scatterv{sendbuf, {sendcounts, displs, root, comm}, recvbuf, recvcount, dtype, root});
}

int laconic_igather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, int root, laconic_comm* comm,
                    const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request, api::Gather{sendbuf, count, recvbuf, dtype, root});
}

int laconic_igatherv(const void* sendbuf, size_t sendcount, void* recvbuf, const size_t* recvcounts,
                     const size_t* displs, laconic_dtype dtype, int root, laconic_comm* comm,
                     const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request,
                    api::Gatherv{sendbuf, sendcount, recvbuf, {recvcounts, displs, root, comm}, dtype, root});
}

int laconic_iallgather(const void* sendbuf, size_t count, void* recvbuf, laconic_dtype dtype, laconic_comm* comm,
                       const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request, api::Allgather{sendbuf, count, recvbuf, dtype});
}

int laconic_iallgatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts, const size_t* displs,
                        laconic_dtype dtype, laconic_comm* comm, const laconic_options* options,
                        laconic_request** request) {
  return api::later(comm, options, request, api::Allgatherv{sendbuf, recvbuf, {recvcounts, displs, comm}, dtype});
}

int laconic_ialltoall(const void* sendbuf, void* recvbuf, size_t count, laconic_dtype dtype, laconic_comm* comm,
                      const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request, api::Alltoall{sendbuf, recvbuf, count, dtype});
}

int laconic_ialltoallv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls, void* recvbuf,
                       const size_t* recvcounts, const size_t* rdispls, laconic_dtype dtype, laconic_comm* comm,
                       const laconic_options* options, laconic_request** request) {
  return api::later(comm, options, request,
                    api::Alltoallv{sendbuf, {sendcounts, sdispls, comm}, recvbuf, {recvcounts, rdispls, comm}, dtype});
}

}  // extern "C"
