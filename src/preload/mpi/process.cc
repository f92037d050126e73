#include "preload/mpi/process.h"

#include <link.h>
#include <mpi.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "core/config.h"
#include "core/error.h"
#include "preload/library.h"
#include "preload/mpi/entries.h"
#include "preload/mpi/imports.h"
#include "preload/serving.h"

namespace laconic::preload {
namespace {

constexpr std::string_view own_name = "liblaconic-mpi.so";

#if defined(OPEN_MPI)
constexpr std::string_view own_flavour = "openmpi";
#elif defined(MPI_ABI)
constexpr std::string_view own_flavour = "abi";
#else
constexpr std::string_view own_flavour = "mpich";
#endif

/// Called for each file that is loaded; keeps the first MPI library that is not the one this was built for.
int look(dl_phdr_info* info, std::size_t, void* found) {
  const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const std::string_view flavour = flavour_of_library(file);
  if (!flavour.empty() && flavour != own_flavour) {
    *static_cast<std::string*>(found) = path;
    return 1;
  }
  return 0;
}

bool is_rank_0() {
  for (const char* const variable : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* const rank = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here changes it
    if (rank != nullptr) return std::strcmp(rank, "0") == 0;
  }
  return true;
}

void say_foreign(const std::string& path, const char* consequence) {
  if (!is_rank_0()) return;
  std::fprintf(stderr,
               "laconic: this program's MPI is %s, for which another %.*s was built (laconic run picks it); %s\n",
               path.c_str(), static_cast<int>(own_name.size()), own_name.data(), consequence);
}

bool begun = false;
const pid_t started = ::getpid();  // its children have nothing to say

__attribute__((destructor)) void say_why_no_report() {
  const char* const report = std::getenv("LACONIC_REPORT");  // NOLINT(concurrency-mt-unsafe): nothing runs any more
  int initialized = 0;
  if (begun || report == nullptr || *report == '\0' || ::getpid() != started || !foreign_mpi().empty()) return;
  PMPI_Initialized(&initialized);
  if (initialized != 0 && is_rank_0())
    warn(
        "this program's MPI_Init did not come here: a tool that is in front, or linked into it, calls PMPI_Init, or "
        "Fortran's names do not end in one underscore; everything was left to MPI, and there is no report");
}

#if !defined(OPEN_MPI) && !defined(MPI_ABI)
/// Handles are ints here and pointers elsewhere: what the program passes to this library's functions would be cut in
/// half. So the program begins again without it; where it cannot, it calls nothing of this library.
__attribute__((constructor)) void leave_foreign_program(int, char** argv, char** envp) {
  const std::string path = foreign_mpi();
  if (path.empty() || argv == nullptr) return;
  std::string preload;
  for (char** e = envp; *e != nullptr; ++e) {
    const std::string_view entry = *e;
    if (!entry.starts_with("LD_PRELOAD=")) continue;
    // Without the words that name this library.
    std::string_view words = entry.substr(entry.find('=') + 1);
    while (!words.empty()) {
      const std::size_t end = std::min(words.find_first_of(": "), words.size());
      const std::string_view word = words.substr(0, end);
      if (!word.empty() && word.find(own_name) == std::string_view::npos)
        preload.append(preload.empty() ? "" : ":").append(word);
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  }
  say_foreign(path, "everything is left to MPI");
  ::setenv("LD_PRELOAD", preload.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no thread has begun
  // What runs is the loader itself where that was started with the program among its arguments (AT_BASE is 0 then).
  if (::getauxval(AT_BASE) != 0) ::execv("/proc/self/exe", argv);
  step_aside();
}
#endif

#ifndef OPEN_MPI
std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The parent of a process, from /proc/PID/stat: "pid (name) state parent ..."; 0 if there is none.
int parent_of(int pid) {
  const std::string stat = content_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? 0 : std::atoi(stat.c_str() + std::min(name_end + 4, stat.size()));
}

bool is_launcher(int pid) {
  const std::string name = content_of("/proc/" + std::to_string(pid) + "/comm");
  for (const char* const launcher : {"hydra", "mpiexec", "mpirun", "orted", "prte", "srun", "slurmstepd"}) {
    if (name.rfind(launcher, 0) == 0) return true;
  }
  return false;
}

bool launcher_has_me() {
  for (int pid = ::getppid(); pid > 1; pid = parent_of(pid)) {
    if (is_launcher(pid))
      return content_of("/proc/" + std::to_string(pid) + "/environ").find(own_name) != std::string::npos;
  }
  return false;
}
#endif

#ifdef OPEN_MPI
bool is_open_mpi_4() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(text, &length);
  return std::string_view(text).starts_with("Open MPI v4.");
}

/// In C or Fortran. Not those whose memory one host shares.
bool makes_window(std::string_view function) {
  for (const std::string_view one : {"MPI_Win_create", "MPI_Win_create_dynamic", "MPI_Win_allocate", "mpi_win_create",
                                     "mpi_win_create_dynamic", "mpi_win_allocate", "mpi_win_allocate_cptr"}) {
    if (!function.starts_with(one)) continue;
    const std::string_view rest = function.substr(one.size());
    if (rest.empty() || rest == "_" || rest == "_f08_") return true;
  }
  return false;
}
#endif

}  // namespace

std::string foreign_mpi() {
  std::string path;
  ::dl_iterate_phdr(look, &path);
  return path;
}

bool is_foreign_mpi() {
  const std::string path = foreign_mpi();
  if (path.empty()) return false;
  say_foreign(path, "everything is left to MPI");
  return true;
}

bool sends_in_parts() {
#ifdef OPEN_MPI
  const auto is_such = [](std::string_view function) {
    return function.starts_with("MPI_Psend_init") || function.starts_with("MPI_Precv_init") ||
           function.starts_with("mpi_psend_init_") || function.starts_with("mpi_precv_init_");
  };
  return !is_open_mpi_4() && imports(is_such, "/mpi4py/");
#else
  return false;
#endif
}

void note_begin() { begun = true; }

bool may_raise_thread_level() {
  Switch wish = Switch::automatic;
  try {
    wish = Config::from_environment().nonblocking;
  } catch (const Error&) {  // Runtime::start() will say what is wrong
    return false;
  }
  if (wish != Switch::automatic) return wish == Switch::on;
#ifdef OPEN_MPI
  // Between hosts without RDMA Open MPI 4 makes windows by osc/pt2pt, and not where several threads are let in.
  return imports(is_background_collective) && !(is_open_mpi_4() && imports(makes_window));
#else
  return launcher_has_me();
#endif
}

}  // namespace laconic::preload
