#include "launcher.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

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

/// laconic stack, and bench of all but what one process measures alone. Help is for each.
bool is_for_ranks(char** arguments) {
  std::vector<std::string> words;  // with the values of options, which follow these two
  for (char** a = arguments + 1; *a != nullptr; ++a) {
    const std::string word = *a;
    if (word == "--help" || word == "-h" || word == "--version") return false;
    if (!word.starts_with('-')) words.push_back(word);
  }
  words.resize(2);
  return words[0] == "stack" || (words[0] == "bench" && words[1] != "codec" && words[1] != "error");
}

}  // namespace

bool is_first_rank() {
  const char* rank = std::getenv(launcher_flavour() == "openmpi" ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK");
  return rank == nullptr || std::string(rank) == "0";
}

void become_mpi_program(char** arguments) {
  const std::string flavour = launcher_flavour();
  if (flavour.empty() || !is_for_ranks(arguments)) return;
  const std::string helper = executable_folder() + "/laconic-mpi-" + flavour;
  ::execv(helper.c_str(), arguments);
  throw Failure(
      Exit::communication,
      fmt::format("started by {}'s launcher, but '{}' cannot be run: {}; install that MPI's development files and "
                  "build again",
                  flavour, helper, std::strerror(errno)));
}

}  // namespace laconic::app
