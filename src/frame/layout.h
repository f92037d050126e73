// Where a frame's header has its fields; docs/format.md has the same table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace laconic::frame {

/// Fixed-size head of every frame; enough to size a receive buffer.
inline constexpr std::size_t header_bytes = 48;

inline constexpr std::uint32_t magic = 0x314E434C;  // "LCN1"
inline constexpr std::uint8_t version = 1;

inline constexpr std::size_t at_magic = 0;
inline constexpr std::size_t at_version = 4;
inline constexpr std::size_t at_dtype = 5;
inline constexpr std::size_t at_codec = 6;
inline constexpr std::size_t at_qbits = 7;
inline constexpr std::size_t at_operands = 8;
inline constexpr std::size_t at_crc = 12;
inline constexpr std::size_t at_count = 16;
inline constexpr std::size_t at_bytes = 24;
inline constexpr std::size_t at_step = 32;
inline constexpr std::size_t at_bound = 40;

}  // namespace laconic::frame
