// Under an MPI launcher the command becomes the executable that was built with that MPI; without, it may become the
// launcher.
#pragma once

#include <string>

namespace laconic::app {

/// Whether no MPI launcher started this process, or as rank 0: whose the one JSON object is.
bool is_first_rank();

/// Does not return when an MPI launcher started this process with a command that ranks carry out together, whatever its
/// options are: laconic-mpi-<flavour> runs in its place, with the same arguments (null-terminated). If they are wrong,
/// it ends all ranks: one that ended without MPI would leave the others waiting for it. Throws Failure(communication)
/// when there is no such executable.
void become_mpi_program(char** arguments);

/// Does not return: the launcher of the MPI `flavour` (empty: of any) runs in this process's place and starts `ranks`
/// of this command line, without its --ranks and --mpi. Throws Failure: usage where there is no such MPI.
[[noreturn]] void become_launcher(const std::string& flavour, int ranks, char** arguments);

}  // namespace laconic::app
