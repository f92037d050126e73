// Under an MPI launcher the command becomes the executable that was built with that MPI; without, it may become the
// launcher.
#pragma once

#include <string>
#include <vector>

namespace laconic::app {

/// Whether no MPI launcher started this process, or as rank 0: whose the one JSON object is.
bool is_first_rank();

/// Does not return when an MPI launcher started this process with a command that ranks carry out together, whatever its
/// options are: laconic-mpi-<flavour> runs in its place, with the same arguments (null-terminated). If they are wrong,
/// it ends all ranks: one that ended without MPI would leave the others waiting for it. Throws Failure(communication)
/// when there is no such executable.
void become_mpi_program(char** arguments);

/// Ranks that this command is to start.
struct Launch {
  std::string flavour;  ///< by the launcher of this MPI; empty: of any
  int ranks = 1;
  std::string link;               ///< rate of the links between emulated hosts, one for each rank; empty: this machine
  std::vector<std::string> more;  ///< that they are told besides
};

/// Does not return: the launcher runs in this process's place and starts ranks of this command line, without its
/// --ranks and --mpi. Throws Failure: usage where there is no such MPI, or no emulated hosts.
[[noreturn]] void become_launcher(const Launch& launch, char** arguments);

}  // namespace laconic::app
