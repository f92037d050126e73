// What every rank tells all others at the beginning of a round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace laconic::nccl {

constexpr std::size_t most_notices = 24;  // as many as a pipeline has under way, and a header stays within 1 KiB
constexpr std::size_t most_inline = 512;

/// A message that travels in this round.
struct Notice {
  std::int32_t to = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;
};

/// Fixed size, no padding. All ranks run the same build of Laconic on machines of the same byte order.
struct Header {
  std::uint32_t magic = 0x324E434C;  // "LCN2"
  std::uint32_t notices = 0;
  std::uint64_t round = 0;
  std::uint64_t stands = 0;       ///< in allgather_small, and has announced all that it sent before
  std::uint64_t small_bytes = 0;  ///< of its payload there
  std::uint64_t rate = 0;         ///< at which messages come to it, see Pace
  Notice notice[most_notices]{};
  std::uint8_t small[most_inline]{};  ///< the payload, if it fits; else it travels among the messages
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) == 40 + 16 * most_notices + most_inline);

}  // namespace laconic::nccl
