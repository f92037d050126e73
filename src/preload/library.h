// Which MPI a file is the library of: what the command and the drop-in library both go by.
#pragma once

#include <string_view>

namespace laconic::preload {

/// "openmpi", "mpich" or "abi" (the MPI-5 standard ABI) for a file name such as "libmpi.so.40"; empty for other files.
constexpr std::string_view flavour_of_library(std::string_view file) {
  if (file.starts_with("libmpi.so.40")) return "openmpi";
  if (file.starts_with("libmpi_abi.so")) return "abi";
  if (file.starts_with("libmpi.so.12") || file.starts_with("libmpich.so")) return "mpich";
  return "";
}

}  // namespace laconic::preload
