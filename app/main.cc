// The laconic command: parses the command line and runs one subcommand.
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "command.h"
#include "exit_code.h"
#include "launcher.h"
#include "report/streams.h"

namespace {

using laconic::app::Exit;
using laconic::app::Session;

/// See launcher.h.
int become_mpi_program(void* arguments) {
  laconic::app::become_mpi_program(static_cast<char**>(arguments));
  return static_cast<int>(Exit::ok);
}

int run(int argc, char** argv) {
  const bool first = laconic::app::is_first_rank();
  const bool json = first && laconic::app::asks_for_json(argc, argv);
  if (const int code = laconic::app::guarded(json, become_mpi_program, static_cast<void*>(argv))) return code;
  laconic::app::CommandLine line("laconic", "Laconic: error-bounded compression inside communication.",
                                 std::string("laconic ") + LACONIC_VERSION, laconic::app::exit_code_help());
  laconic::app::CommandSyntax app = line.syntax();
  Session session;
  session.arguments = argv;
  app.flag("--json", session.json, "Machine-readable output: one JSON object on stdout");
  app.flag("-q,--quiet", session.quiet, "No report and no progress bar");
  laconic::app::add_compress(app, session);
  laconic::app::add_decompress(app, session);
  laconic::app::add_inspect(app, session);
  laconic::app::add_bench(app, session);
  laconic::app::add_stack(app, session);
  laconic::app::add_run(app, session);
  laconic::app::add_policy(app, session);
  laconic::app::add_doctor(app, session);
  if (const std::optional<int> code = line.parse(argc, argv, first)) {
    // A launcher ends all ranks with the first that fails, and loses what another is about to say.
    if (!first && *code != 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    return *code;
  }
  return laconic::app::guarded(session.json, [](void* s) { return static_cast<Session*>(s)->command(); }, &session);
}

}  // namespace

int main(int argc, char** argv) {
  laconic::app::open_standard_streams();
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {  // only before a command runs: guarded() handles the rest
    std::fputs(e.what(), stderr);
    return static_cast<int>(Exit::internal);
  }
}
