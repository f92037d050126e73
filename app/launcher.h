// Under an MPI launcher the command becomes the executable that was built with that MPI.
#pragma once

namespace laconic::app {

/// Whether no MPI launcher started this process, or as rank 0: whose the one JSON object is.
bool is_first_rank();

/// Does not return when an MPI launcher started this process with a command that ranks carry out together, whatever its
/// options are: laconic-mpi-<flavour> runs in its place, with the same arguments (null-terminated). If they are wrong,
/// it ends all ranks: one that ended without MPI would leave the others waiting for it. Throws Failure(communication)
/// when there is no such executable.
void become_mpi_program(char** arguments);

}  // namespace laconic::app
