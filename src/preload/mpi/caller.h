// Who made a call: for rules with labels.
#pragma once

#include <string>

namespace laconic::preload {

/// Of the function that called this library, or what of MPI's own (Fortran's entries) leads here: its name, where its
/// file has one that nothing has stripped it of, else the file and the place in it: "libocean.so+0x1a2b". Empty where
/// nobody knows. Thread safe.
std::string caller();

}  // namespace laconic::preload
