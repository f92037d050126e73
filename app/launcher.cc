#include "launcher.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "doctor/probe.h"
#include "exit_code.h"

namespace laconic::app {
namespace {

/// The MPI that started this process: "openmpi", "mpich", or empty.
std::string launcher_flavour() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return "openmpi";
  if (std::getenv("PMI_RANK") != nullptr || std::getenv("PMI_SIZE") != nullptr) return "mpich";
  return "";
}

}  // namespace

bool is_first_rank() {
  const char* rank = std::getenv(launcher_flavour() == "openmpi" ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK");
  return rank == nullptr || std::string(rank) == "0";
}

void become_mpi_program(char** arguments) {
  const std::string flavour = launcher_flavour();
  if (flavour.empty()) return;
  const std::string helper = executable_folder() + "/laconic-mpi-" + flavour;
  ::execv(helper.c_str(), arguments);
  throw Failure(
      Exit::communication,
      fmt::format("started by {}'s launcher, but '{}' cannot be run: {}; install that MPI's development files and "
                  "build again",
                  flavour, helper, std::strerror(errno)));
}

}  // namespace laconic::app
