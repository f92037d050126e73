#include "preload/mpi/device_memory.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace laconic::preload {
namespace {

// Of cuda.h, which need not be there.
using GetAttribute = int (*)(void* value, int attribute, std::uintptr_t at);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr int memory_type_device = 2;

// Of hsa.h and hsa_ext_amd.h alike. HIP's own question would leave an error behind for memory that is not HIP's.
struct PointerInfo {
  std::uint32_t bytes;  // of this structure: a newer runtime fills no more
  std::uint32_t type;
  void* of_agent;
  void* of_host;
  std::size_t size;
  void* user_data;
  std::uint64_t owner;
};
using GetPointerInfo = int (*)(std::uintptr_t at, PointerInfo* info, void* (*allocate)(std::size_t), std::uint32_t*,
                               std::uint64_t**);
using GetAgentInfo = int (*)(std::uint64_t agent, int attribute, void* value);
constexpr std::uint32_t pointer_type_unknown = 0;
constexpr std::uint32_t pointer_type_locked = 2;  // the program's own, which the GPU may use
constexpr int agent_info_device = 17;
constexpr std::uint32_t device_type_gpu = 1;

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

/// The library, if the process has it; it stays then.
void* loaded(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_NOLOAD); }

/// A function of a library that the process has.
template <typename Function>
Function function_of(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// What the process has loaded of those who know about memory.
class Runtimes {
 public:
  /// Looks again where libraries have been loaded since: for files, too, tens of microseconds.
  static const Runtimes& known() {
    static Runtimes all;
    const unsigned long long now = loads();
    if (now != all.looked_at_.load()) {
      all.look();
      all.looked_at_ = now;
    }
    return all;
  }

  [[nodiscard]] bool is_of_cuda(std::uintptr_t at) const {
    const GetAttribute ask = cuda_.load();
    unsigned type = 0, managed = 0;
    if (ask == nullptr || ask(&type, attribute_memory_type, at) != 0 || type != memory_type_device) return false;
    return ask(&managed, attribute_is_managed, at) != 0 || managed == 0;
  }

  [[nodiscard]] bool is_of_rocm(std::uintptr_t at) const {
    const GetPointerInfo ask = rocm_.load();
    const GetAgentInfo ask_agent = agent_.load();
    PointerInfo info{};
    info.bytes = sizeof info;
    if (ask == nullptr || ask_agent == nullptr || ask(at, &info, nullptr, nullptr, nullptr) != 0) return false;
    if (info.type == pointer_type_unknown || info.type == pointer_type_locked) return false;
    std::uint32_t device = 0;
    return ask_agent(info.owner, agent_info_device, &device) == 0 && device == device_type_gpu;
  }

  /// Level Zero tells it only to who has the program's context.
  [[nodiscard]] bool is_out_of_reach(std::uintptr_t at) const {
    if (!level_zero_) return false;
    char byte = 0;
    const iovec to{&byte, 1};
    const iovec from{reinterpret_cast<void*>(at), 1};  // NOLINT(performance-no-int-to-ptr)
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == EFAULT;
  }

 private:
  void look() {
    if (void* const library = loaded("libcuda.so.1"); library != nullptr)
      cuda_ = function_of<GetAttribute>(library, "cuPointerGetAttribute");
    if (void* const library = loaded("libhsa-runtime64.so.1"); library != nullptr) {
      agent_ = function_of<GetAgentInfo>(library, "hsa_agent_get_info");
      rocm_ = function_of<GetPointerInfo>(library, "hsa_amd_pointer_info");
    }
    level_zero_ = loaded("libze_loader.so.1") != nullptr;
  }

  std::atomic<unsigned long long> looked_at_{0};
  std::atomic<GetAttribute> cuda_{nullptr};
  std::atomic<GetPointerInfo> rocm_{nullptr};
  std::atomic<GetAgentInfo> agent_{nullptr};
  std::atomic<bool> level_zero_{false};
};

}  // namespace

bool is_device_memory(std::uintptr_t at) {
  const Runtimes& ask = Runtimes::known();
  return ask.is_of_cuda(at) || ask.is_of_rocm(at) || ask.is_out_of_reach(at);
}

}  // namespace laconic::preload
