// Byte shuffles for the sets that cannot compress and expand bytes in one instruction: by a plane's mask, its non-zero
// bytes to the front, and back.
#pragma once

#include <array>
#include <cstdint>

namespace laconic::slice {

/// Control bytes of PSHUFB for every mask; 0x80 makes a zero. Eight more bytes at the end may be loaded with the last.
struct ByteShuffles {
  alignas(64) std::array<std::uint8_t, 256 * 8 + 8> control{};
  [[nodiscard]] const std::uint8_t* of(std::uint64_t mask) const { return control.data() + 8 * mask; }
};

constexpr ByteShuffles make_byte_shuffles(bool compress) {
  ByteShuffles s;
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned n = 0;
    for (unsigned g = 0; g < 8; ++g) s.control[8 * mask + g] = 0x80;
    for (unsigned g = 0; g < 8; ++g) {
      if ((mask >> g & 1) == 0) continue;
      s.control[8 * mask + (compress ? n : g)] = static_cast<std::uint8_t>(compress ? g : n);
      ++n;
    }
  }
  return s;
}

inline constexpr ByteShuffles compress_shuffles = make_byte_shuffles(true);
inline constexpr ByteShuffles expand_shuffles = make_byte_shuffles(false);

/// Ones in a byte.
constexpr std::array<std::uint8_t, 256> make_bit_counts() {
  std::array<std::uint8_t, 256> n{};
  for (unsigned mask = 1; mask < 256; ++mask) n[mask] = static_cast<std::uint8_t>((mask & 1) + n[mask / 2]);
  return n;
}
inline constexpr std::array<std::uint8_t, 256> bit_counts = make_bit_counts();

}  // namespace laconic::slice
