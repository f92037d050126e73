#include "launcher.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "doctor/probe.h"
#include "exit_code.h"
#include "run/loading.h"

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

/// 0 if there is none.
int parent_of(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  int parent = 0;
  for (std::string word; status >> word;)
    if (word == "PPid:") status >> parent;
  return parent;
}

/// The folder of an MPI library beside the launcher that started this process; empty if there is none.
std::string folder_at_launcher(const std::string& library) {
  namespace fs = std::filesystem;
  for (int pid = ::getppid(); pid > 1; pid = parent_of(pid)) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
    if (error) continue;
    const std::string file = beside_executable(program.string(), library);
    if (!file.empty()) return fs::path(file).parent_path().string();
  }
  return "";
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
  // An installed one does not say where its MPI is.
  add_library_folder(folder_at_launcher(flavour == "openmpi" ? "libmpi.so.40" : "libmpi.so.12"));
  ::execv(helper.c_str(), arguments);
  throw Failure(
      Exit::communication,
      fmt::format("started by {}'s launcher, but '{}' cannot be run: {}; install that MPI's development files and "
                  "build again",
                  flavour, helper, std::strerror(errno)));
}

}  // namespace laconic::app
