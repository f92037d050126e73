#include "preload/mpi/device_memory.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstddef>

namespace laconic::preload {
namespace {

// Of cuda.h, which need not be there.
using GetAttribute = int (*)(void* value, int attribute, std::uintptr_t at);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int memory_type_device = 2;

/// Libraries that the process has loaded so far.
unsigned long long loads() {
  unsigned long long count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds;
        return 1;
      },
      &count);
  return count;
}

GetAttribute driver() {
  static std::atomic<GetAttribute> found{nullptr};
  static std::atomic<unsigned long long> looked_at{0};  // loads, when it was not there
  if (const GetAttribute known = found.load(); known != nullptr) return known;
  const unsigned long long now = loads();
  if (now == looked_at.load()) return nullptr;
  // Looks for the file, too: tens of microseconds.
  if (void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); library != nullptr) {
    found = reinterpret_cast<GetAttribute>(dlsym(library, "cuPointerGetAttribute"));  // the driver is never unloaded
  }
  looked_at = now;
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
