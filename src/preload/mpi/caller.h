// Who made a call: for rules with labels.
#pragma once

#include <string>

namespace laconic::preload {

/// Of the function that called this library, or what of MPI's own (Fortran's entries) leads here: its name, where its
/// file has one that nothing has stripped it of, else the file and the place in it: "libocean.so+0x1a2b". Empty where
/// nobody knows. Thread safe.
std::string caller();

/// Whether it is in one of MPI's files of entries for other languages. Thread safe.
bool is_of_another_language(const void* code);

}  // namespace laconic::preload
