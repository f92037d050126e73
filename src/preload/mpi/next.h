// The function that a call would have met without Laconic: another tool's wrapper, or MPI's own.
#pragma once

#include "preload/mpi/entries.h"

namespace laconic::preload {

/// Of the same name, behind this library. Null: the MPI library has none.
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(address_behind(name));
}

}  // namespace laconic::preload
