// What laconic doctor looks at, as plain data.
#pragma once

#include <string>
#include <vector>

namespace laconic::app {

/// One thing that was looked for.
struct Finding {
  std::string topic;  ///< "processor", "MPI", "emulated cluster", ...
  std::string what;   ///< "Open MPI"
  bool found = false;
  std::string detail;  ///< version and path, or what is lost without it
  std::string remedy;  ///< how to get it; empty when found
};

/// Looks at this machine; runs `mpiexec --version` of every launcher that it finds. Changes nothing.
std::vector<Finding> examine_machine();

/// The folder of the running executable, "." when unknown.
std::string executable_folder();

/// Whether that is a file, and one that may be run.
bool is_program(const std::string& path);

/// The first program of this name in $PATH, /usr/sbin and /sbin; empty when there is none.
std::string find_program(const std::string& name);

}  // namespace laconic::app
