// The collectives of the MPI library itself: what Laconic's are measured against. Built once per MPI library.
#pragma once

#include <string>

#include "collective/metadata.h"
#include "core/array.h"

namespace laconic::app {

/// "Open MPI v4.1.4": the first words of what the library says of itself.
std::string mpi_library_name();

/// Over MPI_COMM_WORLD, f32 and f64; sums, root 0; bcast: from and to recv. Throws Failure: usage for more elements
/// than MPI's int can count, communication where MPI fails.
void mpi_collective(Collective collective, ConstArray send, MutArray recv);

}  // namespace laconic::app
