// Whether the dynamic loader can load the drop-in library before a command, and what has to be said to it for that: an
// installed library needs the program's MPI (libmpi.so.12), and does not say where that is.
#pragma once

#include <string>
#include <vector>

namespace laconic::app {

/// The folder of the MPI library that a command's programs load, of the kind that `library` needs: as the loader would
/// for one of them, else beside one or its launcher. Empty where they load the same with `library` before them, or none
/// is found.
std::string folder_of_mpi(const std::string& library, const std::vector<std::string>& command);

/// A folder behind those that LD_LIBRARY_PATH has; an empty one changes nothing.
std::string with_library_folder(const std::string& paths, const std::string& folder);

/// Puts it there, for what this process starts.
void add_library_folder(const std::string& folder);

/// Why no program would start with `library` before it, or none would have it, if LD_LIBRARY_PATH had this folder
/// besides; empty: it does. A program is started so.
std::string why_not_preloaded(const std::string& library, const std::string& folder);

}  // namespace laconic::app
