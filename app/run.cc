// laconic run: starts an unmodified MPI program with the drop-in library that fits its MPI.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "command.h"
#include "core/bound.h"
#include "exit_code.h"
#include "io/file.h"
#include "report/json.h"
#include "report/streams.h"
#include "run/loading.h"
#include "run/policy_file.h"
#include "run/program.h"

namespace laconic::app {
namespace {

struct RunOptions {
  std::string bound, policy, mode, report, mpi;
  bool verify = false;
  bool check = false;
  bool dry = false;
  std::vector<std::string> command;
};

/// The library that goes before the program.
struct DropIn {
  std::string library;
  std::string folder;  ///< where its MPI is; empty where it need not be told
};

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before anything runs
}

void set_if_unset(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 0);  // NOLINT(concurrency-mt-unsafe)
}

/// Before the program runs, not when it has ended.
void require_writable(const std::string& report) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status there = fs::status(report, ignored);
  if (fs::is_regular_file(there) && ::access(report.c_str(), W_OK) != 0)
    throw Failure(Exit::no_output, fmt::format("cannot write '{}': {}", report, std::strerror(errno)));
  // Makes a temporary beside it, and removes that.
  if (!fs::exists(there) || fs::is_directory(there)) static_cast<void>(OutputFile(report, false));
}

/// What the ranks will see; mistakes are found here, not in every rank.
void set_environment(const RunOptions& o, const Session& session, const DropIn& dropin) {
  if (!o.bound.empty()) {
    static_cast<void>(Bound::parse(o.bound));
    set("LACONIC_BOUND", o.bound);
  }
  if (!o.policy.empty()) set("LACONIC_POLICY", o.policy);
  if (!o.mode.empty()) set("LACONIC_MODE", o.mode);
  if (o.verify) set("LACONIC_VERIFY", "1");
  if (o.check) set("LACONIC_CHECK", "1");
  // Of a file, whatever it is called.
  if (!o.report.empty()) set("LACONIC_REPORT", std::filesystem::absolute(o.report).string());
  const Config config = Config::from_environment();
  for (const std::string& name : config.unknown)
    session.warn(fmt::format("{} is set, but Laconic has no such variable (docs/guide.md lists them)", name));
  if (config.report.empty()) {
    if (!session.quiet) set("LACONIC_REPORT", "summary");
  } else if (config.report != "summary") {
    require_writable(config.report);
    set("LACONIC_REPORT", config.report);
  }
  if (!config.policy.empty()) {
    // Ranks may begin in another folder.
    set("LACONIC_POLICY", std::filesystem::absolute(config.policy).string());
    static_cast<void>(read_policy(config.policy));
    if (std::filesystem::is_fifo(config.policy))
      throw Failure(Exit::no_input,
                    fmt::format("the policy '{}' is a pipe, and every rank has to read it", config.policy));
  }
  static_cast<void>(preload::policy_of(config));
  config.apply_log();
  const char* const before = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe)
  set("LD_PRELOAD", before == nullptr || *before == '\0' ? dropin.library : dropin.library + ":" + before);
  add_library_folder(dropin.folder);
}

/// Where the command line itself gives a variable its value (env NAME=V, mpirun -x NAME=V, mpiexec -genv NAME V), that
/// becomes joined(V). Whether Open MPI is told of it by -x.
template <class Joined>
bool join_given(std::vector<std::string>& words, const std::string& name, Joined joined) {
  bool by_x = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool given = words[i].starts_with(name + "=");
    const bool follows = i > 1 && words[i - 1] == name && words[i - 2].ends_with("env");
    if (given) words[i] = name + "=" + joined(words[i].substr(name.size() + 1));
    if (follows) words[i] = joined(words[i]);
    by_x = by_x || ((given || words[i] == name) && words[i - 1].ends_with("-x"));
  }
  return by_x;
}

/// What the command line gives comes after the library, and before its MPI's folder. The variables that Open MPI's
/// launcher has still to be told of.
std::vector<std::string> join_own(std::vector<std::string>& words, const DropIn& dropin) {
  const auto preload = [&](const std::string& given) { return dropin.library + ":" + given; };
  const auto folder = [&](const std::string& given) { return with_library_folder(given, dropin.folder); };
  std::vector<std::string> untold;
  if (!join_given(words, "LD_PRELOAD", preload)) untold.emplace_back("LD_PRELOAD");
  if (!join_given(words, "LD_LIBRARY_PATH", folder) && !dropin.folder.empty()) untold.emplace_back("LD_LIBRARY_PATH");
  return untold;
}

/// Open MPI's launcher hands its environment to ranks on other hosts only where it is told to: by -x, or in a list that
/// bears no -x beside it.
void export_to_ranks(std::vector<std::string>& words, std::vector<std::string> names) {
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    if (entry.starts_with("LACONIC_")) names.push_back(entry.substr(0, entry.find('=')));
  }
  const std::string more = fmt::format(";{}", fmt::join(names, ";"));
  const auto listed = std::ranges::find(words, "mca_base_env_list");
  constexpr const char* variable = "OMPI_MCA_mca_base_env_list";
  if (listed != words.end() && listed + 1 != words.end()) {
    *(listed + 1) += more;
  } else if (const char* const list = std::getenv(variable); list != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    set(variable, list + more);
  } else {
    std::vector<std::string> exports;
    for (const std::string& name : names) exports.insert(exports.end(), {"-x", name});
    words.insert(words.begin() + 1, exports.begin(), exports.end());
  }
}

void say_plan(const Session& session, const MpiOfProgram& mpi, const DropIn& dropin,
              const std::vector<std::string>& words) {
  if (session.json) {
    print_json({{"mpi", mpi.flavour},
                {"because", mpi.because},
                {"library", dropin.library},
                {"library_path", dropin.folder},
                {"command", words}});
    return;
  }
  fmt::print("MPI      {} ({})\nlibrary  {}\n", mpi.flavour, printable(mpi.because), printable(dropin.library));
  if (!dropin.folder.empty()) fmt::print("its MPI  in {}, by LD_LIBRARY_PATH\n", printable(dropin.folder));
  fmt::print("command  {}\n", printable(fmt::format("{}", fmt::join(words, " "))));
}

int run(const RunOptions& o, const Session& session) {
  if (o.command.empty()) throw Failure(Exit::usage, "no program: laconic run --bound 1e-3rel -- mpirun -n 4 ./app");
  MpiOfProgram mpi{o.mpi, "--mpi says so"};
  require_name_service(o.command);
  if (mpi.flavour.empty()) mpi = mpi_of(o.command);
  if (mpi.flavour.empty() && executable_of(o.command[0]).empty())
    throw Failure(Exit::no_input, fmt::format("'{}' is not found, or no file that can be run", o.command[0]));
  if (mpi.flavour.empty()) {
    throw Failure(Exit::usage, fmt::format("'{}' does not show which MPI it uses; say it: --mpi openmpi, mpich or abi",
                                           fmt::join(o.command, " ")));
  }
  DropIn dropin{preload_library(mpi.flavour), ""};
  dropin.folder = folder_of_mpi(dropin.library, o.command);
  // Otherwise every rank would raise its thread level: MPICH wants all ranks to have the same one, and only here is
  // known what all of them run.
  if (mpi.flavour != "openmpi" && does_nothing_in_background(o.command)) set_if_unset("LACONIC_NONBLOCKING", "off");
  set_environment(o, session, dropin);
  std::vector<std::string> words = o.command;
  const std::vector<std::string> untold = join_own(words, dropin);
  if (mpi.flavour == "openmpi" && is_launcher(words[0])) {
    if (flavour_of_launcher(words[0]) != "mpich") {
      export_to_ranks(words, untold);
    } else {
      session.warn(
          fmt::format("'{}' is MPICH's launcher, the program's MPI is Open MPI ({}): its ranks will not find "
                      "each other",
                      words[0], mpi.because));
    }
  }
  if (o.dry) {
    say_plan(session, mpi, dropin, words);
    return 0;
  }
  // Otherwise it is the loader that refuses each program, the launcher first.
  if (const std::string why = why_not_preloaded(dropin.library, ""); !why.empty())
    throw Failure(Exit::usage, fmt::format("'{}' cannot be loaded before a program: {}", dropin.library, why));
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  throw Failure(Exit::no_input, fmt::format("'{}' cannot be run: {}", words[0], std::strerror(errno)));
}

}  // namespace

void add_run(CommandSyntax app, Session& session) {
  CommandSyntax c = app.add_command("run", "Run an unmodified MPI program, its collectives compressed");
  auto o = std::make_shared<RunOptions>();
  c.option("--bound", o->bound, "Error that results may have: 1e-3, 1e-4rel, 80dB, lossless (LACONIC_BOUND)");
  c.option("--policy", o->policy, "TOML file with rules (LACONIC_POLICY); see laconic policy check");
  c.choice("--mode", o->mode, {"auto", "compressed", "plain"}, "auto, compressed or plain (LACONIC_MODE)");
  c.option("--report", o->report, "Write the report to this file as JSON, in place of the summary at the end");
  c.flag("--verify", o->verify, "Compute exact results too, and report the achieved error (LACONIC_VERIFY)");
  c.flag("--check", o->check, "Let ranks agree on every call that is served, also where MPI makes it (LACONIC_CHECK)");
  c.choice("--mpi", o->mpi, {"openmpi", "mpich", "abi"}, "The program's MPI, where it cannot be found out");
  c.flag("--dry-run", o->dry, "Only say what would be run, and why");
  c.rest("command", o->command, "The command line as it is without Laconic");
  c.on_chosen([o, &session] { session.command = [o, &session] { return run(*o, session); }; });
}

}  // namespace laconic::app
