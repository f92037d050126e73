// MPI's collectives behind plain.h.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>

#include "transport/plain.h"

namespace laconic {

/// Waits for what has been begun: until test() says true. May throw Error(transport) before: then MPI keeps it.
using AwaitPlain = std::function<void(const std::function<bool()>& test)>;

/// Over comm, and messages over own, where nothing else has the tag. Both must outlive it, have the same ranks and
/// return errors. Those over comm, if it is another one, are noted, as error_of_meeting() says. `await`: null where
/// MPI's blocking calls are made; else its non-blocking ones are, and waited for so.
std::unique_ptr<PlainCollectives> make_plain_mpi(MPI_Comm comm, MPI_Comm own, int tag, AwaitPlain await);

}  // namespace laconic
