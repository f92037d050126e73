// The options of laconic stack, shared by the command itself and its helper executables for MPI.
#pragma once

#include <string>
#include <vector>

#include "arguments.h"
#include "io/array_file.h"

namespace laconic::app {

struct StackOptions {
  std::vector<std::string> files;
  HintOptions hint;
  std::string set = "rtm";  ///< rtm, exposures, ensemble, gradients, or the name of a sample field
  std::string data;         ///< folder of the sample fields; empty: found
  std::string op = "sum";
  std::string bound = "1e-3rel";
  std::string size = "64MiB";
  std::string out;        ///< folder for pictures; empty: none
  std::string interface;  ///< network interface whose counters tell the bytes on the wire; empty: payload is counted
  std::string link;       ///< its rate, such as 1gbit; empty: unknown
  int ranks = 4;          ///< threads that play ranks when not started by an MPI launcher
  int threads = 1;
  int repetitions = 7;

  void add_to(CommandSyntax command);
};

/// "1gbit", "2500mbit", "10Gb/s" to bytes per second; 0 for an empty text. Throws Failure(usage).
double parse_link_rate(const std::string& text);

}  // namespace laconic::app
