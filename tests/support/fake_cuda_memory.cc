// Device, pinned and pageable memory, and what copies between them.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "support/fake_cuda.h"

namespace laconic::fake {
namespace {

struct Allocation {
  std::size_t bytes = 0;    ///< as asked for
  std::size_t mapped = 0;   ///< whole pages; 0: pinned host memory
  bool registered = false;  ///< pinned where it was: somebody else's memory
  int device = 0;
  int openings = 0;
};

struct Memory {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> all;
  std::map<int, int> open_devices;  ///< how many want all of a device's memory
};

Memory& memory() {
  static Memory* const it = new Memory;  // outlives every thread
  return *it;
}

std::atomic<std::size_t> freed = 0;

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Where p lies, one past the end included only for empty ranges. end() for memory that CUDA does not know. Locked.
std::map<std::uintptr_t, Allocation>::iterator find(const void* p) {
  auto& all = memory().all;
  auto it = all.upper_bound(address(p));
  if (it == all.begin()) return all.end();
  --it;
  return address(p) - it->first < it->second.bytes ? it : all.end();
}

void protect(std::uintptr_t begin, const Allocation& a, bool open) {
  void* const pages = reinterpret_cast<void*>(begin);
  if (mprotect(pages, a.mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) give_up("mprotect failed");
}

void change(std::uintptr_t begin, Allocation& a, int by) {
  const bool was_open = a.openings > 0;
  a.openings += by;
  if (was_open != (a.openings > 0)) protect(begin, a, a.openings > 0);
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

cudaError_t allocate_device(void** pointer, std::size_t bytes) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  if (pointer == nullptr) return note(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Allocation a{.bytes = bytes, .mapped = (bytes + page - 1) / page * page, .device = current_device()};
  if (a.mapped < bytes) return note(cudaErrorMemoryAllocation);
  void* const pages = mmap(nullptr, a.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return note(cudaErrorMemoryAllocation);
  std::memset(pages, 0xCD, a.mapped);  // what a GPU leaves there is not zero either
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  a.openings = m.open_devices[a.device];
  if (a.openings == 0) protect(address(pages), a, false);
  m.all[address(pages)] = a;
  *pointer = pages;
  return cudaSuccess;
}

cudaError_t release(void* pointer, bool device) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  if (pointer == nullptr) return cudaSuccess;
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  const auto it = m.all.find(address(pointer));
  if (it == m.all.end() || (it->second.mapped != 0) != device || it->second.registered) {
    return note(cudaErrorInvalidValue);
  }
  if (device) {
    munmap(pointer, it->second.mapped);
  } else {
    std::free(pointer);
  }
  ++freed;
  m.all.erase(it);
  return cudaSuccess;
}

cudaError_t allocate_pinned(void** pointer, std::size_t bytes) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  if (pointer == nullptr) return note(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  void* const p = std::malloc(bytes);
  if (p == nullptr) return note(cudaErrorMemoryAllocation);
  std::memset(p, 0xCD, bytes);
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  m.all[address(p)] = {.bytes = bytes, .device = current_device()};
  *pointer = p;
  return cudaSuccess;
}

cudaError_t register_pinned(void* pointer, std::size_t bytes) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  if (pointer == nullptr || bytes == 0) return note(cudaErrorInvalidValue);
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  if (find(pointer) != m.all.end()) return note(cudaErrorHostMemoryAlreadyRegistered);
  m.all[address(pointer)] = {.bytes = bytes, .registered = true, .device = current_device()};
  return cudaSuccess;
}

cudaError_t unregister_pinned(void* pointer) {
  if (breaks_a_capture()) return cudaErrorStreamCaptureUnsupported;
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  const auto it = m.all.find(address(pointer));
  if (it == m.all.end() || !it->second.registered) return note(cudaErrorHostMemoryNotRegistered);
  ++freed;
  m.all.erase(it);
  return cudaSuccess;
}

bool is_device(const void* p) {
  const std::lock_guard lock(memory().mutex);
  const auto it = find(p);
  return it != memory().all.end() && it->second.mapped != 0;
}

/// Whether the pointers are where `kind` says.
bool fits(const void* to, const void* from, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return true;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return is_device(to) == to_device && is_device(from) == from_device;
}

void copy(void* to, const void* from, std::size_t bytes) {
  const DeviceAccess a(to, bytes), b(from, bytes);
  std::memmove(to, from, bytes);
}

}  // namespace

DeviceAccess::DeviceAccess() : device_(current_device()), begin_(nullptr) {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  ++m.open_devices[device_];
  for (auto& [begin, a] : m.all) {
    if (a.mapped != 0 && a.device == device_) change(begin, a, 1);
  }
}

DeviceAccess::DeviceAccess(const void* begin, std::size_t bytes) : device_(-1), begin_(nullptr) {
  if (bytes == 0) return;
  const std::lock_guard lock(memory().mutex);
  const auto it = find(begin);
  if (it == memory().all.end()) return;
  if (it->second.bytes - (address(begin) - it->first) < bytes) {
    give_up("%zu bytes at %p lead beyond their allocation of %zu bytes", bytes, begin, it->second.bytes);
  }
  if (it->second.mapped == 0) return;
  change(it->first, it->second, 1);
  begin_ = begin;
}

DeviceAccess::~DeviceAccess() {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  if (begin_ != nullptr) {
    const auto it = find(begin_);
    if (it == m.all.end()) give_up("device memory was freed while an operation worked on it");
    change(it->first, it->second, -1);
  }
  if (device_ < 0) return;
  --m.open_devices[device_];
  for (auto& [begin, a] : m.all) {
    if (a.mapped != 0 && a.device == device_) change(begin, a, -1);
  }
}

std::size_t frees() { return freed; }

void count_allocations(Live& into) {
  const std::lock_guard lock(memory().mutex);
  for (const auto& [begin, a] : memory().all) ++(a.mapped != 0 ? into.device_allocations : into.pinned_allocations);
}

}  // namespace laconic::fake

using namespace laconic::fake;  // NOLINT(google-build-using-namespace): the functions of a C API

cudaError_t cudaMalloc(void** pointer, size_t bytes) { return allocate_device(pointer, bytes); }
cudaError_t cudaFree(void* pointer) { return release(pointer, true); }
cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return allocate_pinned(pointer, bytes); }
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return allocate_pinned(pointer, bytes); }
cudaError_t cudaFreeHost(void* pointer) { return release(pointer, false); }
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) { return register_pinned(pointer, bytes); }
cudaError_t cudaHostUnregister(void* pointer) { return unregister_pinned(pointer); }

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) { return allocate_device(pointer, bytes); }
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  enqueue(stream, [pointer] {
    if (release(pointer, true) != cudaSuccess) give_up("cudaFreeAsync of what is not allocated");
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!fits(to, from, kind)) return note(cudaErrorInvalidValue);
  enqueue(stream, [=] {
    copy(to, from, bytes);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return status != cudaSuccess ? status : cudaStreamSynchronize(nullptr);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  enqueue(stream, [=] {
    const DeviceAccess access(to, bytes);
    std::memset(to, value, bytes);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  const cudaError_t status = cudaMemsetAsync(to, value, bytes, nullptr);
  return status != cudaSuccess ? status : cudaStreamSynchronize(nullptr);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return note(cudaErrorInvalidValue);
  *attributes = {};
  const std::lock_guard lock(memory().mutex);
  const auto it = find(pointer);
  if (it == memory().all.end()) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    return cudaSuccess;
  }
  void* const p = const_cast<void*>(pointer);
  attributes->type = it->second.mapped != 0 ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attributes->device = it->second.device;
  attributes->devicePointer = p;
  attributes->hostPointer = it->second.mapped != 0 ? nullptr : p;
  return cudaSuccess;
}
