// Under an MPI launcher the command becomes the executable that was built with that MPI.
#pragma once

namespace laconic::app {

/// Whether an MPI launcher started this process as another rank than 0, which says what all have to say.
bool is_silent_rank();

/// Does not return when an MPI launcher started this process: laconic-mpi-<flavour> runs in its place, with the same
/// arguments (null-terminated). Throws Failure(communication) when there is no such executable.
void become_mpi_program(char** arguments);

}  // namespace laconic::app
