// Vectors as arrays of their elements: what emulated_avx512.h is made of. For one source file, in a region of AVX2.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/slice/target_region.h"

/// For what stands in for the instructions, and for kernels on it.
#define LACONIC_EMULATION_REGION LACONIC_BEGIN_REGION("avx2,bmi,bmi2,lzcnt,popcnt,fma,f16c")

LACONIC_EMULATION_REGION

namespace laconic::emulated {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

/// std::bit_cast, which would return vectors outside the region.
template <class To, class From>
To bits_as(const From& from) {
  return __builtin_bit_cast(To, from);
}

/// A vector's elements.
template <class T, std::size_t Bytes = 64>
using Of = std::array<T, Bytes / sizeof(T)>;

template <class T, class Vector>
Of<T, sizeof(Vector)> of(const Vector& v) {
  return bits_as<Of<T, sizeof(Vector)>>(v);
}
template <class Vector, class T, std::size_t N>
Vector to(const std::array<T, N>& a) {
  return bits_as<Vector>(a);
}

/// Vector's elements i are f(i).
template <class T, class Vector, class F>
Vector make(F f) {
  Of<T, sizeof(Vector)> r;
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<T>(f(i));
  return to<Vector>(r);
}
/// Of elements a[i], or a[i] and b[i].
template <class T, class Vector, class F>
Vector each(const Vector& a, F f) {
  const auto x = of<T>(a);
  return make<T, Vector>([&](std::size_t i) { return f(x[i]); });
}
template <class T, class Vector, class F>
Vector each(const Vector& a, const Vector& b, F f) {
  const auto x = of<T>(a);
  const auto y = of<T>(b);
  return make<T, Vector>([&](std::size_t i) { return f(x[i], y[i]); });
}
/// Bit i of a mask: whether f(i).
template <std::size_t N, class F>
u64 mask_of(F f) {
  u64 m = 0;
  for (std::size_t i = 0; i < N; ++i) m |= u64{f(i)} << i;
  return m;
}
template <class T, class F>
u64 compare(__m512i a, __m512i b, F f) {
  const auto x = of<T>(a);
  const auto y = of<T>(b);
  return mask_of<64 / sizeof(T)>([&](std::size_t i) { return f(x[i], y[i]); });
}
/// b's elements where the mask has them, a's elsewhere.
template <class T, class Vector>
Vector blend(u64 mask, const Vector& a, const Vector& b) {
  const auto x = of<T>(a);
  const auto y = of<T>(b);
  return make<T, Vector>([&](std::size_t i) { return (mask >> i & 1) != 0 ? y[i] : x[i]; });
}
template <class Vector>
Vector zero() {
  return bits_as<Vector>(std::array<u8, sizeof(Vector)>{});
}
/// Elements of another type: the value, cut off where it is shorter.
template <class From, class To, class Out, class In>
Out convert(const In& v) {
  const auto x = of<From>(v);
  return make<To, Out>([&](std::size_t i) { return static_cast<To>(x[i]); });
}
template <class To, class From>
To saturate(From v) {
  return static_cast<To>(std::clamp<i64>(v, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
}
/// a's elements and then b's, lane by lane, saturated to half their size.
template <class From, class To>
__m512i pack(__m512i a, __m512i b) {
  const auto x = of<From>(a);
  const auto y = of<From>(b);
  constexpr std::size_t n = 16 / sizeof(From);  // in a lane
  return make<To, __m512i>([&](std::size_t i) {
    const std::size_t lane = i / (2 * n);
    const std::size_t k = i % (2 * n);
    return saturate<To>(k < n ? x[lane * n + k] : y[lane * n + k - n]);
  });
}
template <class T, class Vector>
void store_where(void* p, u64 mask, const Vector& v) {
  const auto x = of<T>(v);
  for (std::size_t i = 0; i < x.size(); ++i)
    if ((mask >> i & 1) != 0) std::memcpy(static_cast<u8*>(p) + i * sizeof(T), &x[i], sizeof(T));
}
template <class T>
__m512i load_where(const __m512i& otherwise, u64 mask, const void* p) {
  auto x = of<T>(otherwise);
  for (std::size_t i = 0; i < x.size(); ++i)
    if ((mask >> i & 1) != 0) std::memcpy(&x[i], static_cast<const u8*>(p) + i * sizeof(T), sizeof(T));
  return to<__m512i>(x);
}
template <class Vector>
Vector load(const void* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class Vector>
Vector load_aligned(const void* p) {
  if (reinterpret_cast<std::uintptr_t>(p) % sizeof(Vector) != 0) __builtin_trap();
  return load<Vector>(p);
}
template <class Vector>
void store(void* p, const Vector& v) {
  std::memcpy(p, &v, sizeof v);
}
template <class Vector>
void store_aligned(void* p, const Vector& v) {
  if (reinterpret_cast<std::uintptr_t>(p) % sizeof(Vector) != 0) __builtin_trap();
  store(p, v);
}
/// The larger magnitude, without its sign; a NaN only where both are.
template <class T>
T larger_magnitude(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::fabs(std::isnan(a) ? b : a);
  return std::max(std::fabs(a), std::fabs(b));
}
/// A bit matrix applied to a byte: bit i is the parity of the matrix's byte 7 - i with it.
inline u8 affine(u8 x, u64 matrix, u8 constant) {
  unsigned r = 0;
  for (unsigned i = 0; i < 8; ++i)
    r |= (static_cast<unsigned>(std::popcount(static_cast<unsigned>(matrix >> (8 * (7 - i)) & 0xFF & x))) & 1U) << i;
  return static_cast<u8>(r ^ constant);
}
template <class Vector>
Vector compress_bytes(u64 mask, const Vector& v) {
  const auto x = of<u8>(v);
  Of<u8, sizeof(Vector)> r{};
  std::size_t n = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if ((mask >> i & 1) != 0) r[n++] = x[i];
  return to<Vector>(r);
}

/// Elements of v, or of a and behind them b, by their numbers.
template <class T>
__m512i permute(__m512i index, __m512i v) {
  const auto at = of<T>(index);
  const auto x = of<T>(v);
  return make<T, __m512i>([&](std::size_t i) { return x[at[i] % x.size()]; });
}
template <class T>
__m512i permute2(__m512i a, __m512i index, __m512i b) {
  const auto at = of<T>(index);
  const auto x = of<T>(a);
  const auto y = of<T>(b);
  return make<T, __m512i>(
      [&](std::size_t i) { return (at[i] & x.size()) != 0 ? y[at[i] % x.size()] : x[at[i] % x.size()]; });
}

}  // namespace
}  // namespace laconic::emulated

LACONIC_TARGET_REGION_END
