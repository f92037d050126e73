// Arithmetic of a chunk's integers that its scalar writer and reader share: zigzag, and sums that wrap.
#pragma once

#include <cstdint>
#include <type_traits>

namespace laconic::slice {

template <class I>
using Unsigned = std::make_unsigned_t<I>;

template <class I>
inline constexpr int integer_bits = static_cast<int>(8 * sizeof(I));

template <class I>
constexpr Unsigned<I> zigzag(I v) {
  return static_cast<Unsigned<I>>(static_cast<Unsigned<I>>(v) << 1) ^
         static_cast<Unsigned<I>>(v >> (integer_bits<I> - 1));
}
template <class I>
constexpr I unzigzag(Unsigned<I> z) {
  return static_cast<I>(static_cast<Unsigned<I>>(z >> 1) ^ static_cast<Unsigned<I>>(-static_cast<Unsigned<I>>(z & 1)));
}
template <class I>
constexpr I wrap_sub(I a, I b) {
  return static_cast<I>(static_cast<Unsigned<I>>(a) - static_cast<Unsigned<I>>(b));
}
template <class I>
constexpr I wrap_add(I a, I b) {
  return static_cast<I>(static_cast<Unsigned<I>>(a) + static_cast<Unsigned<I>>(b));
}

}  // namespace laconic::slice
