// laconic_send, laconic_recv, laconic_sendrecv.
#include <initializer_list>
#include <optional>

#include "api/arguments.h"
#include "collective/p2p.h"

namespace laconic::api {
namespace {

/// Over what `o` has; what is wrong with them or the dtypes is told to the other rank by the call itself.
std::optional<Error> read(const laconic_options* given, std::initializer_list<laconic_dtype> dtypes, Options& o) {
  try {
    for (const laconic_dtype dtype : dtypes) require_dtype(dtype);
    read_options(given, o);
    return {};
  } catch (const Error& e) {
    return e;
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
    c.whole([&] {
      lac::Options o = c.defaults();
      const auto wrong = api::read(options, {dtype}, o);
      lac::send({api::buffer(buf), count, api::as_dtype(dtype)}, dest, tag, c, o, wrong);
    });
  });
}

int laconic_recv(void* buf, size_t count, laconic_dtype dtype, int source, int tag, size_t* received,
                 laconic_comm* comm, const laconic_options* options) {
  return api::guarded([&] {
    lac::Communicator& c = api::required(comm);
    c.whole([&] {
      lac::Options o = c.defaults();
      const auto wrong = api::read(options, {dtype}, o);
      const auto got = lac::recv({api::buffer(buf), count, api::as_dtype(dtype)}, source, tag, c, o, wrong);
      if (received != nullptr) *received = got.count;
    });
  });
}

int laconic_sendrecv(const void* sendbuf, size_t sendcount, laconic_dtype sendtype, int dest, int sendtag,
                     void* recvbuf, size_t recvcount, laconic_dtype recvtype, int source, int recvtag, size_t* received,
                     laconic_comm* comm, const laconic_options* options) {
  return api::guarded([&] {
    lac::Communicator& c = api::required(comm);
    c.whole([&] {
      lac::Options o = c.defaults();
      const auto wrong = api::read(options, {sendtype, recvtype}, o);
      const lac::ConstArray send{api::buffer(sendbuf), sendcount, api::as_dtype(sendtype)};
      const lac::MutArray room{api::buffer(recvbuf), recvcount, api::as_dtype(recvtype)};
      const auto got = lac::sendrecv(send, dest, sendtag, room, source, recvtag, c, o, wrong);
      if (received != nullptr) *received = got.count;
    });
  });
}

}  // extern "C"
