// What the program may call of MPI, as far as its files tell.
#pragma once

#include <string_view>

namespace laconic::preload {

/// Whether a file that is loaded now, other than MPI's own, this one and those whose path has `except` in it, has such
/// a function among those that it takes from others. Not seen are files that are opened later, and what is looked up by
/// name. Thread-safe.
bool imports(bool (*is_such)(std::string_view function), std::string_view except = "liblaconic-mpi");

}  // namespace laconic::preload
