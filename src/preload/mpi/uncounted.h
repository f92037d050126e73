// What the program's ranks ask each other over the program's communicators. By collectives that do not block: of all
// others MPICH counts how many there were over a communicator (MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD), and takes another
// algorithm after some, by which the program's own sums would be rounded differently than without Laconic.
#pragma once

#include <mpi.h>

namespace laconic::preload {

/// MPI's code. Collective; waits as MPI does.
inline int uncounted_allreduce(int& value, MPI_Op op, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, op, comm, &request);
  return code == MPI_SUCCESS ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

/// Rank 0's characters. As above.
inline int uncounted_bcast(char* text, int length, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Ibcast(text, length, MPI_CHAR, 0, comm, &request);
  return code == MPI_SUCCESS ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

}  // namespace laconic::preload
