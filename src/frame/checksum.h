// CRC-32C (Castagnoli, as in RFC 3720) of bytes that come in pieces, or in another order than they lie in. By ISA-L.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace laconic::frame {

/// The register of a CRC under way: starts as crc_start; its complement is the checksum.
inline constexpr std::uint32_t crc_start = 0xFFFFFFFFU;

/// The register after these bytes too.
std::uint32_t crc_update(std::uint32_t crc, std::span<const std::uint8_t> bytes);

/// The register after bytes that led to `first`, and then `n` bytes that lead from 0 to `second`.
std::uint32_t crc_join(std::uint32_t first, std::uint32_t second, std::uint64_t n);

}  // namespace laconic::frame
