// One warp of 32 lanes, written down so that the same source is a CUDA kernel and plain C++.
//
// A step is a lambda that is called for every lane: each(f) on the device calls f once, for this thread's lane;
// compiled by a C++ compiler it calls f for lane 0, 1, ... 31. What a lane keeps between steps is a PerLane<T>, which
// the device holds in a register and the emulation in an array of 32. What all lanes agree on is an ordinary variable.
// Lanes must not depend on each other within a step, only on what earlier steps left in memory or hand over by ballot,
// sum, from: each() lies between two barriers, and it alone may write what other lanes read. The emulation can run the
// lanes of a step in several orders, and the tests do, so that a step that breaks this rule is found without a GPU.
// Source: ours.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#define LACONIC_GPU_FN __device__ __forceinline__
#define LACONIC_GPU_RARE __device__ __noinline__
#define LACONIC_GPU_UNROLL _Pragma("unroll")
#define LACONIC_GPU_UNROLL_4 _Pragma("unroll 4")
#define LACONIC_GPU_KEEP_LOOP _Pragma("unroll 1")
#define LACONIC_GPU_SIDE on_device
#else
#define LACONIC_GPU_FN inline
#define LACONIC_GPU_RARE inline
#define LACONIC_GPU_UNROLL
#define LACONIC_GPU_UNROLL_4
#define LACONIC_GPU_KEEP_LOOP
#define LACONIC_GPU_SIDE emulated
#endif

/// Device code and its emulation are two sets of functions that may meet in one program, hence two namespaces.
namespace laconic::gpu::LACONIC_GPU_SIDE {

inline constexpr int warp_lanes = 32;

// Bits of an integer. On the device not those of <bit>: nvcc takes the compiler's functions that they are made of for
// functions of the host (all but two), warns of nothing, and leaves out what would have come of them.
#if defined(__CUDA_ARCH__)
LACONIC_GPU_FN int count_ones(std::uint32_t v) { return __popc(v); }
LACONIC_GPU_FN int count_ones(std::uint64_t v) { return __popcll(v); }
LACONIC_GPU_FN int leading_zeros(std::uint32_t v) { return __clz(static_cast<int>(v)); }
LACONIC_GPU_FN int leading_zeros(std::uint64_t v) { return __clzll(static_cast<long long>(v)); }
LACONIC_GPU_FN int trailing_zeros(std::uint32_t v) { return leading_zeros(std::uint32_t{__brev(v)}); }
LACONIC_GPU_FN int trailing_zeros(std::uint64_t v) { return leading_zeros(std::uint64_t{__brevll(v)}); }
#else
template <class U>
LACONIC_GPU_FN int count_ones(U v) {
  return std::popcount(v);
}
template <class U>
LACONIC_GPU_FN int leading_zeros(U v) {
  return std::countl_zero(v);
}
template <class U>
LACONIC_GPU_FN int trailing_zeros(U v) {
  return std::countr_zero(v);
}
#endif
template <class U>
LACONIC_GPU_FN int trailing_ones(U v) {
  return trailing_zeros(static_cast<U>(~v));
}
template <class U>
LACONIC_GPU_FN int bit_width(U v) {
  return static_cast<int>(8 * sizeof(U)) - leading_zeros(v);
}

#if defined(__CUDACC__)

template <class T>
struct PerLane {
  T value{};
  LACONIC_GPU_FN T& operator[](int) { return value; }
  LACONIC_GPU_FN const T& operator[](int) const { return value; }
};

class Warp {
 public:
  LACONIC_GPU_FN static int lane() { return static_cast<int>(threadIdx.x & 31); }

  template <class F>
  LACONIC_GPU_FN void each(F f) const {
    __syncwarp();  // what all lanes have read between the steps must not be overwritten under the slowest of them
    f(lane());
    __syncwarp();
  }
  /// Bit l: f(l).
  template <class F>
  LACONIC_GPU_FN std::uint32_t ballot(F f) const {
    return __ballot_sync(~0U, f(lane()));
  }
  template <class F>
  LACONIC_GPU_FN bool any(F f) const {
    return __any_sync(~0U, f(lane())) != 0;
  }
  template <class F>
  LACONIC_GPU_FN std::uint32_t max(F f) const {
    return __reduce_max_sync(~0U, static_cast<std::uint32_t>(f(lane())));
  }
  template <class F>
  LACONIC_GPU_FN std::uint32_t bits_of_any(F f) const {
    return __reduce_or_sync(~0U, static_cast<std::uint32_t>(f(lane())));
  }
  /// The sum of f over all lanes, wrapping.
  template <class T, class F>
  LACONIC_GPU_FN T sum(F f) const {
    T v = f(lane());
    if constexpr (sizeof(T) == 4) {
      return static_cast<T>(__reduce_add_sync(~0U, static_cast<std::uint32_t>(v)));
    } else {
      LACONIC_GPU_UNROLL
      for (int o = 16; o > 0; o >>= 1) v = static_cast<T>(v + __shfl_xor_sync(~0U, v, o));
      return v;
    }
  }
  /// For each lane, the sum of f over the lanes below it, wrapping; and over all lanes.
  template <class T, class F>
  LACONIC_GPU_FN PerLane<T> sum_below(F f, T& total) const {
    const T own = f(lane());
    T v = own;
    LACONIC_GPU_UNROLL
    for (int o = 1; o < 32; o <<= 1) {
      const T below = __shfl_up_sync(~0U, v, o);
      if (lane() >= o) v = static_cast<T>(v + below);
    }
    total = __shfl_sync(~0U, v, 31);
    return {static_cast<T>(v - own)};
  }
  /// The value of one lane, the same for all.
  template <class T>
  LACONIC_GPU_FN T from(const PerLane<T>& v, int source) const {
    return __shfl_sync(~0U, v.value, source);
  }
  /// For each lane l, the value of lane source(l).
  template <class T, class F>
  LACONIC_GPU_FN PerLane<T> gather(const PerLane<T>& v, F source) const {
    return {__shfl_sync(~0U, v.value, source(lane()))};
  }
};

#else

template <class T>
struct PerLane {
  T value[warp_lanes]{};
  T& operator[](int lane) { return value[lane]; }
  const T& operator[](int lane) const { return value[lane]; }
};

class Warp {
 public:
  /// The k-th lane to run is k * stride + start; stride odd.
  struct Order {
    int start = 0;
    int stride = 1;
  };
  static Order& order() {
    static thread_local Order o;
    return o;
  }

  template <class F>
  void each(F f) const {
    const Order o = order();
    for (int k = 0; k < warp_lanes; ++k) f((k * o.stride + o.start) & 31);
  }
  template <class F>
  std::uint32_t ballot(F f) const {
    std::uint32_t b = 0;
    each([&](int l) { b |= f(l) ? 1U << l : 0U; });
    return b;
  }
  template <class F>
  bool any(F f) const {
    return ballot(f) != 0;
  }
  template <class F>
  std::uint32_t max(F f) const {
    std::uint32_t m = 0;
    each([&](int l) {
      const auto v = static_cast<std::uint32_t>(f(l));
      m = v > m ? v : m;
    });
    return m;
  }
  template <class F>
  std::uint32_t bits_of_any(F f) const {
    std::uint32_t m = 0;
    each([&](int l) { m |= static_cast<std::uint32_t>(f(l)); });
    return m;
  }
  template <class T, class F>
  T sum(F f) const {
    std::make_unsigned_t<T> s = 0;
    each([&](int l) { s = static_cast<std::make_unsigned_t<T>>(s + static_cast<std::make_unsigned_t<T>>(f(l))); });
    return static_cast<T>(s);
  }
  template <class T, class F>
  PerLane<T> sum_below(F f, T& total) const {
    PerLane<T> v;
    each([&](int l) { v[l] = f(l); });
    std::make_unsigned_t<T> s = 0;
    for (auto& x : v.value) {
      const auto own = static_cast<std::make_unsigned_t<T>>(x);
      x = static_cast<T>(s);
      s = static_cast<std::make_unsigned_t<T>>(s + own);
    }
    total = static_cast<T>(s);
    return v;
  }
  template <class T>
  T from(const PerLane<T>& v, int source) const {
    return v[source & 31];
  }
  template <class T, class F>
  PerLane<T> gather(const PerLane<T>& v, F source) const {
    PerLane<T> r;
    each([&](int l) { r[l] = v[source(l) & 31]; });
    return r;
  }
};

#endif

/// The highest of these lanes that is below `lane`; -1 if there is none.
LACONIC_GPU_FN int last_below(std::uint32_t lanes, int lane) {
  const std::uint32_t below = lanes & ((1U << lane) - 1);
  return bit_width(below) - 1;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
