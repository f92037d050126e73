// laconic stack: images summed over ranks, which threads play. Under an MPI launcher the command has become the
// executable for that MPI before (launcher.h).
#include <fmt/core.h>

#include <atomic>

#include "command.h"
#include "exit_code.h"
#include "stack/run.h"
#include "transport/threads.h"

namespace laconic::app {
namespace {

int run_stack(const Session& session, const StackOptions& options) {
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

void add_stack(CommandSyntax app, Session& session) {
  auto options = std::make_shared<StackOptions>();
  CommandSyntax c = app.add_command("stack", "Sum or average images over ranks: plain allreduce beside Laconic's");
  options->add_to(c);
  c.on_chosen([&session, options] { session.command = [&session, options] { return run_stack(session, *options); }; });
}

}  // namespace laconic::app
