// Minimum and maximum over order-mapped integers: for IEEE floats, flipping the magnitude bits of negative values makes
// integer order the order of the values, with infinities and NaN outside the finite ones. Integer min and max know no
// NaN rules and no slow denormals, and one kernel serves every dtype.
#include "core/range.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/error.h"
#include "core/half.h"
#include "core/range_scalar.h"
#include "core/share.h"
#include "core/spin_lock.h"

// Highway includes this file once more for every SIMD target that the compiler offers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/range.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace laconic::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Integers in the order of the values.
template <bool floats, class D, class V>
HWY_INLINE V in_order(D d, V x) {
  if constexpr (floats) {
    const V magnitude_bits = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::max());
    return hn::Xor(x, hn::And(hn::BroadcastSignBit(x), magnitude_bits));
  } else {
    (void)d;
    return x;
  }
}

/// The hardware foresees no further than the end of a page.
HWY_INLINE void fetch_ahead(const void* at, std::size_t bytes) {
  constexpr std::size_t distance = 8192;
  for (std::size_t k = 0; k < bytes; k += 64) hwy::Prefetch(static_cast<const std::uint8_t*>(at) + distance + k);
}

/// Extremes of n values that are taken to be finite: lo and hi tell the caller when they were not.
template <bool floats, typename T>
void fast_extremes(const T* p, std::size_t n, T infinity, Extremes<T>& out) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  // Four independent accumulators: the latency of one hides behind the others.
  auto lo0 = hn::Set(d, out.lo);
  auto hi0 = hn::Set(d, out.hi);
  auto lo1 = lo0, lo2 = lo0, lo3 = lo0;
  auto hi1 = hi0, hi2 = hi0, hi3 = hi0;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    fetch_ahead(p + i, 4 * lanes * sizeof(T));
    const auto x0 = in_order<floats>(d, hn::LoadU(d, p + i));
    const auto x1 = in_order<floats>(d, hn::LoadU(d, p + i + lanes));
    const auto x2 = in_order<floats>(d, hn::LoadU(d, p + i + 2 * lanes));
    const auto x3 = in_order<floats>(d, hn::LoadU(d, p + i + 3 * lanes));
    lo0 = hn::Min(lo0, x0), hi0 = hn::Max(hi0, x0);
    lo1 = hn::Min(lo1, x1), hi1 = hn::Max(hi1, x1);
    lo2 = hn::Min(lo2, x2), hi2 = hn::Max(hi2, x2);
    lo3 = hn::Min(lo3, x3), hi3 = hn::Max(hi3, x3);
  }
  HWY_ALIGN T values[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(hn::Min(hn::Min(lo0, lo1), hn::Min(lo2, lo3)), d, values);
  out.lo = *std::min_element(values, values + lanes);
  hn::Store(hn::Max(hn::Max(hi0, hi1), hn::Max(hi2, hi3)), d, values);
  out.hi = *std::max_element(values, values + lanes);
  out.finite += i;
  extremes_scalar<floats>(reinterpret_cast<const std::uint8_t*>(p + i), n - i, infinity, out);
}

/// Extremes of the finite ones among n floats.
template <typename T>
void finite_extremes(const T* p, std::size_t n, T infinity, Extremes<T>& out) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto magnitude_bits = hn::Set(d, std::numeric_limits<T>::max());
  const auto limit = hn::Set(d, infinity);
  auto lo = hn::Set(d, out.lo);
  auto hi = hn::Set(d, out.hi);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, p + i);
    const auto mapped = in_order<true>(d, x);
    const auto finite = hn::Lt(hn::And(x, magnitude_bits), limit);
    lo = hn::IfThenElse(finite, hn::Min(lo, mapped), lo);
    hi = hn::IfThenElse(finite, hn::Max(hi, mapped), hi);
    out.finite += hn::CountTrue(d, finite);
  }
  HWY_ALIGN T values[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(lo, d, values);
  out.lo = *std::min_element(values, values + lanes);
  hn::Store(hi, d, values);
  out.hi = *std::max_element(values, values + lanes);
  extremes_scalar<true>(reinterpret_cast<const std::uint8_t*>(p + i), n - i, infinity, out);
}

template <bool floats, typename T>
void extremes(const std::uint8_t* bytes, std::size_t n, T infinity, Extremes<T>& out) {
  const auto* p = reinterpret_cast<const T*>(bytes);  // only ever loaded unaligned
  if constexpr (!floats) {
    fast_extremes<false>(p, n, infinity, out);
  } else {
    // Most data is finite. A block that is not (its extremes tell) is read again, from cache, with care.
    constexpr std::size_t block = 8192 / sizeof(T);
    const T minus_infinity = order_mapped(static_cast<T>(infinity | std::numeric_limits<T>::min()));
    for (std::size_t i = 0; i < n; i += block) {
      const std::size_t m = std::min(block, n - i);
      Extremes<T> found;
      fast_extremes<true>(p + i, m, infinity, found);
      if (found.hi >= infinity || found.lo <= minus_infinity) {
        found = {};
        finite_extremes(p + i, m, infinity, found);
      }
      out.lo = std::min(out.lo, found.lo);
      out.hi = std::max(out.hi, found.hi);
      out.finite += found.finite;
    }
  }
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

Range scan_alone(ConstArray x) {
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

}  // namespace

Range scan(ConstArray x, int threads) {
  const std::size_t parts = is_valid(x.dtype) ? threads_worth(x.bytes(), threads) : 1;
  if (parts == 1) return scan_alone(x);
  const std::size_t values = bytes_worth_a_thread / size_of(x.dtype);
  Range all;
  std::atomic<std::size_t> taken = 0;
  SpinLock lock;
  share_work(parts, [&] {
    Range mine;
    for (std::size_t first; (first = taken.fetch_add(values)) < x.count;)
      mine = merge(mine, scan_alone({static_cast<const std::uint8_t*>(x.data) + first * size_of(x.dtype),
                                     std::min(values, x.count - first), x.dtype}));
    const std::lock_guard guard(lock);
    all = merge(all, mine);
  });
  return all;
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
