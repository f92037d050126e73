// The laconic command: parses the command line and runs one subcommand.
#include <cstdio>
#include <exception>

#include "command.h"
#include "exit_code.h"

namespace {

using laconic::app::Exit;
using laconic::app::Session;

int parse_and_run(CLI::App& app, Session& session, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(Exit::usage);
  }
  return laconic::app::guarded(
      session.json, [](void* s) { return static_cast<Session*>(s)->command(); }, &session);
}

int run(int argc, char** argv) {
  CLI::App app{"Laconic: error-bounded compression inside communication."};
  app.name("laconic");
  app.set_version_flag("--version", std::string("laconic ") + LACONIC_VERSION);
  app.require_subcommand(1);
  app.footer(laconic::app::exit_code_help());
  Session session;
  session.arguments = argv;
  app.add_flag("--json", session.json, "Machine-readable output: one JSON object on stdout");
  app.add_flag("-q,--quiet", session.quiet, "No report and no progress bar");
  laconic::app::add_compress(app, session);
  laconic::app::add_decompress(app, session);
  laconic::app::add_inspect(app, session);
  laconic::app::add_bench(app, session);
  laconic::app::add_stack(app, session);
  laconic::app::add_run(app, session);
  laconic::app::add_policy(app, session);
  laconic::app::add_doctor(app, session);
  for (CLI::App* sub : app.get_subcommands({})) {
    sub->fallthrough();
    sub->footer(laconic::app::exit_code_help());
  }
  return parse_and_run(app, session, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {  // only before a command runs: guarded() handles the rest
    std::fputs(e.what(), stderr);
    return static_cast<int>(Exit::internal);
  }
}
