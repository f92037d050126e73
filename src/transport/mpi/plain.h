// MPI's collectives behind plain.h.
#pragma once

#include <mpi.h>

#include <memory>

#include "transport/plain.h"

namespace laconic {

/// Over comm, which must outlive it and return errors.
std::unique_ptr<PlainCollectives> make_plain_mpi(MPI_Comm comm);

}  // namespace laconic
