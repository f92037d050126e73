// Ranks of an MPI communicator. Compiled once per MPI library (laconic_openmpi, laconic_mpich). Everything here goes by
// the PMPI names, so that no wrapper of MPI calls, Laconic's own drop-in library least of all, meets its messages.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "transport/timeout.h"
#include "transport/transport.h"

namespace laconic {

/// Collective over `comm`, which is duplicated: Laconic's messages never meet the program's. MPI must be initialised
/// (MPI_THREAD_FUNNELED or more when several threads exist) and outlive the transport; destroying it is collective too.
/// Throws Error(transport) with MPI's own text where MPI fails.
std::unique_ptr<Transport> make_mpi_transport(MPI_Comm comm, double timeout_seconds = default_timeout());

/// The same over a communicator that is the transport's own from now on. `nodes`: for each rank the lowest one that it
/// shares memory with. Exchanges nothing.
std::unique_ptr<Transport> adopt_mpi_transport(MPI_Comm own, double timeout_seconds, std::vector<int> nodes);

/// Such nodes. Collective. Throws Error(transport).
std::vector<int> find_mpi_nodes(MPI_Comm comm);

}  // namespace laconic
