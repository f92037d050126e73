// MPI's functions as those find them that do not look for them the way programs do.
//
// The loader looks into this library before MPI's, but not for plugins that a program opens with RTLD_DEEPBIND, nor for
// who opens MPI's library and asks that one (dlsym on a handle: Python's ctypes, Julia). A communicator of which one
// rank's call is served and another's, the same call, is not, waits for ever. So MPI's library itself gives
// Laconic's functions for its own: in its table of symbols, in this process's memory, their addresses are replaced.
#pragma once

namespace laconic::preload {

/// Takes this library's functions out of everybody's sight: calls that have been led here, and those that will be
/// looked for, meet what is behind. For programs of another MPI, before they begin.
void step_aside();

/// Whether the program's calls of this name come to this library first: no tool's wrapper is in front of it.
bool comes_here_first(const char* name);

/// The function that a call of this name would have met without Laconic: another tool's wrapper, or MPI's own. Null:
/// there is none.
void* address_behind(const char* name);

}  // namespace laconic::preload
