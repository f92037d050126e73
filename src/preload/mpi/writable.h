// Whether the program's memory may be written to, where it did not say that it would be: the root of a broadcast.
#pragma once

#include "preload/mpi/call.h"

namespace laconic::preload {

/// Of an array without gaps the kernel is asked, which makes its pages ready to be written. Of other layouts it is
/// looked up what the memory from their first to their last byte is mapped for: false also where only a gap may not be
/// written, or is not there. Thread safe.
bool is_writable(const Side& side);

}  // namespace laconic::preload
