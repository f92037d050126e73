// What the programs that run translated kernels (machine.h) have in common: memory, arguments and launches.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "machine.h"

namespace laconic::test {

inline u8* map(std::size_t bytes, int flags) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (p == MAP_FAILED) fail("no memory");
  return static_cast<u8*>(p);
}

/// Memory as cudaMalloc() aligns it, poisoned.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    const std::size_t whole = (bytes + 511) & ~std::size_t{255};
    p_.reset(static_cast<u8*>(std::aligned_alloc(256, whole)));
    std::memset(p_.get(), 0xA5, bytes);
  }
  explicit Memory(const std::vector<u8>& contents) : Memory(contents.size()) {
    std::memcpy(p_.get(), contents.data(), contents.size());
  }
  u8* get() const { return p_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(u8* p) const { std::free(p); }
  };
  std::unique_ptr<u8, Free> p_;
  std::size_t bytes_;
};

/// A parameter as a kernel takes it.
template <class A>
u8* at_argument(A& argument) {
  return reinterpret_cast<u8*>(&argument);
}

/// One block after the other, each with poisoned shared memory.
inline void launch(u64 blocks, std::size_t dynamic_shared_bytes, void (*kernel)(Lane&), int threads = block_size) {
  constexpr std::size_t static_shared_bytes = 4096;
  // Kernels keep addresses in shared memory in 32 bits, so it has to lie low.
  static u8* const dynamic_shared = map(std::size_t{1} << 20, MAP_32BIT);
  static u8* const static_shared = dynamic_shared + (std::size_t{1} << 18);
  static u8* const stacks = map(block_size * stack_bytes, MAP_NORESERVE);
  for (u64 b = 0; b < blocks; b++) {
    std::memset(dynamic_shared, 0x5A, dynamic_shared_bytes);
    std::memset(static_shared, 0x5A, static_shared_bytes);
    run_block(static_cast<u32>(b), static_cast<u32>(blocks), dynamic_shared, static_shared, stacks, kernel, threads);
  }
}

}  // namespace laconic::test
