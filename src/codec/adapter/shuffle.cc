#include "codec/adapter/shuffle.h"

#include "codec/float_check.h"
#include "codec/vectorised.h"

namespace laconic {
namespace {

/// As far as it goes in steps of this many elements, in registers.
constexpr std::size_t run = 64;

template <class U>
LACONIC_INLINE void shuffle_all(const std::uint8_t* x, std::size_t n, std::uint8_t* out) {
  std::size_t i = 0;
  for (; i + run <= n; i += run)
    for (std::size_t k = 0; k < sizeof(U); ++k)
      for (std::size_t j = 0; j < run; ++j)
        out[k * n + i + j] = static_cast<std::uint8_t>(load_as<U>(x + (i + j) * sizeof(U)) >> (8 * k));
  for (; i < n; ++i)
    for (std::size_t k = 0; k < sizeof(U); ++k) out[k * n + i] = x[i * sizeof(U) + k];
}

template <class U>
LACONIC_INLINE void unshuffle_all(const std::uint8_t* in, std::size_t n, std::uint8_t* y) {
  for (std::size_t i = 0; i < n; ++i) {
    U v = 0;
    for (std::size_t k = 0; k < sizeof(U); ++k) v = static_cast<U>(v | static_cast<U>(in[k * n + i]) << (8 * k));
    store_as(y + i * sizeof(U), v);
  }
}

}  // namespace

void shuffle(const std::uint8_t* x, std::size_t n, std::size_t element_bytes, std::uint8_t* out) {
  if (element_bytes == 8) return variant<&shuffle_all<std::uint64_t>>()(x, n, out);
  if (element_bytes == 4) return variant<&shuffle_all<std::uint32_t>>()(x, n, out);
  variant<&shuffle_all<std::uint16_t>>()(x, n, out);
}

void unshuffle(const std::uint8_t* in, std::size_t n, std::size_t element_bytes, std::uint8_t* y) {
  if (element_bytes == 8) return variant<&unshuffle_all<std::uint64_t>>()(in, n, y);
  if (element_bytes == 4) return variant<&unshuffle_all<std::uint32_t>>()(in, n, y);
  variant<&unshuffle_all<std::uint16_t>>()(in, n, y);
}

}  // namespace laconic
