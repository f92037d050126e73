// Options that several commands take, and their validation.
#pragma once

#include <string>

#include "command_line.h"
#include "core/bound.h"
#include "io/array_file.h"

namespace laconic::app {

/// --dtype and --dims of raw files.
struct HintOptions {
  std::string dtype;
  std::string dims;

  /// `files`: the argument that names them.
  void add_to(CommandSyntax command, const std::string& files);
  [[nodiscard]] ArrayHint hint() const;
};

/// "64MiB", "256k", "1000000" (k, M, G and KiB, MiB, GiB are powers of 1024) to bytes. Throws Failure(usage).
std::size_t parse_size(const std::string& text);

/// Checks a --threads value: 1 to 1024, Failure(usage) otherwise.
int checked_threads(int threads);

}  // namespace laconic::app
