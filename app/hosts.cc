#include "hosts.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "doctor/probe.h"
#include "exit_code.h"
#include "run/program.h"

namespace laconic::app {
namespace {

Failure impossible(const std::string& why) { return {Exit::usage, "--link: " + why}; }

std::string cluster_script() {
  const auto path = (std::filesystem::path(executable_folder()) / "../libexec/laconic/cluster").lexically_normal();
  if (::access(path.c_str(), X_OK) != 0)
    throw impossible(
        fmt::format("there is no {}, which makes emulated hosts; build or install Laconic again", path.string()));
  return path.string();
}

void require_rights_and_tools() {
  if (::geteuid() != 0)
    throw impossible("emulated hosts need root; run it as root, or leave --link out: ranks then share this machine");
  for (const char* tool : {"ip", "tc"})
    if (find_program(tool).empty())
      throw impossible(fmt::format("emulated hosts need {} of iproute2 (apt-get install iproute2)", tool));
}

/// Debian's MPICH 4.0 does not return from MPI_Finalize over several hosts in half of the runs.
void require_end(const std::string& launcher) {
  std::istringstream words(output_of({launcher, "--version"}));
  for (std::string word; words >> word && word != "Version:";) {
  }
  std::string version;
  if (words >> version && version.starts_with("4.0"))
    throw impossible(
        fmt::format("MPICH 4.0 ({}) hangs over several hosts; --mpi openmpi, or build with a newer one "
                    "(tools/setup brings MPICH 5)",
                    launcher));
}

/// Names that no other cluster has, unless the environment gives others.
void set_names() {
  ::setenv("NC_PREFIX", "lacb", 0);
  ::setenv("NC_BR", "ncbrlacb", 0);
  ::setenv("NC_NET", "198.18.0", 0);  // is set aside for measuring networks
  ::setenv("NC_STATE", "/run/laconic_bench", 0);
}

/// Root of a container is often not allowed what it takes, and a kernel may lack what shapes links.
void try_one_host(const std::string& script, const std::string& link) {
  Ran tried = run_quietly({script, "with", "1", link, "stat"});
  if (WIFEXITED(tried.status) && WEXITSTATUS(tried.status) == 0) return;
  while (tried.text.ends_with('\n')) tried.text.pop_back();
  throw Failure(Exit::communication,
                fmt::format("--link {}: no emulated host can be brought up here: {} (in a container it takes "
                            "CAP_SYS_ADMIN and CAP_NET_ADMIN)",
                            link, tried.text.substr(tried.text.rfind('\n') + 1)));
}

}  // namespace

std::vector<std::string> ranks_on_hosts(const std::string& flavour, const std::string& launcher, int ranks,
                                        const std::string& link) {
  constexpr int most = 253;  // addresses of a /24 network beside the bridge's
  if (ranks > most) throw impossible(fmt::format("there are at most {} emulated hosts, one a rank", most));
  const std::string script = cluster_script();
  require_rights_and_tools();
  if (flavour == "mpich") require_end(launcher);
  set_names();
  try_one_host(script, link);
  ::setenv("MPIEXEC", launcher.c_str(), 1);
  ::setenv("LACONIC_CACHE", "off", 1);  // other links will have the same names
  const std::string count = std::to_string(ranks);
  return {script, "with", count, link, "run", flavour == "openmpi" ? "ompi" : flavour, count};
}

}  // namespace laconic::app
