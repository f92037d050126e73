// The host's memory, for tests that do one thing of it otherwise.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "collective/kernel.h"
#include "collective/memory.h"

namespace laconic::test {

class Ordinary : public Memory {
 public:
  [[nodiscard]] bool on_host() const override { return true; }
  Room array_room(std::size_t bytes) override { return host_memory().array_room(bytes); }
  Room message_room(std::size_t bytes) override { return host_memory().message_room(bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { host_memory().copy(to, from, bytes); }
  void fetch_sample(ConstArray x, void* to) override { host_memory().fetch_sample(x, to); }
  Range scan(ConstArray x, int threads) override { return host_memory().scan(x, threads); }
  Outliers count_outliers(ConstArray x, double limit, double fill) override {
    return host_memory().count_outliers(x, limit, fill);
  }
  void divide(MutArray x, int by) override { host_memory().divide(x, by); }
  std::unique_ptr<Kernel> movement(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                   const Budget& budget, int threads) override {
    return host_memory().movement(std::move(operands), std::move(results), budget, threads);
  }
  std::unique_ptr<Kernel> reduction(Op op, std::vector<ConstArray> operands, std::vector<MutArray> results,
                                    const Budget& budget, Summands summands, int threads) override {
    return host_memory().reduction(op, std::move(operands), std::move(results), budget, summands, threads);
  }
  PlainCollectives* plain(Transport& transport) override { return host_memory().plain(transport); }
};

}  // namespace laconic::test
