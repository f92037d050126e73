// What `laconic run` finds out about the program it is to start, without starting it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace laconic::app {

/// How a program comes by its MPI, and which library serves it.
struct MpiOfProgram {
  std::string flavour;  ///< "openmpi", "mpich", "abi"; empty: not found out
  std::string because;  ///< "/usr/bin/app needs libmpi.so.40"
};

/// What a command that is run without a shell between came to.
struct Ran {
  std::string text;  ///< both its streams
  int status = -1;   ///< as waitpid() has it; -1: no process could be made
};

/// Of an environment, with their values.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// Reads nothing; with `more` in its environment.
Ran run_quietly(const std::vector<std::string>& words, const Variables& more = {});

/// Its text alone; empty when it cannot run.
std::string output_of(const std::vector<std::string>& words);

/// What the dynamic loader would load for a file, in ldd's words, which is asked once; empty where it is not there.
const std::string& loads_of(const std::string& path);

/// command: a launcher with its arguments, or a program alone. Looks at the files that the words name: what MPI library
/// a program needs; else (Python, scripts) whose the launcher is, by its --version, if
/// is_launcher(); nothing else is run. Throws Failure(usage) for a program that MPI is linked into
/// statically: nothing can be loaded before it.
MpiOfProgram mpi_of(const std::vector<std::string>& command);

/// Whether no file that the words name has a collective that does not block among its functions' names: then nothing is
/// gained by letting MPI have several threads. False where that cannot be told: no program that needs MPI is among the
/// words (Python, scripts).
bool does_nothing_in_background(const std::vector<std::string>& command);

/// The file that a word of a command line would run, itself or on the PATH; empty if there is none.
std::string executable_of(const std::string& word);

/// Whether a word is called as MPIs call their launchers: mpirun, mpiexec, orterun, prterun or prun, or one of these
/// with an MPI's name behind a dot. Anything else must not be run to find out what it is.
bool is_launcher(const std::string& word);

/// Throws Failure(usage) if the command's launcher is one under which ranks cannot find each other before MPI has
/// begun (MPI_Publish_name): they would wait for ever.
void require_name_service(const std::vector<std::string>& command);

/// The MPI of a launcher, which is run for it, if is_launcher(); empty if it is none that is known.
std::string flavour_of_launcher(const std::string& word);

/// The flavour of a launcher that says this of its version; empty if it is none that is known.
std::string flavour_of_version(const std::string& text);

/// liblaconic-mpi.so for a flavour: beside this executable's build or installation. Throws Failure(usage) that says
/// where it was looked for.
std::string preload_library(const std::string& flavour);

}  // namespace laconic::app
