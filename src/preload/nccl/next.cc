#include "preload/nccl/next.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace laconic::preload {
namespace {

/// Whether it is of this library.
bool is_own(void* function) {
  Dl_info theirs{}, ours{};
  return dladdr(function, &theirs) != 0 && dladdr(reinterpret_cast<void*>(&find_next), &ours) != 0 &&
         theirs.dli_fbase == ours.dli_fbase;
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> all;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        if (*info->dlpi_name != '\0') static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
        return 0;
      },
      &all);
  return all;
}

/// The library that has it, though perhaps for one other library alone, as Python loads its modules' libraries. It
/// stays.
void* library_with(const char* name) {
  for (const std::string& path : loaded_libraries()) {
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const found = dlsym(library, name);
    if (found != nullptr && !is_own(found)) return library;
    dlclose(library);
  }
  return nullptr;
}

}  // namespace

void* find_next(const char* name) {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  if (dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) != nullptr) {  // a library of its own: open to all
    if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  }
  static std::atomic<void*> other{nullptr};
  void* library = other;
  if (library == nullptr) other = library = library_with(name);
  void* const found = library != nullptr ? dlsym(library, name) : nullptr;
  return found != nullptr && !is_own(found) ? found : nullptr;
}

}  // namespace laconic::preload
