// The functions of the program's NCCL, wherever the program has it from.
#pragma once

#include <dlfcn.h>
#include <nccl.h>

#include <cstdio>

namespace laconic::preload {

/// Null, and said on standard error, where there is none: an NCCL that is too old, or that was linked into a library
/// which keeps it to itself. NCCL may have been loaded for one library alone, as Python loads its modules' libraries;
/// it is opened to all then.
template <typename Function>
Function next(const char* name) {
  static const bool opened = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) != nullptr;
  static_cast<void>(opened);
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::fprintf(stderr, "laconic: the program's NCCL has no %s that can be found\n", name);
  return reinterpret_cast<Function>(found);
}

/// Calls what next() found.
template <typename Function, typename... Arguments>
ncclResult_t plainly(Function function, Arguments... arguments) {
  return function == nullptr ? ncclSystemError : function(arguments...);
}

}  // namespace laconic::preload
