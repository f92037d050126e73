// Makes a damaged frame's checksum right again, so that what lies behind the checksum is tested. CRC-32C bit by bit,
// written apart from the library's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace laconic::test {

inline std::uint32_t crc32c(std::uint32_t crc, const std::uint8_t* p, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    crc ^= p[i];
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (0x82F63B78U & (0U - (crc & 1)));
  }
  return crc;
}

inline std::uint32_t frame_checksum(const std::uint8_t* frame, std::size_t n) {
  return ~crc32c(crc32c(0xFFFFFFFFU, frame, 12), frame + 16, n - 16);
}

/// frame has at least a header's bytes.
inline void patch_checksum(std::uint8_t* frame, std::size_t n) {
  const std::uint32_t crc = frame_checksum(frame, n);
  std::memcpy(frame + 12, &crc, 4);
}

}  // namespace laconic::test
