// Elements of the four float types: their arithmetic, the grid point of one (docs/format.md, sections 5 and 8), and the
// way of a chunk's elements from and to memory. Source: ours; the definition is codec/slice/reference.cc.
#pragma once

#include <cmath>
#include <limits>

#include "core/half.h"
#include "gpu/held.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// The result of a floating-point operation. If that is a NaN, its bits depend on the processor, and must not reach
/// memory: the emulation gives those of NVIDIA's, so that tests find any that do.
template <class Real>
LACONIC_GPU_FN Real computed(Real v) {
#if !defined(__CUDA_ARCH__)
  using Bits = std::conditional_t<sizeof(Real) == 8, std::int64_t, std::int32_t>;
  if (v != v) return std::bit_cast<Real>(std::numeric_limits<Bits>::max());
#endif
  return v;
}

/// An element type: its bits, those of infinity, the arithmetic that its values are computed in, conversions (narrowing
/// rounds to nearest).
struct F32 {
  using Bits = std::uint32_t;
  using Real = float;
  static constexpr Bits infinity = 0x7F800000U;
  LACONIC_GPU_FN static Real real(Bits b) { return std::bit_cast<float>(b); }
  LACONIC_GPU_FN static Bits bits(Real v) { return std::bit_cast<std::uint32_t>(v); }
};
struct F64 {
  using Bits = std::uint64_t;
  using Real = double;
  static constexpr Bits infinity = 0x7FF0000000000000U;
  LACONIC_GPU_FN static Real real(Bits b) { return std::bit_cast<double>(b); }
  LACONIC_GPU_FN static Bits bits(Real v) { return std::bit_cast<std::uint64_t>(v); }
};
struct F16 {
  using Bits = std::uint16_t;
  using Real = float;
  static constexpr Bits infinity = 0x7C00;
  LACONIC_GPU_FN static Real real(Bits b) {
#if defined(__CUDA_ARCH__)
    return __half2float(__ushort_as_half(b));
#else
    return computed(f32_of_f16(b));
#endif
  }
  LACONIC_GPU_FN static Bits bits(Real v) {
#if defined(__CUDA_ARCH__)
    // The instruction does not keep a NaN's payload.
    return v == v ? __half_as_ushort(__float2half_rn(v)) : f16_of_nan(v);
#else
    return f16_of_f32(v);
#endif
  }
};
struct BF16 {
  using Bits = std::uint16_t;
  using Real = float;
  static constexpr Bits infinity = 0x7F80;
  LACONIC_GPU_FN static Real real(Bits b) { return f32_of_bf16(b); }
  LACONIC_GPU_FN static Bits bits(Real v) {
#if defined(__CUDA_ARCH__)
    return v == v ? __bfloat16_as_ushort(__float2bfloat16_rn(v)) : bf16_of_nan(v);
#else
    return bf16_of_f32(v);
#endif
  }
};

template <class T>
inline constexpr bool is_double = std::is_same_v<T, F64>;

/// The positive NaN without a payload. A NaN with these bits is quiet, too.
template <class T>
inline constexpr auto quiet_nan = static_cast<typename T::Bits>(T::infinity | (T::infinity & -T::infinity) >> 1);

template <class T>
LACONIC_GPU_FN bool is_nan(typename T::Bits bits) {
  return (bits & static_cast<typename T::Bits>(~typename T::Bits{0}) >> 1) > T::infinity;
}

/// An element divided: a NaN keeps its sign and payload, and is made quiet. `divide`: Real -> the quotient's bits.
template <class T, class F>
LACONIC_GPU_FN typename T::Bits quotient_of(typename T::Bits bits, F divide) {
  return is_nan<T>(bits) ? static_cast<typename T::Bits>(bits | quiet_nan<T>) : divide(T::real(bits));
}

/// Finds grid points. The sum x * inverse + centre lies in a binade whose numbers are integers; so its bits, less those
/// of the binade's first number, are the integer, and one unsigned comparison finds all that leave the grid.
template <class T>
struct Quantiser {
  using Real = typename T::Real;
  using Pattern = std::conditional_t<is_double<T>, std::uint64_t, std::uint32_t>;
  static constexpr Pattern first = is_double<T> ? static_cast<Pattern>(0x4330000000000000U) : Pattern{0x4B000000U};

  Real inverse, centre, step, bound;
  Pattern half;
  Pattern proven;  ///< Params::proven: integers from -proven on are known to decode within the bound

  LACONIC_GPU_FN explicit Quantiser(const Params& p)
      : inverse(is_double<T> ? static_cast<Real>(p.inverse64) : static_cast<Real>(p.inverse32)),
        step(is_double<T> ? static_cast<Real>(p.grid.step) : static_cast<Real>(p.step32)),
        bound(is_double<T> ? static_cast<Real>(p.grid.bound) : static_cast<Real>(p.bound32)),
        half(Pattern{1} << p.grid.qbits),
        proven(static_cast<Pattern>(p.proven)) {
    centre = std::bit_cast<Real>(static_cast<Pattern>(first + half));
  }

  /// Whether x is on the grid; then q is its integer.
  template <class I>
  LACONIC_GPU_FN bool operator()(typename T::Bits element, I& q) const {
    const Real x = T::real(element);
    const Real t = computed(std::fma(x, inverse, centre));
    const auto u = static_cast<Pattern>(std::bit_cast<Pattern>(t) - first);
    const Real value = T::real(T::bits((t - centre) * step));
    q = static_cast<I>(u - half);
    return u < 2 * half && std::abs(x - value) <= bound;
  }

  /// The same where nothing_else().
  template <class I>
  LACONIC_GPU_FN bool if_proven(typename T::Bits element, I& q) const {
    const Real t = computed(std::fma(T::real(element), inverse, centre));
    const auto u = static_cast<Pattern>(std::bit_cast<Pattern>(t) - first);
    q = static_cast<I>(u - half);
    return u < 2 * half;
  }

  /// An element's integer plus bias(), if all_proven(seen) in the end; seen: 0 at first. whole: nothing_else().
  template <bool whole>
  LACONIC_GPU_FN Pattern unchecked(typename T::Bits element, Pattern& seen) const {
    const auto t = std::bit_cast<Pattern>(computed(std::fma(T::real(element), inverse, centre)));
    if constexpr (whole) {
      seen |= t ^ first;
    } else {
      const auto above = static_cast<Pattern>(t - (bias() - proven));
      seen = above > seen ? above : seen;
    }
    return t;
  }
  [[nodiscard]] LACONIC_GPU_FN Pattern bias() const { return std::bit_cast<Pattern>(centre); }
  /// Whether the elements have integers that are proven, so that nothing else is to be checked of them.
  template <bool whole>
  [[nodiscard]] LACONIC_GPU_FN bool all_proven(Pattern seen) const {
    return whole ? seen < 2 * half : seen <= 2 * proven;
  }
  /// Whether what is not proven is not on the grid either.
  [[nodiscard]] LACONIC_GPU_FN bool nothing_else() const { return proven == half; }
};

/// The element that stands for q: what the encoder checks with, and what decoders give.
template <class T>
LACONIC_GPU_FN typename T::Bits value_of(const Params& p, std::int64_t q) {
  if constexpr (is_double<T>) {
    return T::bits(static_cast<double>(q) * p.value_step);
  } else {
    if (p.narrow_value) return T::bits(static_cast<float>(static_cast<std::int32_t>(q)) * p.step32);
    return T::bits(static_cast<float>(static_cast<double>(q) * p.value_step));
  }
}

/// How many elements a 16-byte unit of memory holds.
template <class T>
inline constexpr int unit_elements = 16 / static_cast<int>(sizeof(typename T::Bits));

template <class T>
struct alignas(16) ElementUnit {
  typename T::Bits v[unit_elements<T>];
};

LACONIC_GPU_FN bool is_aligned16(const void* p) { return (reinterpret_cast<std::uintptr_t>(p) & 15) == 0; }

/// 16 bytes that nobody will read again.
template <class T>
LACONIC_GPU_FN ElementUnit<T> load_once(const ElementUnit<T>* p) {
#if defined(__CUDA_ARCH__)
  return std::bit_cast<ElementUnit<T>>(__ldcs(reinterpret_cast<const uint4*>(p)));
#else
  return *p;
#endif
}
template <class T>
LACONIC_GPU_FN void store_once(ElementUnit<T>* p, const ElementUnit<T>& v) {
#if defined(__CUDA_ARCH__)
  __stcs(reinterpret_cast<uint4*>(p), std::bit_cast<uint4>(v));
#else
  *p = v;
#endif
}

/// Integers n of consecutive positions from `position` on, n a power of 2 that divides it, between rows and registers.
template <int n, class R>
LACONIC_GPU_FN void put_run(const Rows<R>& rows, int position, const R* q) {
  const int row = position / block_values;
  const int i = position % block_values;
  if constexpr (n >= Unit<R>::size) {
    LACONIC_GPU_UNROLL
    for (int u = 0; u < n / Unit<R>::size; ++u) {
      Unit<R> out;
      LACONIC_GPU_UNROLL
      for (int e = 0; e < Unit<R>::size; ++e) out.v[e] = q[u * Unit<R>::size + e];
      rows.unit(row, i / Unit<R>::size + u) = out;
    }
  } else {
    LACONIC_GPU_UNROLL
    for (int e = 0; e < n; ++e) rows.at(row, i + e) = q[e];
  }
}
template <int n, class R>
LACONIC_GPU_FN void get_run(const Rows<R>& rows, int position, R* q) {
  const int row = position / block_values;
  const int i = position % block_values;
  if constexpr (n >= Unit<R>::size) {
    LACONIC_GPU_UNROLL
    for (int u = 0; u < n / Unit<R>::size; ++u) {
      const Unit<R> in = rows.unit(row, i / Unit<R>::size + u);
      LACONIC_GPU_UNROLL
      for (int e = 0; e < Unit<R>::size; ++e) q[u * Unit<R>::size + e] = in.v[e];
    }
  } else {
    LACONIC_GPU_UNROLL
    for (int e = 0; e < n; ++e) q[e] = rows.at(row, i + e);
  }
}

/// Turns the elements of a whole, aligned chunk into integers: f(element, seen), where `seen` is what a lane has seen;
/// good(seen) says whether a lane is content with that. Gives whether all are.
template <class T, class R, class Seen, class F, class Good>
LACONIC_GPU_FN bool load_whole_chunk(const Warp& w, const typename T::Bits* x, const Rows<R>& rows, Seen start, F f,
                                     Good good) {
  constexpr int n = unit_elements<T>;
  constexpr int steps = chunk_values / n / warp_lanes;
  constexpr int ahead = 4;  // loads under way at once
  const auto* units = reinterpret_cast<const ElementUnit<T>*>(x);
  PerLane<Seen> all;
  w.each([&](int l) {
    Seen seen = start;
    LACONIC_GPU_KEEP_LOOP
    for (int s = 0; s < steps; s += ahead) {
      ElementUnit<T> in[ahead];
      LACONIC_GPU_UNROLL
      for (int a = 0; a < ahead; ++a) in[a] = load_once<T>(units + (s + a) * warp_lanes + l);
      LACONIC_GPU_UNROLL
      for (int a = 0; a < ahead; ++a) {
        R q[n];
        LACONIC_GPU_UNROLL
        for (int e = 0; e < n; ++e) q[e] = f(in[a].v[e], seen);
        put_run<n>(rows, ((s + a) * warp_lanes + l) * n, q);
      }
    }
    all[l] = seen;
  });
  return !w.any([&](int l) { return !good(all[l]); });
}

/// The same for any chunk, element by element; positions behind the last element get 0.
template <class T, class R, class F>
LACONIC_GPU_FN bool load_part_chunk(const Warp& w, const typename T::Bits* x, int count, const Rows<R>& rows, F f) {
  PerLane<bool> all;
  w.each([&](int l) {
    bool ok = true;
    LACONIC_GPU_KEEP_LOOP
    for (int i = l; i < chunk_values; i += warp_lanes) {
      R q = 0;
      if (i < count) ok &= f(x[i], q);
      rows[i] = q;
    }
    all[l] = ok;
  });
  return !w.any([&](int l) { return !all[l]; });
}

/// Elements -> integers on the grid; plus *bias, if the caller takes that. False: some are not on it; what their
/// positions hold is unspecified. So is what lies behind the last element of a short chunk.
template <class T, class R>
LACONIC_GPU_FN bool quantise_chunk(const Warp& w, const Params& p, const typename T::Bits* x, int count,
                                   const Rows<R>& rows, R* bias = nullptr) {
  const Quantiser<T> quantise(p);
  if (bias != nullptr) *bias = 0;
  if (count != chunk_values || !is_aligned16(x)) {
    return load_part_chunk<T>(w, x, count, rows, [&](typename T::Bits e, R& q) { return quantise(e, q); });
  }
  if constexpr (std::is_same_v<T, F32> || is_double<T>) {
    using Seen = typename Quantiser<T>::Pattern;
    const Seen less = bias != nullptr ? 0 : quantise.bias();
    const auto load = [&](auto all) {
      const auto f = [&](typename T::Bits e, Seen& seen) {
        return static_cast<R>(quantise.template unchecked<all>(e, seen) - less);
      };
      const auto good = [&](Seen seen) { return quantise.template all_proven<all>(seen); };
      return load_whole_chunk<T>(w, x, rows, Seen{0}, f, good);
    };
    const bool whole = quantise.nothing_else();
    if (whole ? load(std::true_type{}) : quantise.proven != 0 && load(std::false_type{})) {
      if (bias != nullptr) *bias = static_cast<R>(quantise.bias());
      return true;
    }
    if (whole) return false;
  }
  const auto f = [&](typename T::Bits e, bool& ok) {
    R q = 0;
    ok &= quantise(e, q);
    return q;
  };
  return load_whole_chunk<T>(w, x, rows, true, f, [](bool ok) { return ok; });
}

/// Elements -> integers in the order of the values, for lossless frames.
template <class T, class R>
LACONIC_GPU_FN void order_chunk(const Warp& w, const typename T::Bits* x, int count, const Rows<R>& rows) {
  const auto f = [](typename T::Bits e, R& q) {
    q = slice::order_map<R>(e, sizeof(e));
    return true;
  };
  load_part_chunk<T>(w, x, count, rows, f);
}

/// Item j of lane i of each k lanes becomes item i of lane j; a lane has k items of 64 / k bits.
template <int k>
LACONIC_GPU_FN PerLane<std::uint64_t> exchange_items(const Warp& w, PerLane<std::uint64_t> items) {
  LACONIC_GPU_UNROLL
  for (int o = k / 2; o > 0; o >>= 1) {
    const int bits = 64 / k * o;
    const std::uint64_t low = ~std::uint64_t{0} / ((std::uint64_t{1} << bits) + 1);  // items without bit o
    const PerLane<std::uint64_t> other = w.gather(items, [&](int l) { return l ^ o; });
    w.each([&](int l) {
      items[l] =
          (l & o) == 0 ? (items[l] & low) | (other[l] & low) << bits : (items[l] & ~low) | (other[l] & ~low) >> bits;
    });
  }
  return items;
}

/// Bits for elements, between a lane's block (bit i: position i) and the units that it loads and stores (item s: those
/// of unit 32 s + lane).
template <class T>
struct UnitBits {
  static constexpr int in_block = block_values / unit_elements<T>;  ///< units
  static constexpr int blocks = warp_lanes / in_block;              ///< that 32 units are

  LACONIC_GPU_FN static PerLane<std::uint64_t> to_blocks(const Warp& w, const PerLane<std::uint64_t>& of_units) {
    return w.gather(exchange_items<in_block>(w, of_units), [](int b) { return b % blocks * in_block + b / blocks; });
  }
  LACONIC_GPU_FN static PerLane<std::uint64_t> of_blocks(const Warp& w, const PerLane<std::uint64_t>& bits) {
    return exchange_items<in_block>(w, w.gather(bits, [](int l) { return l % in_block * blocks + l / in_block; }));
  }
};

/// A chunk's elements that are not on the grid.
template <class T>
struct Exceptions {
  PerLane<std::uint64_t> marks;  ///< bit i of a lane: position i of its block
  bool single = false;           ///< there are some, and all are `value`
  typename T::Bits value = 0;

  /// Whether all of the chunk's elements are.
  [[nodiscard]] LACONIC_GPU_FN bool all(const Warp& w, int count) const {
    return !w.any([&](int l) { return marks[l] != elements_of_block(count, l); });
  }
};

/// The bits that are set in any lane's.
template <class Bits>
LACONIC_GPU_FN Bits union_of(const Warp& w, const PerLane<Bits>& bits) {
  const std::uint32_t low = w.bits_of_any([&](int l) { return static_cast<std::uint32_t>(bits[l]); });
  if constexpr (sizeof(Bits) < 8) {
    return static_cast<Bits>(low);
  } else {
    return Bits{w.bits_of_any([&](int l) { return static_cast<std::uint32_t>(bits[l] >> 32); })} << 32 | low;
  }
}

/// quantise_others(), where on_grid(element, q) says whether an element is.
template <class T, class R, class F>
LACONIC_GPU_FN Exceptions<T> find_exceptions(const Warp& w, const typename T::Bits* x, int count, const Rows<R>& rows,
                                             F on_grid) {
  using Bits = typename T::Bits;
  constexpr int n = unit_elements<T>;
  constexpr int ahead = 4;  // loads under way at once
  const bool whole = count == chunk_values && is_aligned16(x);
  PerLane<std::uint64_t> found;
  PerLane<Bits> seen;     // bits that are set in any exception
  PerLane<Bits> lacking;  // and that are not
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (int s = 0; s < UnitBits<T>::in_block; s += ahead) {
      ElementUnit<T> in[ahead];
      LACONIC_GPU_UNROLL
      for (int a = 0; a < ahead; ++a) {
        const int unit = (s + a) * warp_lanes + l;
        if (whole) {
          in[a] = load_once<T>(reinterpret_cast<const ElementUnit<T>*>(x) + unit);
        } else {
          for (int e = 0; e < n; ++e) in[a].v[e] = unit * n + e < count ? x[unit * n + e] : Bits{0};
        }
      }
      LACONIC_GPU_UNROLL
      for (int a = 0; a < ahead; ++a) {
        R q[n];
        std::uint32_t item = 0;
        LACONIC_GPU_UNROLL
        for (int e = 0; e < n; ++e) {
          q[e] = 0;
          item |= on_grid(in[a].v[e], q[e]) ? 0 : 1U << e;
        }
        if (item != 0) {
          LACONIC_GPU_UNROLL
          for (int e = 0; e < n; ++e) {
            if ((item >> e & 1) == 0) continue;
            seen[l] |= in[a].v[e];
            lacking[l] |= static_cast<Bits>(~in[a].v[e]);
          }
        }
        put_run<n>(rows, ((s + a) * warp_lanes + l) * n, q);
        found[l] = found[l] >> n | std::uint64_t{item} << (64 - n);
      }
    }
  });
  Exceptions<T> exceptions;
  exceptions.marks = UnitBits<T>::to_blocks(w, found);
  exceptions.value = union_of(w, seen);
  exceptions.single = exceptions.value == static_cast<Bits>(~union_of(w, lacking));
  return exceptions;
}

/// Elements -> integers of those that are on the grid, and which are not. What rows hold at these and behind the last
/// element is unspecified.
template <class T, class R>
LACONIC_GPU_RARE Exceptions<T> quantise_others(const Warp& w, const Params& p, const typename T::Bits* x, int count,
                                               const Rows<R>& rows) {
  using Bits = typename T::Bits;
  const Quantiser<T> quantise(p);
  if constexpr (std::is_same_v<T, F32> || is_double<T>) {
    if (quantise.nothing_else())
      return find_exceptions<T>(w, x, count, rows, [&](Bits e, R& q) { return quantise.if_proven(e, q); });
  }
  return find_exceptions<T>(w, x, count, rows, [&](Bits e, R& q) { return quantise(e, q); });
}

/// Integers -> elements, f(q, position) gives one, for all of a whole, aligned chunk or the first count of any.
template <class T, class R, class F>
LACONIC_GPU_FN void store_chunk(const Warp& w, const Rows<R>& rows, typename T::Bits* y, int count, F f) {
  constexpr int n = unit_elements<T>;
  if (count == chunk_values && is_aligned16(y)) {
    w.each([&](int l) {
      LACONIC_GPU_UNROLL_4  // all at once would be more instructions than are near
          for (int s = 0; s < chunk_values / n / warp_lanes; ++s) {
        const int position = (s * warp_lanes + l) * n;
        R q[n];
        get_run<n>(rows, position, q);
        ElementUnit<T> out;
        LACONIC_GPU_UNROLL
        for (int e = 0; e < n; ++e) out.v[e] = f(q[e], position + e);
        store_once<T>(reinterpret_cast<ElementUnit<T>*>(y + position), out);
      }
    });
    return;
  }
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (int i = l; i < count; i += warp_lanes) y[i] = f(rows[i], i);
  });
}

/// The same, but the positions of set bits get `fill`.
template <class T, class R, class F>
LACONIC_GPU_FN void store_chunk(const Warp& w, const Rows<R>& rows, typename T::Bits* y, int count,
                                const PerLane<std::uint64_t>& marks, typename T::Bits fill, F f) {
  constexpr int n = unit_elements<T>;
  const bool whole = count == chunk_values && is_aligned16(y);
  const PerLane<std::uint64_t> filled = UnitBits<T>::of_blocks(w, marks);
  w.each([&](int l) {
    std::uint64_t left = filled[l];
    LACONIC_GPU_KEEP_LOOP
    for (int s = 0; s < UnitBits<T>::in_block; ++s, left >>= n) {
      const int position = (s * warp_lanes + l) * n;
      R q[n];
      get_run<n>(rows, position, q);
      ElementUnit<T> out;
      LACONIC_GPU_UNROLL
      for (int e = 0; e < n; ++e) out.v[e] = (left >> e & 1) != 0 ? fill : f(q[e], position + e);
      if (whole) {
        store_once<T>(reinterpret_cast<ElementUnit<T>*>(y + position), out);
      } else {
        for (int e = 0; e < n; ++e)
          if (position + e < count) y[position + e] = out.v[e];
      }
    }
  });
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
