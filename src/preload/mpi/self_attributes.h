// The program's attributes of MPI_COMM_SELF, whose delete functions are what it still does when MPI is finalised.
#pragma once

#include <mpi.h>

namespace laconic::preload {

/// Whether MPI lets several threads in until it is finalised. MPICH drops its locks (MPIR_ThreadInfo.isThreaded,
/// mpir_init.c) when MPI_Finalize begins, before it deletes attributes: calls in the background would race with what
/// the program calls there.
#ifdef OPEN_MPI
inline constexpr bool has_locks_to_the_end = true;
#else
inline constexpr bool has_locks_to_the_end = false;
#endif

/// Once, when MPI has begun: notes attributes from now on, and calls `finalizing` when MPI is finalised and
/// delete_attributes_of_self() has not been called: by a tool that calls PMPI_Finalize. Nothing where there are locks.
void note_attributes_of_self(void (*finalizing)());
/// Deletes what has been noted, the last set first, as MPI_Finalize would. The first error of a function of the
/// program's is left to MPI_Finalize, which reports it as ever. Throws what those functions throw.
void delete_attributes_of_self();

}  // namespace laconic::preload
