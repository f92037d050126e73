// The GPU codec run by plain C++: the source of the kernels, tile after tile, warp after warp, lane after lane. What
// the tests compare with the CPU codec, byte for byte.
#pragma once

#include <memory>
#include <vector>

#include "codec/slice_cases.h"
#include "gpu/checksum.h"
#include "gpu/operations.h"

namespace laconic::test {

/// The order in which the emulation runs the lanes of a step, for as long as it lives.
class LaneOrder {
 public:
  LaneOrder(int start, int stride) : before_(gpu::emulated::Warp::order()) {
    gpu::emulated::Warp::order() = {start, stride};
  }
  ~LaneOrder() { gpu::emulated::Warp::order() = before_; }
  LaneOrder(const LaneOrder&) = delete;
  LaneOrder& operator=(const LaneOrder&) = delete;

 private:
  gpu::emulated::Warp::Order before_;
};

/// What an emulated call leaves behind.
struct Emulated {
  std::uint32_t faults = 0;
  std::vector<std::uint8_t> frame;
};

/// The checksum of a frame by so many tiles.
std::uint32_t emulated_checksum(const std::uint8_t* frame, std::size_t readable, std::uint64_t tiles);

/// Encodes x into a frame.
Emulated emulated_encode(const Array& x, const Grid& g);
/// Encodes x into slots, each as large as a chunk can be; `sizes` in units of 4 bytes.
struct EmulatedSlots {
  std::uint32_t faults = 0;
  std::uint32_t slot_bytes = 0;
  std::vector<std::uint8_t> slots;
  std::vector<std::uint16_t> sizes;
};
EmulatedSlots emulated_encode_slots(const Array& x, const Grid& g);

/// Decodes a frame that is announced as one of y's count and dtype on this grid.
std::uint32_t emulated_decode(const std::vector<std::uint8_t>& frame, const Grid& g, std::uint32_t operands,
                              std::uint32_t divisor, Array& y);
std::uint32_t emulated_decode_slots(const EmulatedSlots& in, const Grid& g, Array& y);

/// An operand of a sum: a frame with what it is announced to be.
struct EmulatedOperand {
  const std::vector<std::uint8_t>* frame = nullptr;
  Grid grid;
  std::uint32_t operands = 1;
};
/// The sum of frames, or of x (if it is not null) and frames.
Emulated emulated_sum(const Array& like, const Array* x, const std::vector<EmulatedOperand>& operands);

}  // namespace laconic::test
