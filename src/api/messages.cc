// laconic_send, laconic_recv, laconic_sendrecv, and the same without blocking.
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/arguments.h"
#include "collective/mailroom.h"
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

/// What a call says: whom with, and by which options.
struct Message {
  Letter letter;
  Options options;
  std::optional<Error> wrong{};  ///< with it: the other rank hears

  Message(const Letter& what, const laconic_options* given, std::initializer_list<laconic_dtype> dtypes,
          const Communicator& comm)
      : letter(what), options(comm.defaults()), wrong(read(given, dtypes, options)) {}
};

Letter::Out outward(const void* buf, size_t count, laconic_dtype dtype, int dest, int tag) {
  return {{buffer(buf), count, as_dtype(dtype)}, dest, tag};
}
Letter::In inward(void* buf, size_t count, laconic_dtype dtype, int source, int tag) {
  return {{buffer(buf), count, as_dtype(dtype)}, source, tag};
}

/// Behind those that are under way, if any are.
void now(laconic_comm& comm, const Message& message, size_t* received) {
  const bool busy = comm.mailroom != nullptr && !comm.mailroom->idle();  // first: what has failed is idle, too
  comm.require_usable();
  if (busy) {
    auto submitted = comm.mailroom->submit(message.letter, message.options, message.wrong, received);
    return comm.take_report([&] { return submitted.get(); });
  }
  const Received got = exchange(message.letter, comm.comm, message.options, message.wrong);
  if (received != nullptr) *received = got.count;
}

int block(laconic_comm* comm, const laconic_options* options, std::initializer_list<laconic_dtype> dtypes,
          const Letter& letter, size_t* received) noexcept {
  return guarded([&] {
    Communicator& c = required(comm);
    c.whole([&] { now(*comm, Message(letter, options, dtypes, c), received); });
  });
}

Mailroom& mailroom_of(laconic_comm& comm) {
  comm.require_usable();
  if (comm.memory != nullptr) {
    throw Error(Code::unsupported, "non-blocking messages: none of arrays in the memory of a GPU");
  }
  if (comm.mailroom == nullptr) {
    try {
      comm.mailroom = std::make_unique<Mailroom>(comm.comm.transport());
    } catch (const Error& e) {
      throw Error(e.code(), std::string("non-blocking messages: ") + e.what());
    }
  }
  return *comm.mailroom;
}

bool is_to(const Letter& letter, int rank) {
  return (letter.out && letter.out->to == rank) || (letter.in && letter.in->from == rank);
}

/// Without a request there is nobody to tell later: such a call blocks, as the refusal of its kind would, but where it
/// would wait for itself.
int begin(laconic_comm* comm, const laconic_options* options, std::initializer_list<laconic_dtype> dtypes,
          Letter letter, size_t* received, laconic_request** request) noexcept {
  return guarded([&] {
    if (request != nullptr) *request = nullptr;
    Communicator& c = required(comm);
    c.whole([&] {
      Mailroom& mailroom = mailroom_of(*comm);
      letter.may_be_own = true;
      Message message(letter, options, dtypes, c);
      if (request == nullptr) {
        message.wrong = Error(Code::invalid_argument, "request is null");
        if (is_to(letter, c.rank())) throw Error(*message.wrong);
        return now(*comm, message, received);
      }
      auto made = std::make_unique<laconic_request>();
      made->comm = comm->self;
      made->message = mailroom.submit(message.letter, message.options, message.wrong, received);
      *request = made.release();
    });
  });
}

}  // namespace
}  // namespace laconic::api

namespace api = laconic::api;

extern "C" {

int laconic_send(const void* buf, size_t count, laconic_dtype dtype, int dest, int tag, laconic_comm* comm,
                 const laconic_options* options) {
  return api::block(comm, options, {dtype}, {.out = api::outward(buf, count, dtype, dest, tag)}, nullptr);
}

int laconic_isend(const void* buf, size_t count, laconic_dtype dtype, int dest, int tag, laconic_comm* comm,
                  const laconic_options* options, laconic_request** request) {
  return api::begin(comm, options, {dtype}, {.out = api::outward(buf, count, dtype, dest, tag)}, nullptr, request);
}

int laconic_recv(void* buf, size_t count, laconic_dtype dtype, int source, int tag, size_t* received,
                 laconic_comm* comm, const laconic_options* options) {
  return api::block(comm, options, {dtype}, {.in = api::inward(buf, count, dtype, source, tag)}, received);
}

int laconic_irecv(void* buf, size_t count, laconic_dtype dtype, int source, int tag, size_t* received,
                  laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::begin(comm, options, {dtype}, {.in = api::inward(buf, count, dtype, source, tag)}, received, request);
}

int laconic_sendrecv(const void* sendbuf, size_t sendcount, laconic_dtype sendtype, int dest, int sendtag,
                     void* recvbuf, size_t recvcount, laconic_dtype recvtype, int source, int recvtag, size_t* received,
                     laconic_comm* comm, const laconic_options* options) {
  return api::block(comm, options, {sendtype, recvtype},
                    {.out = api::outward(sendbuf, sendcount, sendtype, dest, sendtag),
                     .in = api::inward(recvbuf, recvcount, recvtype, source, recvtag)},
                    received);
}

int laconic_isendrecv(const void* sendbuf, size_t sendcount, laconic_dtype sendtype, int dest, int sendtag,
                      void* recvbuf, size_t recvcount, laconic_dtype recvtype, int source, int recvtag,
                      size_t* received, laconic_comm* comm, const laconic_options* options, laconic_request** request) {
  return api::begin(comm, options, {sendtype, recvtype},
                    {.out = api::outward(sendbuf, sendcount, sendtype, dest, sendtag),
                     .in = api::inward(recvbuf, recvcount, recvtype, source, recvtag)},
                    received, request);
}

}  // extern "C"
