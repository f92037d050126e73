#include "launcher.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "doctor/probe.h"
#include "exit_code.h"
#include "hosts.h"
#include "run/loading.h"
#include "run/program.h"

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

/// The programs that this process was started by, it itself left out; the nearest last, as a command line has them.
std::vector<std::string> programs_above() {
  std::vector<std::string> programs;
  for (int pid = ::getppid(); pid > 1; pid = parent_of(pid)) {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
    if (!error) programs.insert(programs.begin(), program.string());
  }
  return programs;
}

std::string helper_of(const std::string& flavour) { return executable_folder() + "/laconic-mpi-" + flavour; }

/// The launcher of an MPI that ranks can be started with, and its options; they begin with the MPI's name.
std::vector<std::string> launcher_of(const std::string& flavour) {
  const std::vector<std::vector<std::string>> launchers{LACONIC_LAUNCHERS};
  for (const std::vector<std::string>& l : launchers) {
    const bool wanted = flavour.empty() || l[0] == flavour;
    if (wanted && ::access(l[1].c_str(), X_OK) == 0 && ::access(helper_of(l[0]).c_str(), X_OK) == 0) return l;
  }
  throw Failure(Exit::usage,
                fmt::format("--ranks: there is no launcher of {} that Laconic was built with, or no laconic-mpi-... "
                            "beside this command; laconic doctor says what there is",
                            flavour.empty() ? "an MPI" : flavour));
}

/// What the launchers want of a person who has few processors, or is root.
void set_environment_for(int ranks) {
  if (std::thread::hardware_concurrency() < static_cast<unsigned>(ranks)) {  // waiting ranks let others run
    ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    ::setenv("MPIR_CVAR_POLLS_BEFORE_YIELD", "1", 0);
  }
  if (::geteuid() != 0) return;
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
}

}  // namespace

bool is_first_rank() {
  const char* rank = std::getenv(launcher_flavour() == "openmpi" ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK");
  return rank == nullptr || std::string(rank) == "0";
}

void become_mpi_program(char** arguments) {
  const std::string flavour = launcher_flavour();
  if (flavour.empty() || !is_for_ranks(arguments)) return;
  const std::string helper = helper_of(flavour);
  // An installed one does not say where its MPI is.
  if (loads_of(helper).find(" => not found") != std::string::npos)
    add_library_folder(folder_of_mpi(helper, programs_above()));
  ::execv(helper.c_str(), arguments);
  throw Failure(
      Exit::communication,
      fmt::format("started by {}'s launcher, but '{}' cannot be run: {}; install that MPI's development files and "
                  "build again",
                  flavour, helper, std::strerror(errno)));
}

void become_launcher(const Launch& launch, char** arguments) {
  std::vector<std::string> words = launcher_of(launch.flavour);
  if (launch.link.empty()) {
    words.erase(words.begin());
    words.insert(words.end(), {"-n", std::to_string(launch.ranks)});
  } else {
    words = ranks_on_hosts(words[0], words[1], launch.ranks, launch.link);
  }
  words.push_back(executable_folder() + "/laconic");
  for (char** a = arguments + 1; *a != nullptr; ++a) {
    const std::string word = *a;
    if (word == "--ranks" || word == "--mpi") {
      ++a;  // its value
    } else if (!word.starts_with("--ranks=") && !word.starts_with("--mpi=")) {
      words.push_back(word);
    }
  }
  words.insert(std::find(words.begin(), words.end(), "--"), launch.more.begin(), launch.more.end());
  set_environment_for(launch.ranks);
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  pointers.push_back(nullptr);
  ::execv(pointers[0], pointers.data());
  throw Failure(Exit::communication, fmt::format("'{}' cannot be run: {}", words[0], std::strerror(errno)));
}

}  // namespace laconic::app
