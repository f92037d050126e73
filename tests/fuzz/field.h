// Fields for the fuzz targets of encoders. The input is a list of pieces that a field is made of, so that mutations
// keep most of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/slice_cases.h"
#include "fuzz/require.h"

namespace laconic::test {

/// The input, with zeros behind its end.
class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool empty() const { return at_ == end_; }
  template <class T>
  T next() {
    T v{};
    const std::size_t n = std::min(sizeof v, static_cast<std::size_t>(end_ - at_));
    if (n != 0) std::memcpy(&v, at_, n);
    at_ += n;
    return v;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

inline Grid next_grid(Source& s, DType t) {
  const auto exponent = s.next<std::int16_t>();
  const auto fraction = s.next<std::uint8_t>();
  const auto largest = s.next<std::uint8_t>();
  if (!is_float(t) || exponent == 0) return make_grid(t, 0, 0);
  const int range = t == DType::f64 ? 1000 : t == DType::f16 ? 20 : 140;
  const double bound = std::ldexp(1 + fraction / 256.0, exponent % range);
  const double unknown = std::numeric_limits<double>::infinity();
  return make_grid(t, bound, largest == 0 ? unknown : std::min(std::ldexp(bound, largest / 4), largest_of(t)));
}

/// One piece of a field: its elements from `i` on.
inline void put_piece(Array& x, const Grid& g, std::size_t i, std::size_t end, Source& s) {
  const auto kind = s.next<std::uint8_t>();
  const auto bits = s.next<std::uint64_t>();
  Random random(bits);
  const double unit = g.lossless() ? 1 : g.step;
  const double start = static_cast<double>(static_cast<std::int32_t>(bits)) / 256 * unit;
  const double slope = static_cast<double>(static_cast<std::int16_t>(bits >> 32)) / 64 * unit;
  const double spread = std::ldexp(unit, static_cast<int>(bits >> 48 & 31) - 2);
  for (std::size_t k = 0; i < end; ++i, ++k) {
    const auto at = static_cast<double>(k);
    switch (kind % 9) {
      case 0:
        x.set_bits(i, bits);
        break;
      case 1:
        x.set_value(i, start + slope * at);
        break;
      case 2:
        x.set_value(i, start + spread * random.symmetric());
        break;
      case 3:
        x.set_bits(i, random.bits());
        break;
      case 4:  // halfway between grid points
        x.set_value(i, (std::floor(start / unit) + 0.5 + at) * unit);
        break;
      case 5:
        if (i < 64) return;
        x.set_bits(i, x.bits(i - 64));
        break;
      case 6:
        x.set_bits(i, is_float(x.dtype) && random.below(1 + (bits & 15)) == 0 ? special_bits(x.dtype, random) : bits);
        break;
      case 7:
        x.set_value(i, start + slope * at * at);
        break;
      default:  // within half a bound of the ends of what the grid holds
        x.set_value(i, (std::ldexp(bits & 1 ? 1 : -1, g.qbits) + random.symmetric()) * unit);
    }
  }
}

inline Array next_field(Source& s, DType t, const Grid& g, std::size_t count) {
  Array x(t, count);
  for (std::size_t i = 0; i < count && !s.empty();) {
    const std::size_t end = std::min(count, i + 1 + std::size_t{s.next<std::uint8_t>()} * 8);
    put_piece(x, g, i, end, s);
    i = end;
  }
  return x;
}

}  // namespace laconic::test
