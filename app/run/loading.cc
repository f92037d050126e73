#include "run/loading.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "doctor/probe.h"
#include "preload/library.h"
#include "run/program.h"

namespace laconic::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* paths_variable = "LD_LIBRARY_PATH";

std::string library_paths() {
  const char* const paths = std::getenv(paths_variable);  // NOLINT(concurrency-mt-unsafe): before anything runs
  return paths == nullptr ? "" : paths;
}

/// The MPI library among what ldd lists, and where the loader finds that, if it does.
struct NeededMpi {
  std::string name, file;
};

NeededMpi mpi_in(const std::string& loads) {
  std::istringstream lines(loads);
  for (std::string line; std::getline(lines, line);) {  // "libmpi.so.12 => /usr/lib/libmpi.so.12 (0x...)"
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::size_t arrow = line.find(" => ");
    if (arrow == std::string::npos || begin >= arrow) continue;
    const std::string name = line.substr(begin, arrow - begin);
    if (preload::flavour_of_library(name).empty()) continue;
    const std::string file = line.substr(arrow + 4, line.rfind(" (") - arrow - 4);
    return {name, file.starts_with('/') ? file : ""};
  }
  return {};
}

bool is_same(const std::string& file, const std::string& other) {
  std::error_code ignored;
  return fs::equivalent(file, other, ignored);
}

std::string folder_of(const std::string& file) { return fs::path(file).parent_path().string(); }

/// A file in bin/../lib of an executable; empty if it is not there.
std::string beside_executable(const std::string& executable, const std::string& name) {
  std::error_code ignored;
  for (const fs::path& at : {fs::absolute(executable, ignored), fs::canonical(executable, ignored)}) {
    const fs::path file = (at.parent_path() / "../lib" / name).lexically_normal();
    if (fs::exists(file, ignored)) return file.string();
  }
  return "";
}

/// What the loader says when it ends `program`, and what can be done about it.
std::string reason_in(const std::string& said, const std::string& program) {
  std::string reason = said.substr(0, said.find('\n'));
  for (const std::string& before : {program + ": ", std::string("error while loading shared libraries: ")})
    if (reason.starts_with(before)) reason.erase(0, before.size());
  const bool lacks_mpi = reason.starts_with("libmpi");
  return reason + (lacks_mpi ? " (the folder of the program's MPI has to be in LD_LIBRARY_PATH)" : "");
}

}  // namespace

std::string folder_of_mpi(const std::string& library, const std::vector<std::string>& command) {
  const NeededMpi own = mpi_in(loads_of(library));
  if (own.name.empty()) return "";  // there is no ldd
  std::vector<std::string> files;
  for (const std::string& word : command)
    if (std::string file = executable_of(word); !file.empty()) files.push_back(std::move(file));
  for (const std::string& file : files) {
    const NeededMpi mpi = mpi_in(loads_of(file));
    if (mpi.name != own.name || mpi.file.empty()) continue;
    // As a rule the program's is found first; not if it is one of its libraries that needs it.
    if (own.file.empty()) return folder_of(mpi.file);
    const NeededMpi with = mpi_in(run_quietly({"ldd", file}, {{"LD_PRELOAD", library}}).text);
    return is_same(mpi.file, with.file) ? "" : folder_of(mpi.file);
  }
  std::ranges::reverse(files);  // the program comes after its launcher, and Python has its MPI beside it
  for (const std::string& file : files) {
    const std::string mpi = beside_executable(file, own.name);
    if (!mpi.empty()) return is_same(mpi, own.file) ? "" : folder_of(mpi);
  }
  return "";
}

std::string with_library_folder(const std::string& paths, const std::string& folder) {
  return paths + (paths.empty() || folder.empty() ? "" : ":") + folder;
}

void add_library_folder(const std::string& folder) {
  const std::string paths = with_library_folder(library_paths(), folder);
  if (!folder.empty()) ::setenv(paths_variable, paths.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

std::string why_not_preloaded(const std::string& library, const std::string& folder) {
  Variables environment{{"LD_PRELOAD", library}};
  if (!folder.empty()) environment.emplace_back(paths_variable, with_library_folder(library_paths(), folder));
  const std::string program = "/proc/self/exe";
  const Ran ran = run_quietly({program, "--version"}, environment);
  // What is no library for this machine the loader passes over.
  const bool passed_over = ran.text.find("'" + library + "' from LD_PRELOAD cannot be preloaded") != std::string::npos;
  if (ran.status == 0 && !passed_over) return "";
  if (WIFSIGNALED(ran.status)) return fmt::format("with it a program ends by signal {}", WTERMSIG(ran.status));
  return ran.text.empty() ? "a program cannot be started" : reason_in(ran.text, program);
}

}  // namespace laconic::app
