#include "doctor/probe.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "bench/dataset.h"
#include "codec/codec.h"
#include "codec/slice/target.h"
#include "core/config.h"
#include "exit_code.h"
#include "run/loading.h"
#include "run/program.h"

namespace laconic::app {
namespace {

namespace fs = std::filesystem;

/// First line of what a command prints (to either stream); empty when it cannot run.
std::string first_line_of(const std::vector<std::string>& command) {
  // Hydra prints a block: its version is on the second line.
  std::istringstream lines(output_of(command));
  std::string line;
  std::string first;
  while (std::getline(lines, line)) {
    if (first.empty()) first = line;
    if (const auto at = line.find("Version:"); at != std::string::npos) {
      const auto digits = line.find_first_of("0123456789", at);
      if (digits != std::string::npos) return "MPICH (Hydra) " + line.substr(digits);
    }
  }
  return first;
}

/// Whether a child process may make a network namespace: what the emulated cluster is built from.
bool can_make_network_namespace() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(CLONE_NEWNET) == 0 ? 0 : 1);
  int status = 1;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void examine_processor(std::vector<Finding>& out) {
  const auto features = [] {
    std::string text;
#if defined(__x86_64__)
    const auto note = [&](bool has, const char* name) {
      text += has ? fmt::format("{}{}", text.empty() ? "" : " ", name) : "";
    };
    note(__builtin_cpu_supports("avx2") != 0, "avx2");
    note(__builtin_cpu_supports("bmi2") != 0, "bmi2");
    note(__builtin_cpu_supports("avx512f") != 0, "avx512f");
    note(__builtin_cpu_supports("avx512bw") != 0, "avx512bw");
    note(__builtin_cpu_supports("avx512vl") != 0, "avx512vl");
    note(__builtin_cpu_supports("avx512vbmi") != 0, "avx512vbmi");
    note(__builtin_cpu_supports("avx512vbmi2") != 0, "avx512vbmi2");
    note(__builtin_cpu_supports("gfni") != 0, "gfni");
#elif defined(__aarch64__)
    text = "neon";  // every one has it
#endif
    return text.empty() ? std::string("no SIMD features that Laconic has kernels for by name") : text;
  };
  out.push_back({"processor", "features", true, features(), ""});
  std::string available;
  for (const auto t : {slice::Target::scalar, slice::Target::portable, slice::Target::avx2, slice::Target::avx512,
                       slice::Target::avx512x})
    if (slice::supported(t)) available += fmt::format("{}{}", available.empty() ? "" : " ", name_of(t));
  out.push_back({"processor", "kernels", true,
                 fmt::format("{} is used; available: {}", name_of(slice::current()), available), ""});
  out.push_back({"processor", "cores", true, fmt::format("{}", std::thread::hardware_concurrency()), ""});
}

void examine_codecs(std::vector<Finding>& out) {
  std::string built;
  std::string absent;
  for (const Codec* c : all_codecs()) {
    std::string& names = c->available() ? built : absent;
    names += fmt::format("{}{}", names.empty() ? "" : " ", c->name());
  }
  out.push_back({"library", "codecs", absent.empty(),
                 absent.empty() ? built : fmt::format("{}; not built in: {}", built, absent),
                 absent.empty() ? "" : "apt-get install libzfp-dev liblz4-dev libzstd-dev, configure and build again"});
}

std::string launcher_of_venv() { return (fs::path(LACONIC_SOURCE_DATA).parent_path() / ".venv/bin/mpiexec").string(); }

void examine_mpi(std::vector<Finding>& out) {
  struct Launcher {
    const char* what;
    std::vector<std::string> candidates;
    const char* remedy;
  };
  const std::vector<Launcher> launchers = {
      {"Open MPI", {find_program("mpiexec.openmpi")}, "apt-get install openmpi-bin libopenmpi-dev"},
      {"MPICH",
       {launcher_of_venv(), find_program("mpiexec.mpich")},
       "run tools/setup (MPICH 5 from PyPI), or apt-get install mpich libmpich-dev"},
      {"mpiexec in PATH", {find_program("mpiexec")}, "apt-get install openmpi-bin"}};
  for (const Launcher& l : launchers) {
    bool any = false;
    for (const std::string& path : l.candidates) {
      std::error_code ignored;
      if (path.empty() || !fs::exists(path, ignored)) continue;
      any = true;
      out.push_back({"MPI", l.what, true, fmt::format("{} ({})", first_line_of({path, "--version"}), path), ""});
    }
    if (!any) out.push_back({"MPI", l.what, false, "programs of this MPI cannot be run", l.remedy});
  }
  for (const char* flavour : {"openmpi", "mpich"}) {
    const fs::path helper = fs::path(executable_folder()) / (std::string("laconic-mpi-") + flavour);
    std::error_code ignored;
    const bool there = fs::exists(helper, ignored);
    out.push_back(
        {"MPI", std::string("laconic stack and bench for ") + flavour, there,
         there ? helper.string() : "laconic stack runs its ranks as threads instead; collectives cannot be measured",
         there ? "" : "install that MPI's development files and build again"});
  }
}

/// The drop-in libraries of `laconic run`, one for each binary interface.
void examine_preload(std::vector<Finding>& out) {
  const std::pair<const char*, const char*> flavours[] = {
      {"openmpi", "Open MPI 4 and 5"}, {"mpich", "MPICH"}, {"abi", "the MPI-5 standard ABI: MPICH 5, Intel MPI"}};
  const std::vector<std::string> launchers{"mpiexec", "mpiexec.openmpi", "mpiexec.mpich", launcher_of_venv()};
  for (const auto& [flavour, whom] : flavours) {
    Finding finding{"drop-in", fmt::format("liblaconic-mpi.so ({})", flavour), false,
                    fmt::format("laconic run cannot serve programs of {}", whom), ""};
    try {
      const std::string library = preload_library(flavour);
      const std::string folder = folder_of_mpi(library, launchers);
      const std::string why = why_not_preloaded(library, folder);
      finding.found = why.empty();
      if (why.empty()) finding.detail = fmt::format("{}: for {}", library, whom);
      if (!why.empty()) finding.remedy = fmt::format("{} cannot be loaded: {}", library, why);
    } catch (const Failure& e) {
      finding.remedy = e.what();
    }
    out.push_back(finding);
  }
}

void examine_cluster(std::vector<Finding>& out) {
  const bool root = ::geteuid() == 0;
  const std::string ip = find_program("ip");
  const bool namespaces = can_make_network_namespace();
  out.push_back(
      {"emulated cluster", "root", root, root ? "yes" : "make demo runs on localhost", root ? "" : "run as root"});
  out.push_back({"emulated cluster", "iproute2", !ip.empty(), ip.empty() ? "no ip command" : ip,
                 ip.empty() ? "apt-get install iproute2" : ""});
  out.push_back({"emulated cluster", "network namespaces", namespaces,
                 namespaces ? "can be made" : "the kernel refuses them",
                 namespaces ? "" : "run as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN"});
}

void examine_environment(std::vector<Finding>& out) {
  for (const std::string& name : config().unknown)
    out.push_back({"environment", name, false, "is set, but Laconic has no such variable", "docs/guide.md lists them"});
}

void examine_rest(std::vector<Finding>& out) {
  try {
    const std::string folder = find_data_folder("");
    out.push_back({"data", "sample fields", true, fmt::format("{} in {}", list_fields(folder).size(), folder), ""});
  } catch (const Failure& e) {
    out.push_back({"data", "sample fields", false, e.what(), "set LACONIC_DATA to their folder"});
  }
}

void examine_gpu(std::vector<Finding>& out) {
  std::error_code ignored;
  const bool gpu = fs::exists("/dev/nvidiactl", ignored);
  out.push_back({"GPU", "NVIDIA", gpu, gpu ? "present" : "none; nothing but arrays in its memory needs one", ""});
  const fs::path here = executable_folder();
  const fs::path built = here.parent_path() / "lib/nccl/liblaconic-nccl.so";
  const fs::path installed = here.parent_path() / "lib/laconic/nccl/liblaconic-nccl.so";
  const fs::path& library = fs::exists(built, ignored) ? built : installed;
  const bool there = fs::exists(library, ignored);
  out.push_back({"GPU", "liblaconic-nccl.so", there,
                 there ? library.string() : "NCCL programs must call Laconic themselves",
                 there ? "" : "install the CUDA toolkit and NCCL's header, and build again"});
}

}  // namespace

std::string executable_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

bool is_program(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path != nullptr ? path : "/bin:/usr/bin") + ":/usr/sbin:/sbin");
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_program(candidate)) return candidate;
  }
  return "";
}

std::vector<Finding> examine_machine() {
  std::vector<Finding> out;
  examine_processor(out);
  examine_codecs(out);
  examine_mpi(out);
  examine_preload(out);
  examine_cluster(out);
  examine_environment(out);
  examine_rest(out);
  examine_gpu(out);
  return out;
}

}  // namespace laconic::app
