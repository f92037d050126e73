#include "codec/slice/scratch.h"

#include <memory>
#include <new>

#include "core/of_thread.h"

namespace laconic::slice {
namespace {

constexpr std::align_val_t alignment{64};

struct Release {
  void operator()(std::byte* p) const { ::operator delete[](p, alignment); }
};

struct Memory {
  std::unique_ptr<std::byte[], Release> at;
  std::size_t bytes = 0;
};

}  // namespace

void* sum_scratch(std::size_t bytes) {
  thread_local OfThread<Memory> own;
  Memory& memory = own.get();
  if (memory.bytes < bytes) {
    memory.at.reset(new (alignment) std::byte[bytes]);
    memory.bytes = bytes;
  }
  return memory.at.get();
}

}  // namespace laconic::slice
