// The scan of core/range.h in plain C++: its definition, the tail of the SIMD kernels, and the reference of their test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace laconic {

/// Extremes of the finite values, as integers in the order of the values. T: the element's integer, signed for floats.
template <typename T>
struct Extremes {
  T lo = std::numeric_limits<T>::max();
  T hi = std::numeric_limits<T>::min();
  std::size_t finite = 0;
};

/// Bits of a float <-> an integer whose order is the order of the values. Its own inverse.
template <typename T>
constexpr T order_mapped(T bits) {
  static_assert(std::is_signed_v<T>);
  return bits < 0 ? static_cast<T>(bits ^ std::numeric_limits<T>::max()) : bits;
}

/// Adds n elements at p (any alignment) to out. `infinity`: the bits of +infinity; not used for integers.
template <bool floats, typename T>
void extremes_scalar(const std::uint8_t* p, std::size_t n, T infinity, Extremes<T>& out) {
  for (std::size_t i = 0; i < n; ++i) {
    T x;
    std::memcpy(&x, p + i * sizeof(T), sizeof(T));
    if constexpr (floats) {
      if ((x & std::numeric_limits<T>::max()) >= infinity) continue;
      x = order_mapped(x);
    }
    if (x < out.lo) out.lo = x;
    if (x > out.hi) out.hi = x;
    ++out.finite;
  }
}

}  // namespace laconic
