// Minimum and maximum over order-mapped integers: for IEEE floats, flipping the magnitude bits of negative values makes
// integer order the order of the values, with infinities and NaN outside the finite ones. Integer min and max know no
// NaN rules and no slow denormals, and one kernel serves every dtype.
#include "core/range.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/half.h"
#include "core/range_scalar.h"

// Highway includes this file once more for every SIMD target that the compiler offers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/range.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace laconic::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Takes one vector into lo and hi and returns how many of its lanes count.
template <bool floats, class D, class V, typename T = hn::TFromD<D>>
HWY_INLINE std::size_t take(D d, const T* p, T infinity, V& lo, V& hi) {
  const V x = hn::LoadU(d, p);
  if constexpr (floats) {
    const V magnitude_bits = hn::Set(d, std::numeric_limits<T>::max());
    const V ordered = hn::Xor(x, hn::And(hn::BroadcastSignBit(x), magnitude_bits));
    const auto keep = hn::Lt(hn::And(x, magnitude_bits), hn::Set(d, infinity));
    lo = hn::IfThenElse(keep, hn::Min(lo, ordered), lo);
    hi = hn::IfThenElse(keep, hn::Max(hi, ordered), hi);
    return hn::CountTrue(d, keep);
  } else {
    (void)infinity;
    lo = hn::Min(lo, x);
    hi = hn::Max(hi, x);
    return hn::Lanes(d);
  }
}

template <bool floats, typename T>
void extremes(const std::uint8_t* bytes, std::size_t n, T infinity, Extremes<T>& out) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* p = reinterpret_cast<const T*>(bytes);  // only ever loaded unaligned
  // Four independent accumulators: the latency of one hides behind the others.
  auto lo0 = hn::Set(d, out.lo);
  auto hi0 = hn::Set(d, out.hi);
  auto lo1 = lo0, lo2 = lo0, lo3 = lo0;
  auto hi1 = hi0, hi2 = hi0, hi3 = hi0;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    out.finite += take<floats>(d, p + i, infinity, lo0, hi0);
    out.finite += take<floats>(d, p + i + lanes, infinity, lo1, hi1);
    out.finite += take<floats>(d, p + i + 2 * lanes, infinity, lo2, hi2);
    out.finite += take<floats>(d, p + i + 3 * lanes, infinity, lo3, hi3);
  }
  for (; i + lanes <= n; i += lanes) out.finite += take<floats>(d, p + i, infinity, lo0, hi0);

  HWY_ALIGN T values[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(hn::Min(hn::Min(lo0, lo1), hn::Min(lo2, lo3)), d, values);
  out.lo = *std::min_element(values, values + lanes);
  hn::Store(hn::Max(hn::Max(hi0, hi1), hn::Max(hi2, hi3)), d, values);
  out.hi = *std::max_element(values, values + lanes);
  extremes_scalar<floats>(bytes + i * sizeof(T), n - i, infinity, out);
}

// HWY_EXPORT wants plain functions.
using Bytes = const std::uint8_t*;
void float16s(Bytes p, std::size_t n, std::int16_t inf, Extremes<std::int16_t>& out) { extremes<true>(p, n, inf, out); }
void float32s(Bytes p, std::size_t n, std::int32_t inf, Extremes<std::int32_t>& out) { extremes<true>(p, n, inf, out); }
void float64s(Bytes p, std::size_t n, std::int64_t inf, Extremes<std::int64_t>& out) { extremes<true>(p, n, inf, out); }
void int32s(Bytes p, std::size_t n, Extremes<std::int32_t>& out) { extremes<false>(p, n, std::int32_t{}, out); }
void int64s(Bytes p, std::size_t n, Extremes<std::int64_t>& out) { extremes<false>(p, n, std::int64_t{}, out); }
void uint32s(Bytes p, std::size_t n, Extremes<std::uint32_t>& out) { extremes<false>(p, n, std::uint32_t{}, out); }
void uint64s(Bytes p, std::size_t n, Extremes<std::uint64_t>& out) { extremes<false>(p, n, std::uint64_t{}, out); }

}  // namespace laconic::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace laconic {
namespace {

HWY_EXPORT(float16s);
HWY_EXPORT(float32s);
HWY_EXPORT(float64s);
HWY_EXPORT(int32s);
HWY_EXPORT(int64s);
HWY_EXPORT(uint32s);
HWY_EXPORT(uint64s);

constexpr double outward = std::numeric_limits<double>::infinity();

/// Exact for floats and 32-bit integers.
template <typename T>
double identity(T value, double /*direction*/) {
  return static_cast<double>(value);
}

/// The nearest double that is not on the inner side of a 64-bit integer.
template <typename T>
double rounded_outward(T value, double direction) {
  const auto near = static_cast<double>(value);
  // 2^63 or 2^64: what rounds up to it lies below, and it fits no T.
  const bool above = near >= static_cast<double>(std::numeric_limits<T>::max()) || static_cast<T>(near) > value;
  const bool below = !above && static_cast<T>(near) < value;
  const bool inner = direction > 0 ? below : above;
  return inner ? std::nextafter(near, direction) : near;
}

template <typename T, typename ToDouble>
Range range_of(const Extremes<T>& found, std::size_t count, ToDouble to_double) {
  Range out;
  out.count = count;
  out.non_finite = count - found.finite;
  if (out.empty()) return out;
  out.min = to_double(found.lo, -outward) + 0.0;  // + 0.0: no negative zero
  out.max = to_double(found.hi, outward) + 0.0;
  return out;
}

template <typename T, typename Kernel, typename ToDouble>
Range scan_as(ConstArray x, Kernel kernel, ToDouble to_double) {
  Extremes<T> found;
  kernel(static_cast<const std::uint8_t*>(x.data), x.count, found);
  return range_of(found, x.count, to_double);
}

/// As scan_as, for floats: the kernel needs the bits of infinity; `value_of` takes unmapped bits.
template <typename T, typename Kernel, typename ValueOf>
Range scan_floats(ConstArray x, Kernel kernel, T infinity, ValueOf value_of) {
  Extremes<T> found;
  kernel(static_cast<const std::uint8_t*>(x.data), x.count, infinity, found);
  return range_of(found, x.count, [&](T v, double) { return static_cast<double>(value_of(order_mapped(v))); });
}

}  // namespace

Range scan(ConstArray x) {
  if (x.count == 0) return {};
  switch (x.dtype) {
    case DType::f32:
      return scan_floats<std::int32_t>(x, HWY_DYNAMIC_DISPATCH(float32s), 0x7f800000,
                                       [](std::int32_t b) { return std::bit_cast<float>(b); });
    case DType::f64:
      return scan_floats<std::int64_t>(x, HWY_DYNAMIC_DISPATCH(float64s), 0x7ff0000000000000,
                                       [](std::int64_t b) { return std::bit_cast<double>(b); });
    case DType::f16:
      return scan_floats<std::int16_t>(x, HWY_DYNAMIC_DISPATCH(float16s), 0x7c00,
                                       [](std::int16_t b) { return f32_of_f16(std::bit_cast<std::uint16_t>(b)); });
    case DType::bf16:
      return scan_floats<std::int16_t>(x, HWY_DYNAMIC_DISPATCH(float16s), 0x7f80,
                                       [](std::int16_t b) { return f32_of_bf16(std::bit_cast<std::uint16_t>(b)); });
    case DType::i32:
      return scan_as<std::int32_t>(x, HWY_DYNAMIC_DISPATCH(int32s), identity<std::int32_t>);
    case DType::u32:
      return scan_as<std::uint32_t>(x, HWY_DYNAMIC_DISPATCH(uint32s), identity<std::uint32_t>);
    case DType::i64:
      return scan_as<std::int64_t>(x, HWY_DYNAMIC_DISPATCH(int64s), rounded_outward<std::int64_t>);
    case DType::u64:
      return scan_as<std::uint64_t>(x, HWY_DYNAMIC_DISPATCH(uint64s), rounded_outward<std::uint64_t>);
  }
  throw Error(Code::invalid_argument,
              "scan: " + std::to_string(static_cast<int>(x.dtype)) + " is no dtype; want one of core/dtype.h");
}

Range merge(const Range& a, const Range& b) {
  Range out = a.empty() ? b : a;
  if (!a.empty() && !b.empty()) {
    out.min = std::min(a.min, b.min);
    out.max = std::max(a.max, b.max);
  }
  out.count = a.count + b.count;
  out.non_finite = a.non_finite + b.non_finite;
  return out;
}

}  // namespace laconic
#endif  // HWY_ONCE
