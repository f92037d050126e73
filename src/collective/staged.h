// A kernel for arrays that plain code cannot reach: segment by segment they are copied to the host's memory, where any
// other kernel works on them, and back. What a device has no kernel of its own for takes this way.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collective/kernel.h"
#include "collective/memory.h"

namespace laconic {

class StagedKernel final : public Kernel {
 public:
  using Make = std::function<std::unique_ptr<Kernel>(std::vector<ConstArray>, std::vector<MutArray>)>;

  /// Operands and results lie in `memory`, which must outlive this. `make` makes the kernel that works on their copies.
  StagedKernel(Memory& memory, std::vector<ConstArray> operands, std::vector<MutArray> results, const Make& make);

  [[nodiscard]] std::size_t element_bytes() const override { return inner_->element_bytes(); }
  [[nodiscard]] std::size_t capacity(std::size_t values) const override { return inner_->capacity(values); }
  std::size_t encode(const Part& part, frame::MutBytes out) override;
  [[nodiscard]] bool delivers_as_it_encodes() const override { return inner_->delivers_as_it_encodes(); }
  std::size_t encode_final(const Part& part, frame::MutBytes out) override;
  std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) override;
  [[nodiscard]] std::size_t most_addends() const override { return inner_->most_addends(); }
  std::size_t sum(const Part& part, std::optional<frame::Bytes> held, std::span<const frame::Bytes> received,
                  frame::MutBytes out) override;
  std::size_t add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) override;
  void read_plain(const Part& part, bool of_result, frame::MutBytes out) override;
  void deliver_plain(const Part& part, frame::Bytes elements) override;
  void keep(const Part& part) override;
  void deliver(const Part& part, frame::Bytes message) override;
  [[nodiscard]] bool reopens() const override { return inner_->reopens(); }
  std::size_t reopen(const Part& part, frame::Bytes received, frame::MutBytes out) override;

 private:
  void bring(const Part& part);
  void put(const Part& part);
  /// Runs work of the inner kernel's and takes over what it says of its time.
  template <typename Work>
  auto timed(Work&& work);

  Memory& memory_;
  std::vector<Room> rooms_;
  std::unique_ptr<Kernel> inner_;
};

}  // namespace laconic
