#include "preload/mpi/device_memory.h"

#include <dlfcn.h>

#include <atomic>

namespace laconic::preload {
namespace {

// Of cuda.h, which need not be there.
using GetAttribute = int (*)(void* value, int attribute, std::uintptr_t at);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int memory_type_device = 2;

GetAttribute driver() {
  static std::atomic<GetAttribute> found{nullptr};
  if (const GetAttribute known = found.load(); known != nullptr) return known;
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  found = reinterpret_cast<GetAttribute>(dlsym(library, "cuPointerGetAttribute"));  // the driver is never unloaded
  return found;
}

}  // namespace

bool is_device_memory(std::uintptr_t at) {
  const GetAttribute ask = driver();
  unsigned type = 0, managed = 0;
  if (ask == nullptr || ask(&type, attribute_memory_type, at) != 0 || type != memory_type_device) return false;
  return ask(&managed, attribute_is_managed, at) != 0 || managed == 0;
}

}  // namespace laconic::preload
