#include "run/program.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>

#include "doctor/probe.h"
#include "exit_code.h"
#include "preload/library.h"
#include "run/elf.h"

namespace laconic::app {
namespace {

namespace fs = std::filesystem;

/// Of an ELF file. Any other has none: it may be large, as data are that a file system marks as programs.
std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string head(SELFMAG, '\0');
  if (!in.read(head.data(), SELFMAG) || !is_elf(head)) return "";
  in.seekg(0);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What the dynamic loader would load for it: names and paths, among other words.
std::vector<std::string> needs_of(const std::string& path) {
  if (find_program("ldd").empty())
    throw Failure(Exit::usage, "PATH has no ldd, which says what MPI a program uses; say it: --mpi, or mend PATH");
  std::istringstream words(loads_of(path));
  return {std::istream_iterator<std::string>(words), {}};
}

MpiOfProgram by_needs(const std::string& path) {
  for (const std::string& word : needs_of(path)) {
    const std::string file = fs::path(word).filename().string();
    const std::string flavour(preload::flavour_of_library(file));
    if (!flavour.empty()) return {flavour, fmt::format("{} needs {}", path, file)};
  }
  return {};
}

/// Among all that ends with a zero in a file, as names of functions do.
bool names_background_collective(const std::string& content) {
  for (std::size_t at = 0, end = 0; (end = content.find('\0', at)) != std::string::npos; at = end + 1) {
    if (preload::is_background_collective(std::string_view(content).substr(at, end - at))) return true;
  }
  return false;
}

/// Whether MPI's own functions are among a program's: the name of one that only an MPI library defines, in the table of
/// its symbols.
bool has_own_mpi(const std::string& content) {
  using namespace std::string_literals;
  const auto names = [&](const std::string& text) { return content.find(text) != std::string::npos; };
  // The linker keeps a name that is the end of another in that one.
  return names("\0PMPI_Allreduce\0"s) && (names("\0PMPI_Init\0"s) || names("\0MPI_Init\0"s));
}

/// Whether the kernel would give its process other rights than its caller has. The loader then ignores LD_PRELOAD.
bool runs_with_other_rights(const std::string& path) {
  struct stat file{};
  struct statvfs system{};
  if (::stat(path.c_str(), &file) != 0 || ::statvfs(path.c_str(), &system) != 0) return false;
  if ((system.f_flag & ST_NOSUID) != 0) return false;
  const bool capable = ::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return capable;  // the kernel ignores the others then
  const bool user = (file.st_mode & S_ISUID) != 0 && file.st_uid != ::getuid();
  const bool group = (file.st_mode & S_ISGID) != 0 && (file.st_mode & S_IXGRP) != 0 && file.st_gid != ::getgid();
  return user || group || capable;
}

std::string as_preloaded(const std::string& library) {
  if (library.find_first_of(" :") == std::string::npos) return library;
  throw Failure(Exit::usage, fmt::format("'{}' cannot be loaded before a program: LD_PRELOAD ends names at blanks and "
                                         "colons; move Laconic to a folder without any",
                                         library));
}

}  // namespace

Ran run_quietly(const std::vector<std::string>& words, const Variables& more) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    const int nothing = ::open("/dev/null", O_RDONLY);  // what there is to read is the program's
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    for (const auto& [name, value] : more) ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    std::vector<char*> arguments;
    for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  Ran ran;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; (n = ::read(ends[0], piece.data(), piece.size())) > 0;)
    ran.text.append(piece.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, &ran.status, 0);
  return ran;
}

std::string output_of(const std::vector<std::string>& words) { return run_quietly(words).text; }

const std::string& loads_of(const std::string& path) {
  static std::map<std::string, std::string> known;
  const auto [at, is_new] = known.try_emplace(path);
  if (is_new) at->second = output_of({"ldd", path});
  return at->second;
}

std::string executable_of(const std::string& word) {
  if (word.find('/') == std::string::npos) return find_program(word);
  return is_program(word) ? word : "";
}

bool is_launcher(const std::string& word) {
  const fs::path name = fs::path(word).filename();
  const auto is_one_of = [](const std::string& text, const auto& known) {
    return std::ranges::count(known, text) != 0;
  };
  return is_one_of(name.stem().string(), std::array{"mpirun", "mpiexec", "orterun", "prterun", "prun"}) &&
         is_one_of(name.extension().string(), std::array{"", ".openmpi", ".mpich", ".hydra", ".gforker"});
}

std::string flavour_of_version(const std::string& text) {
  for (const char* name : {"Open MPI", "OpenRTE", "PRRTE", "prterun"}) {
    if (text.find(name) != std::string::npos) return "openmpi";
  }
  for (const char* name : {"HYDRA", "Hydra", "MPICH", "Intel(R) MPI"}) {
    if (text.find(name) != std::string::npos) return "mpich";
  }
  return "";
}

void require_name_service(const std::vector<std::string>& command) {
  const auto word = std::ranges::find_if(command, is_launcher);
  if (word == command.end()) return;
  std::error_code ignored;
  const fs::path file = fs::canonical(executable_of(*word), ignored);
  if (fs::path(*word).extension() != ".gforker" && file.extension() != ".gforker") return;
  throw Failure(Exit::usage, fmt::format("under '{}' programs cannot publish names, by which the ranks of one find out "
                                         "who has Laconic, and would wait for ever; use mpiexec.hydra",
                                         *word));
}

std::string flavour_of_launcher(const std::string& word) {
  return is_launcher(word) ? flavour_of_version(output_of({word, "--version"})) : "";
}

MpiOfProgram mpi_of(const std::vector<std::string>& command) {
  const auto statically = [](const char* what, const std::string& path) {
    return Failure(Exit::usage, fmt::format("{} '{}' statically: nothing can be loaded before it; link it with the "
                                            "shared MPI library (or say --mpi, if it only starts a program)",
                                            what, path));
  };
  std::string unloadable;
  for (const std::string& word : command) {
    const std::string path = executable_of(word);
    // An MPI library is an argument: the program opens it by itself.
    if (path.empty() || !preload::flavour_of_library(fs::path(path).filename().string()).empty()) continue;
    const std::string content = content_of(path);
    if (content.empty()) continue;
    MpiOfProgram found = by_needs(path);
    if (!found.flavour.empty() && runs_with_other_rights(path))
      throw Failure(Exit::usage, fmt::format("'{}' runs with other rights than its caller's (setuid, setgid or "
                                             "capabilities): nothing can be loaded before it",
                                             path));
    if (!found.flavour.empty()) return found;
    if (has_own_mpi(content)) throw statically("MPI is linked into", path);
    if (is_static_program(content)) unloadable = path;
  }
  if (command.empty()) return {};
  // A launcher may be static, its program not.
  const bool launched = !unloadable.empty() && unloadable != executable_of(command[0]);
  const std::string flavour = launched ? "" : flavour_of_launcher(command[0]);
  if (!flavour.empty())
    return {flavour, fmt::format("no program in the command names its MPI; '{}' is that MPI's launcher", command[0])};
  if (!unloadable.empty()) throw statically("all libraries are linked into", unloadable);
  return {};
}

bool does_nothing_in_background(const std::vector<std::string>& command) {
  bool any = false;
  for (const std::string& word : command) {
    const std::string path = executable_of(word);
    if (path.empty() || by_needs(path).flavour.empty()) continue;
    any = true;
    std::vector<std::string> files = needs_of(path);
    std::erase_if(files, [](const std::string& file) {
      return file[0] != '/' || fs::path(file).filename().string().starts_with("libmpi");
    });
    files.push_back(path);
    if (std::ranges::any_of(files, [](const std::string& f) { return names_background_collective(content_of(f)); }))
      return false;
  }
  return any;
}

std::string preload_library(const std::string& flavour) {
  const fs::path here = executable_folder();
  const std::string inside = flavour + "/liblaconic-mpi.so";
  std::string looked;
  for (const fs::path& folder : {here / "../lib" / "laconic", here / "../lib"}) {
    std::error_code ignored;
    const fs::path candidate = (folder / inside).lexically_normal();
    if (fs::exists(candidate, ignored)) return as_preloaded(fs::absolute(candidate).string());
    looked += (looked.empty() ? "" : ", ") + candidate.string();
  }
  throw Failure(Exit::usage,
                fmt::format("there is no {} (looked for {}): install that MPI's development files and build "
                            "again",
                            inside, looked));
}

}  // namespace laconic::app
