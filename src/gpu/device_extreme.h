// Minimum and maximum of arrays in device memory.
#pragma once

#include <vector>

#include "core/op.h"
#include "gpu/device_kernel.h"

namespace laconic::gpu {

/// As ExtremeKernel of collective/extreme.h, with the same bytes: what is compared are values on the grid.
class DeviceExtremeKernel final : public DeviceKernel {
 public:
  /// As DeviceKernel; op is min or max.
  DeviceExtremeKernel(Op op, Memory& memory, const Lanes& lanes, std::vector<ConstArray> operands,
                      std::vector<MutArray> results, const Budget& budget, int threads);

  [[nodiscard]] bool begins() const override { return false; }
  std::size_t encode(const Part& part, frame::MutBytes out) override;
  [[nodiscard]] bool delivers_as_it_encodes() const override { return false; }
  std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) override;
  std::size_t add_plain(const Part& part, frame::Bytes held, ConstArray received, frame::MutBytes out) override;
  [[noreturn]] void keep(const Part& part) override;

 private:
  [[nodiscard]] Workspace begin_with(std::size_t count);
  [[nodiscard]] MutArray room(DeviceBuffer& buffer, std::size_t count) const;
  /// These only enqueue.
  ConstArray on_grid(ConstArray x, Workspace work);
  MutArray decoded(int i, frame::Bytes message, DeviceBuffer& buffer, std::size_t count, Workspace work);
  /// a = extreme of a and b, encoded; waits.
  std::size_t encode_extreme(MutArray a, ConstArray b, Workspace work, std::span<const frame::Bytes> messages,
                             frame::MutBytes out);
  std::size_t encoded(ConstArray x, Workspace work, std::span<const frame::Bytes> messages, frame::MutBytes out);

  Op op_;
};

}  // namespace laconic::gpu
