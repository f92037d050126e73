// MPI's collectives behind plain.h.
#pragma once

#include <mpi.h>

#include <memory>

#include "transport/plain.h"

namespace laconic {

/// Over comm, and messages over own, where nothing else has the tag. Both must outlive it, have the same ranks and
/// return errors. Those over comm, if it is another one, are noted, as error_of_meeting() says.
std::unique_ptr<PlainCollectives> make_plain_mpi(MPI_Comm comm, MPI_Comm own, int tag);

}  // namespace laconic
