// What can be known of the program before MPI has been initialised.
#pragma once

#include <string>

namespace laconic::preload {

/// The file of another MPI library than the one that this was built for, if the program has one; else empty.
std::string foreign_mpi();

/// Whether the program uses another MPI library than the one that this library was built for: handles and constants
/// differ, so nothing can be served. Says so once, on standard error of rank 0.
bool is_foreign_mpi();

/// MPI begins, by a function of this library. Where it began by another (a tool's in front, which calls MPI's own), who
/// asked for a report hears at the end why there is none.
void note_begin();

/// Whether MPI may be asked to let several threads in although the program did not: calls in the background need it,
/// and others become slower by it, so a program that has none of those is left alone. MPICH hangs where ranks do not
/// have the same level, and ranks may run different programs; so there only what started all ranks alike, a launcher
/// with this library in its environment, is reason enough (`laconic run` looks at the program). LACONIC_NONBLOCKING
/// decides otherwise.
bool may_raise_thread_level();

/// Whether the program sends in parts (MPI_Psend_init) by Open MPI 5, which duplicates MPI_COMM_WORLD for that without
/// blocking, when it gets round to it, unseen, and then takes others' calls for its own. Not Python's mpi4py, which has
/// every function whether its program uses it or not.
bool sends_in_parts();

}  // namespace laconic::preload
