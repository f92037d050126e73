// MPI's collectives behind plain.h.
#pragma once

#include <mpi.h>

#include <memory>

#include "transport/plain.h"

namespace laconic {

/// Over comm, which must outlive it and return errors. `is_meeting`: errors are noted, as error_of_meeting() says.
std::unique_ptr<PlainCollectives> make_plain_mpi(MPI_Comm comm, bool is_meeting);

}  // namespace laconic
