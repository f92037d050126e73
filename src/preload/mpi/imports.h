// What the program may call of MPI, as far as its files tell.
#pragma once

namespace laconic::preload {

/// Whether a file that is loaded now, other than MPI's own and this one, has a non-blocking or persistent form of the
/// collectives that are served among the functions that it takes from others. Not seen are files that are opened later,
/// and what is looked up by name. Thread-safe.
bool imports_background_collectives();

}  // namespace laconic::preload
