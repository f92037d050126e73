// What names of files and functions tell about MPI: what the command and the drop-in library both go by.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace laconic::preload {

/// "openmpi", "mpich" or "abi" (the MPI-5 standard ABI) for a file name such as "libmpi.so.40"; empty for other files.
constexpr std::string_view flavour_of_library(std::string_view file) {
  if (file.starts_with("libmpi.so.40")) return "openmpi";
  if (file.starts_with("libmpi_abi.so")) return "abi";
  if (file.starts_with("libmpi.so.12") || file.starts_with("libmpich.so")) return "mpich";
  return "";
}

/// Whether a function is a non-blocking or persistent form of the collectives that are served, in C or Fortran:
/// MPI_Iallreduce, MPI_Bcast_init_c, MPIX_Reduce_init, mpi_ialltoallv_, mpi_igather_f08_.
inline bool is_background_collective(std::string_view function) {
  std::string name(function.substr(0, 40));
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c | 32 : c; });
  const std::size_t prefix = name.starts_with("mpi_") ? 4 : name.starts_with("mpix_") ? 5 : 0;
  if (prefix == 0) return false;
  const bool persistent = name.find("_init") != std::string::npos;
  if (!persistent && name[prefix] != 'i') return false;
  const std::string_view rest = std::string_view(name).substr(persistent ? prefix : prefix + 1);
  for (const char* const one : {"allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "scatter"})
    if (rest.starts_with(one)) return true;
  return false;
}

}  // namespace laconic::preload
