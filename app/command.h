// What the commands of `laconic` share: one register function a command, and the options that all of them take.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace laconic::app {

struct Session {
  bool json = false;           ///< one JSON object on stdout instead of text
  bool quiet = false;          ///< no progress bars, no report; errors only
  char** arguments = nullptr;  ///< the whole command line, null-terminated
  /// Set by the chosen command while parsing; run afterwards. Returns an exit code.
  std::function<int()> command;

  [[nodiscard]] bool progress() const { return !json && !quiet; }
};

void add_compress(CLI::App& app, Session& session);
void add_decompress(CLI::App& app, Session& session);
void add_inspect(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);
/// `bench` is the command that add_bench() adds.
void add_error_bench(CLI::App& bench, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_policy(CLI::App& app, Session& session);
void add_run(CLI::App& app, Session& session);
void add_stack(CLI::App& app, Session& session);

}  // namespace laconic::app
