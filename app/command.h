// What the commands of `laconic` share: one register function a command, and the options that all of them take.
#pragma once

#include <functional>
#include <string>

#include "command_line.h"
#include "report/streams.h"

namespace laconic::app {

struct Session {
  bool json = false;   ///< one JSON object on stdout instead of text
  bool quiet = false;  ///< no progress bars, no report; errors only
  /// Set by the chosen command while parsing; run afterwards. Returns an exit code.
  std::function<int()> command;
  char** arguments = nullptr;  ///< the command line, null at its end

  [[nodiscard]] bool progress() const { return !json && !quiet; }
  void warn(const std::string& what) const {
    if (!quiet) complain("laconic: warning: " + printable(what) + "\n");
  }
};

void add_compress(CommandSyntax app, Session& session);
void add_decompress(CommandSyntax app, Session& session);
void add_inspect(CommandSyntax app, Session& session);
void add_bench(CommandSyntax app, Session& session);
/// `bench` is the command that add_bench() adds.
void add_error_bench(CommandSyntax bench, Session& session);
void add_doctor(CommandSyntax app, Session& session);
void add_policy(CommandSyntax app, Session& session);
void add_run(CommandSyntax app, Session& session);
void add_stack(CommandSyntax app, Session& session);

}  // namespace laconic::app
