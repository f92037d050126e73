#include "collective/p2p.h"

namespace laconic {

Received exchange(const Letter& letter, Communicator& comm, const Options& options,
                  const std::optional<Error>& refused) {
  Mail mail(letter, comm, options, refused);
  try {
    while (!mail.done()) {
      if (!mail.step(true, true)) mail.wait();
    }
  } catch (...) {
    Mail::give_up(comm);
    throw;
  }
  return mail.finish();
}

Report send(ConstArray x, int to, int tag, Communicator& comm, const Options& options,
            const std::optional<Error>& refused) {
  return exchange({.out = {{x, to, tag}}}, comm, options, refused).report;
}

Received recv(MutArray room, int from, int tag, Communicator& comm, const Options& options,
              const std::optional<Error>& refused) {
  return exchange({.in = {{room, from, tag}}}, comm, options, refused);
}

Received sendrecv(ConstArray x, int to, int send_tag, MutArray room, int from, int recv_tag, Communicator& comm,
                  const Options& options, const std::optional<Error>& refused) {
  return exchange({.out = {{x, to, send_tag}}, .in = {{room, from, recv_tag}}}, comm, options, refused);
}

}  // namespace laconic
