// laconic_send, laconic_recv, laconic_sendrecv.
#include "api/arguments.h"
#include "collective/p2p.h"

namespace laconic::api {
namespace {

/// The options of a call that sends. Where they cannot be understood, the receiver hears of it and fails too.
Options options_of_send(const laconic_options* given, int to, int tag, Communicator& comm) {
  try {
    return options_from(given, comm.defaults());
  } catch (const Error& e) {
    refuse_send(to, tag, comm, e);
  }
}

}  // namespace
}  // namespace laconic::api

namespace lac = laconic;
namespace api = laconic::api;

extern "C" {

int laconic_send(const void* buf, size_t count, laconic_dtype dtype, int dest, int tag, laconic_comm* comm,
                 const laconic_options* options) {
  return api::guarded([&] {
    lac::Communicator& c = api::required(comm);
    const lac::Options o = api::options_of_send(options, dest, tag, c);
    lac::send({api::buffer(buf), count, api::as_dtype(dtype)}, dest, tag, c, o);
  });
}

int laconic_recv(void* buf, size_t count, laconic_dtype dtype, int source, int tag, size_t* received,
                 laconic_comm* comm, const laconic_options* options) {
  return api::guarded([&] {
    lac::Communicator& c = api::required(comm);
    const lac::Options o = api::options_from(options, c.defaults());
    const auto got = lac::recv({api::buffer(buf), count, api::as_dtype(dtype)}, source, tag, c, o);
    if (received != nullptr) *received = got.count;
  });
}

int laconic_sendrecv(const void* sendbuf, size_t sendcount, laconic_dtype sendtype, int dest, int sendtag,
                     void* recvbuf, size_t recvcount, laconic_dtype recvtype, int source, int recvtag, size_t* received,
                     laconic_comm* comm, const laconic_options* options) {
  return api::guarded([&] {
    lac::Communicator& c = api::required(comm);
    const lac::Options o = api::options_of_send(options, dest, sendtag, c);
    const auto got = lac::sendrecv({api::buffer(sendbuf), sendcount, api::as_dtype(sendtype)}, dest, sendtag,
                                   {api::buffer(recvbuf), recvcount, api::as_dtype(recvtype)}, source, recvtag, c, o);
    if (received != nullptr) *received = got.count;
  });
}

}  // extern "C"
