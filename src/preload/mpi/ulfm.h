// What MPIs that go on after a failure (User Level Failure Mitigation) say of a communicator.
#pragma once

#include <mpi.h>

/// Calls over the communicator that are served end with errors, too. Few headers have it.
extern "C" int MPIX_Comm_revoke(MPI_Comm comm);

namespace laconic::preload {

/// Why nothing more can be done over it, as MPI itself would say: its error class of revoked communicators or of ranks
/// that failed; MPI_SUCCESS: neither, or an MPI that does not tell. Local.
int class_of_failure(MPI_Comm comm);

}  // namespace laconic::preload
