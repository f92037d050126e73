// What the program's ranks ask each other over the program's communicators. By collectives that do not block: of all
// others MPICH counts how many there were over a communicator (MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD), and takes another
// algorithm after some, by which the program's own sums would be rounded differently than without Laconic.
#pragma once

#include <mpi.h>

#include <memory>

#include "transport/timeout.h"

namespace laconic::preload {

/// `begin` starts a call on what `value` points to. Collective. Returns MPI's code; waits as MPI does, or with a
/// timeout so many seconds, and then throws Error(transport): MPI has the value for good.
template <typename T, typename Begin>
int uncounted(std::unique_ptr<T>& value, MPI_Comm comm, double timeout, Begin&& begin) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = begin(value.get(), &request);
  if (code != MPI_SUCCESS) return code;
  if (timeout <= 0) return PMPI_Wait(&request, MPI_STATUS_IGNORE);
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const auto done = [&] {
    int over = 0;
    code = PMPI_Test(&request, &over, MPI_STATUS_IGNORE);
    return over != 0 || code != MPI_SUCCESS;
  };
  try {
    wait_until(done, rank, all_to_call, timeout);
  } catch (...) {
    static_cast<void>(value.release());
    throw;
  }
  return code;
}

inline int uncounted_allreduce(int& value, MPI_Op op, MPI_Comm comm, double timeout = 0) {
  auto all = std::make_unique<int>(value);
  const int code = uncounted(all, comm, timeout, [&](int* v, MPI_Request* request) {
    return PMPI_Iallreduce(MPI_IN_PLACE, v, 1, MPI_INT, op, comm, request);
  });
  if (code == MPI_SUCCESS) value = *all;
  return code;
}

/// Rank 0's.
template <typename Text>
int uncounted_bcast(std::unique_ptr<Text>& text, MPI_Comm comm, double timeout) {
  return uncounted(text, comm, timeout, [&](Text* t, MPI_Request* request) {
    return PMPI_Ibcast(t, static_cast<int>(sizeof(Text)), MPI_CHAR, 0, comm, request);
  });
}

}  // namespace laconic::preload
