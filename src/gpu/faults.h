// What a call on the device leaves behind beside its result: how many bytes it wrote, and what went wrong.
#pragma once

#include <cstdint>

namespace laconic::gpu {

/// Bits of Report::faults. After any of them the result is not to be used.
enum class Fault : std::uint32_t {
  none = 0,
  corrupt = 1,         ///< an operand is no valid stream, or not the one that was announced
  too_small = 2,       ///< the result needs more room than there is
  too_many_terms = 4,  ///< an exact sum needs more than 32 terms or 256 KiB a chunk: values of absurdly different size
};

/// Lies in device memory; a copy may go to pinned host memory. Meaningful when the stream has come past the call.
struct Report {
  std::uint64_t bytes = 0;   ///< of the frame that was written; 0 for slots and decoding
  std::uint32_t faults = 0;  ///< bits of Fault
  std::uint32_t begun = 0;   ///< tiles that the device has begun to decode; its own
};

}  // namespace laconic::gpu
