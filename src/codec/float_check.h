// What the codecs of other people's design need to keep our promise with one subtraction and one comparison per value.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace laconic {

/// The integers of a float type's width.
template <class T>
using SignedOf = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
template <class T>
using UnsignedOf = std::make_unsigned_t<SignedOf<T>>;

/// The largest b for which |x - y| <= b, computed in T, means that the exact difference is within `bound`: the rounding
/// of the difference could otherwise hide what is beyond.
template <class T>
T checked_bound(double bound) {
  auto b = static_cast<T>(bound);
  if (static_cast<double>(b) > bound) b = std::nextafter(b, T{0});
  return std::nextafter(b, T{0});
}

/// Any alignment.
template <class T>
[[gnu::always_inline]] inline T load_as(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store_as(std::uint8_t* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace laconic
