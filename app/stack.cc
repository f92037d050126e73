// laconic stack: images summed over ranks. Under an MPI launcher it becomes the helper executable for that MPI;
// otherwise threads play the ranks.
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "command.h"
#include "doctor/probe.h"
#include "exit_code.h"
#include "stack/run.h"
#include "transport/threads.h"

namespace laconic::app {
namespace {

/// The MPI that started this process: "openmpi", "mpich", or empty.
std::string launcher_flavour() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return "openmpi";
  if (std::getenv("PMI_RANK") != nullptr || std::getenv("PMI_SIZE") != nullptr) return "mpich";
  return "";
}

[[noreturn]] void become_helper(const std::string& flavour, char** arguments) {
  const std::string helper = executable_folder() + "/laconic-stack-" + flavour;
  ::execv(helper.c_str(), arguments);
  throw Failure(
      Exit::communication,
      fmt::format("started by {}'s launcher, but '{}' cannot be run: {}; install that MPI's development files and "
                  "build again",
                  flavour, helper, std::strerror(errno)));
}

int run_stack(const Session& session, const StackOptions& options) {
  if (const std::string flavour = launcher_flavour(); !flavour.empty()) become_helper(flavour, session.arguments);
  if (options.ranks < 1 || options.ranks > 256)
    throw Failure(Exit::usage, fmt::format("--ranks {} is not between 1 and 256", options.ranks));
  std::atomic<int> code{0};
  run_ranks(options.ranks, [&](Transport& transport) {
    const int mine = run_stack_rank(options, session.json, session.quiet, transport, ring_baseline(transport));
    if (transport.rank() == 0) code = mine;
  });
  return code;
}

}  // namespace

void add_stack(CLI::App& app, Session& session) {
  auto options = std::make_shared<StackOptions>();
  CLI::App* c = app.add_subcommand("stack", "Sum or average images over ranks: plain allreduce beside Laconic's");
  options->add_to(*c);
  c->callback([&session, options] { session.command = [&session, options] { return run_stack(session, *options); }; });
}

}  // namespace laconic::app
