#include "collective/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/layout.h"
#include "collective/movement.h"
#include "collective/operate.h"
#include "collective/reduction.h"
#include "collective/sample.h"
#include "transport/transport.h"

namespace laconic {
namespace {

class HostMemory final : public Memory {
 public:
  [[nodiscard]] bool on_host() const override { return true; }

  Room array_room(std::size_t bytes) override { return std::make_shared_for_overwrite<std::uint8_t[]>(bytes); }
  // Not cleared: a large buffer costs only the pages that a message fills.
  Room message_room(std::size_t bytes) override { return array_room(bytes); }

  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) std::memmove(to, from, bytes);
  }
  void fetch_sample(ConstArray x, void* to) override {
    const Sample sample{x.count};
    auto* out = static_cast<std::uint8_t*>(to);
    for (std::uint64_t i = 0; i < sample.chunks(); ++i) {
      const std::size_t first = sample.first(i);
      const ConstArray chunk = slice_of(x, first, std::min(frame::chunk_values, x.count - first));
      copy(out, chunk.data, chunk.bytes());
      out += chunk.bytes();
    }
  }

  Range scan(ConstArray x, int threads) override { return laconic::scan(x, threads); }
  Outliers count_outliers(ConstArray x, double limit, double fill) override {
    return laconic::count_outliers(x, limit, fill);
  }
  void divide(MutArray x, int by) override { laconic::divide(x, by); }

  std::unique_ptr<Kernel> movement(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                   const Budget& budget, int threads) override {
    return std::make_unique<MovementKernel>(std::move(operands), std::move(results), budget, threads);
  }
  std::unique_ptr<Kernel> reduction(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results,
                                    const Budget& budget, Summands summands, int threads) override {
    return reduction_kernel(op, std::move(operands), std::move(results), budget, summands.averaged, threads);
  }

  PlainCollectives* plain(Transport& transport) override { return transport.plain(); }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

HostOperand::HostOperand(Memory& memory, ConstArray x) : x_(x) {
  if (memory.on_host() || x.data == nullptr) return;
  copy_ = host_memory().array_room(x.bytes());
  memory.copy(copy_.get(), x.data, x.bytes());
  x_.data = copy_.get();
}

HostResult::HostResult(Memory& memory, MutArray y) : memory_(memory), there_(y), y_(y) {
  if (memory.on_host() || y.data == nullptr) return;
  copy_ = host_memory().array_room(y.bytes());
  memory.copy(copy_.get(), y.data, y.bytes());
  y_.data = copy_.get();
}

void HostResult::put_back() {
  if (copy_ != nullptr) memory_.copy(there_.data, copy_.get(), there_.bytes());
}

}  // namespace laconic
