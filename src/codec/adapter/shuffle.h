// Byte shuffle: byte 0 of all elements, then byte 1 of all, and so on. What lossless byte coders need to see that the
// upper bytes of numbers repeat.
#pragma once

#include <cstddef>
#include <cstdint>

namespace laconic {

/// n elements of 2, 4 or 8 bytes.
void shuffle(const std::uint8_t* x, std::size_t n, std::size_t element_bytes, std::uint8_t* out);
void unshuffle(const std::uint8_t* in, std::size_t n, std::size_t element_bytes, std::uint8_t* y);

}  // namespace laconic
