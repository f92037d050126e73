// The survey as warps run it: every warp takes its share of an array, in 16-byte units wherever the array lies so, and
// what counts something is added up over a thread block before the device hears of it. Integers throughout, so that no
// order matters. Source: ours; the definitions are core/range.cc, collective/outliers.cc, operate.cc and extreme.cc.
#pragma once

#include <cstddef>
#include <limits>

#include "collective/outliers.h"
#include "collective/sample.h"
#include "core/range.h"
#include "core/range_scalar.h"
#include "gpu/elements.h"
#include "gpu/survey_plan.h"
#include "gpu/tile.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Elements by their bits, signed as they compare; those of infinity, or 0 for integers.
template <class Integer, Integer infinity_bits = 0>
struct Ordered {
  using Bits = Integer;
  static constexpr Integer infinity = infinity_bits;
  static constexpr bool floats = infinity_bits != 0;
  /// The positive NaN without a payload.
  static constexpr auto quiet_nan = static_cast<Integer>(infinity | (infinity & -infinity) >> 1);

  LACONIC_GPU_FN static Integer magnitude(Integer bits) {
    return static_cast<Integer>(bits & std::numeric_limits<Integer>::max());
  }
  LACONIC_GPU_FN static bool is_nan(Integer bits) { return magnitude(bits) > infinity; }
};
template <class T>
struct OrderOf;
template <>
struct OrderOf<F32> : Ordered<std::int32_t, 0x7f800000> {};
template <>
struct OrderOf<F64> : Ordered<std::int64_t, 0x7ff0000000000000> {};
template <>
struct OrderOf<F16> : Ordered<std::int16_t, 0x7c00> {};
template <>
struct OrderOf<BF16> : Ordered<std::int16_t, 0x7f80> {};

/// Which of how many warps one is.
struct Share {
  std::uint64_t number = 0;
  std::uint64_t of = 1;
};

/// An array as warps take it: batches of a few aligned units for each lane, and the elements around them.
template <class T>
struct Batches {
  static constexpr int units = 4;  ///< of a lane, on their way at once
  static constexpr std::uint64_t stride = warp_lanes * unit_elements<T>;
  static constexpr std::uint64_t size = units * stride;

  std::uint64_t before;  ///< elements before the first batch
  std::uint64_t count;   ///< of batches

  LACONIC_GPU_FN Batches(const void* p, std::uint64_t elements) {
    const std::uint64_t to_unit = (16 - (reinterpret_cast<std::uintptr_t>(p) & 15)) % 16 / sizeof(typename T::Bits);
    before = to_unit < elements ? to_unit : elements;
    count = (elements - before) / size;
  }
};

/// Calls batch(lane, i) for a warp's share of the batches, whose units begin at element i, i + stride, ...; and
/// one(lane, i) for what else there is, which is less than a batch and two units and all goes to one warp.
template <class T, class Batch, class One>
LACONIC_GPU_FN void take_share(const Warp& w, const Share& share, const void* p, std::uint64_t elements, Batch batch,
                               One one) {
  using B = Batches<T>;
  const B batches(p, elements);
  w.each([&](int l) {
    for (std::uint64_t b = share.number; b < batches.count; b += share.of)
      batch(l, batches.before + b * B::size + static_cast<std::uint64_t>(l) * unit_elements<T>);
    if (share.number != batches.count % share.of) return;
    const std::uint64_t whole = batches.count * B::size;
    LACONIC_GPU_KEEP_LOOP
    for (auto i = static_cast<std::uint64_t>(l); i < elements - whole; i += warp_lanes)
      one(l, i < batches.before ? i : i + whole);
  });
}

/// An aligned unit that the next step may find in the cache.
template <class T>
LACONIC_GPU_FN ElementUnit<T> load_unit(const typename T::Bits* p) {
#if defined(__CUDA_ARCH__)
  return std::bit_cast<ElementUnit<T>>(*reinterpret_cast<const uint4*>(p));
#else
  return *reinterpret_cast<const ElementUnit<T>*>(p);
#endif
}
template <class T>
LACONIC_GPU_FN void store_unit(typename T::Bits* p, const ElementUnit<T>& v) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<uint4*>(p) = std::bit_cast<uint4>(v);
#else
  *reinterpret_cast<ElementUnit<T>*>(p) = v;
#endif
}

/// The units of a lane's batch that begins at p.
template <class T>
LACONIC_GPU_FN void load_batch(const typename T::Bits* p, ElementUnit<T> (&in)[Batches<T>::units]) {
  LACONIC_GPU_UNROLL
  for (int u = 0; u < Batches<T>::units; ++u) in[u] = load_unit<T>(p + u * Batches<T>::stride);
}

/// The largest of the lanes' values.
template <class V>
LACONIC_GPU_FN V largest(const Warp& w, PerLane<V> v) {
  for (int o = warp_lanes / 2; o > 0; o /= 2) {
    const PerLane<V> other = w.gather(v, [o](int l) { return l ^ o; });
    w.each([&](int l) { v[l] = other[l] > v[l] ? other[l] : v[l]; });
  }
  return w.from(v, 0);
}

// ---- The range ------------------------------------------------------------------------------------------------------

/// The extremes of what a lane has seen. Elements of 16 bits come in pairs: as order-mapped integers, the larger of two
/// pairs has the larger upper one; the lower ones are shifted up to be compared.
template <class T>
class Extent {
 public:
  using Key = typename T::Bits;

  LACONIC_GPU_FN void take(const ElementUnit<T>& unit) {
    if constexpr (pairs) {
      struct Words {
        std::uint32_t w[4];
      };
      const auto words = std::bit_cast<Words>(unit);
      LACONIC_GPU_UNROLL
      for (const std::uint32_t w : words.w) {
        const std::uint32_t mapped = w ^ (w >> 15 & 0x00010001U) * 0x7FFFU;
        widen(0, static_cast<Word>(mapped));
        widen(1, static_cast<Word>(mapped << 16));
      }
    } else {
      LACONIC_GPU_UNROLL
      for (const Key bits : unit.v) widen(0, order_mapped(bits));
    }
  }
  /// One element, if it is finite; whether it is.
  LACONIC_GPU_FN bool take_finite(Key bits) {
    if (T::magnitude(bits) >= T::infinity) return false;
    widen(0, pairs ? Word{order_mapped(bits)} * 0x10000 : Word{order_mapped(bits)});
    return true;
  }

  /// Order-mapped; of nothing: what only a NaN has.
  [[nodiscard]] LACONIC_GPU_FN Key top() const { return key(top_[1] > top_[0] ? top_[1] : top_[0]); }
  [[nodiscard]] LACONIC_GPU_FN Key bottom() const { return key(bottom_[1] < bottom_[0] ? bottom_[1] : bottom_[0]); }
  [[nodiscard]] LACONIC_GPU_FN bool is_finite() const { return top() < T::infinity && ~bottom() < T::infinity; }

 private:
  static constexpr bool pairs = sizeof(Key) == 2;
  using Word = std::conditional_t<sizeof(Key) == 8, std::int64_t, std::int32_t>;

  LACONIC_GPU_FN static Key key(Word w) { return static_cast<Key>(pairs ? w >> 16 : w); }
  LACONIC_GPU_FN void widen(int half, Word w) {
    top_[half] = w > top_[half] ? w : top_[half];
    bottom_[half] = w < bottom_[half] ? w : bottom_[half];
  }

  static constexpr Word lowest = std::numeric_limits<Word>::min();
  static constexpr Word highest = std::numeric_limits<Word>::max();
  Word top_[2] = {lowest, lowest};  // the second is for the lower ones of pairs
  Word bottom_[2] = {highest, highest};
};

/// A scan under way, in the memory of its Range. Extremes as unsigned integers in order, the lower one's complement;
/// 0 is below all that there are.
struct ScanTally {
  std::uint64_t bottom = 0;  ///< at last the bits of Range::min
  std::uint64_t top = 0;     ///< and of Range::max
  std::uint64_t tiles = 0;   ///< that are done; at last the count of elements
  std::uint64_t non_finite = 0;
};
static_assert(sizeof(ScanTally) == sizeof(Range) && offsetof(Range, min) == 0 && offsetof(Range, max) == 8 &&
              offsetof(Range, count) == 16 && offsetof(Range, non_finite) == 24);

inline constexpr std::uint64_t order_bias = std::uint64_t{1} << 63;
LACONIC_GPU_FN std::uint64_t biased(std::int64_t key) { return static_cast<std::uint64_t>(key) ^ order_bias; }

/// The value of an extreme that biased() made.
template <class T>
LACONIC_GPU_FN double extreme_value(std::uint64_t of) {
  using Key = typename OrderOf<T>::Bits;
  const auto bits = order_mapped(static_cast<Key>(static_cast<std::int64_t>(of ^ order_bias)));
  return static_cast<double>(T::real(static_cast<typename T::Bits>(bits))) + 0.0;  // + 0.0: no negative zero
}

/// What a warp found.
struct Found {
  std::uint64_t bottom, top, non_finite;
};

template <class T>
LACONIC_GPU_FN Found scan_share(const Warp& w, const Share& share, const typename T::Bits* elements,
                                std::uint64_t count) {
  using O = OrderOf<T>;
  const auto* x = reinterpret_cast<const typename O::Bits*>(elements);
  PerLane<Extent<O>> seen;
  PerLane<std::uint32_t> non_finite;
  const auto one = [&](int l, typename O::Bits bits) { non_finite[l] += seen[l].take_finite(bits) ? 0 : 1; };
  // Most data is finite. A batch that is not (its extremes tell) is looked at again, with care.
  const auto batch = [&](int l, std::uint64_t i) {
    ElementUnit<O> in[Batches<O>::units];
    load_batch<O>(x + i, in);
    Extent<O> next = seen[l];
    LACONIC_GPU_UNROLL
    for (const auto& unit : in) next.take(unit);
    if (next.is_finite()) {
      seen[l] = next;
      return;
    }
    LACONIC_GPU_UNROLL
    for (const auto& unit : in) {
      LACONIC_GPU_UNROLL
      for (const auto bits : unit.v) one(l, bits);
    }
  };
  take_share<O>(w, share, elements, count, batch, [&](int l, std::uint64_t i) { one(l, x[i]); });
  PerLane<std::int64_t> top, below;
  w.each([&](int l) {
    top[l] = seen[l].top();
    below[l] = ~std::int64_t{seen[l].bottom()};
  });
  return {biased(largest(w, below)), biased(largest(w, top)),
          w.sum<std::uint64_t>([&](int l) { return std::uint64_t{non_finite[l]}; })};
}

struct ScanShared {
  Found of[tile_warps];
};

/// One of `tiles` thread blocks that scan x together. `tally` is zero at first and holds a Range when all are done.
template <class T>
LACONIC_GPU_FN void run_scan(const Tile& tile, std::uint64_t number, std::uint64_t tiles, const typename T::Bits* x,
                             std::uint64_t count, ScanTally* tally, ScanShared& shared) {
  tile.each_warp([&](const Warp& w, int k) {
    const Found found =
        scan_share<T>(w, {number * tile_warps + static_cast<std::uint64_t>(k), tiles * tile_warps}, x, count);
    w.each([&](int l) {
      if (l == 0) shared.of[k] = found;
    });
  });
  tile.each_warp([&](const Warp& w, int k) {
    w.each([&](int l) {
      if (k != 0 || l != 0) return;
      Found all{};
      for (const Found& f : shared.of) {
        all.bottom = f.bottom > all.bottom ? f.bottom : all.bottom;
        all.top = f.top > all.top ? f.top : all.top;
        all.non_finite += f.non_finite;
      }
      max_shared(&tally->bottom, all.bottom);
      max_shared(&tally->top, all.top);
      if (all.non_finite != 0) add_shared(&tally->non_finite, all.non_finite);
      if (count_behind(&tally->tiles) + 1 < tiles) return;
      fence();
      const bool any = load_shared_state(&tally->non_finite) < count;
      const double min = any ? extreme_value<T>(~load_shared_state(&tally->bottom)) : 0;
      const double max = any ? extreme_value<T>(load_shared_state(&tally->top)) : 0;
      tally->bottom = std::bit_cast<std::uint64_t>(min);
      tally->top = std::bit_cast<std::uint64_t>(max);
      tally->tiles = count;
    });
  });
}

// ---- Outliers -------------------------------------------------------------------------------------------------------

struct OutlierShared {
  std::uint64_t count[tile_warps];
  std::uint64_t fills[tile_warps];
  std::uint64_t within[tile_warps];  ///< magnitudes' bits
};

/// Bit l of `word`, of 32: whether at that sampled position is(magnitude's bits).
template <class O, class Is>
LACONIC_GPU_FN std::uint32_t at_samples(const Warp& w, const typename O::Bits* x, std::uint64_t count,
                                        std::uint64_t word, Is is) {
  return w.ballot([&](int l) {
    const auto bits = x[Outliers::position(word * warp_lanes + static_cast<std::uint64_t>(l), count)];
    return is(static_cast<std::uint64_t>(O::magnitude(bits)));
  });
}

/// One of `tiles` thread blocks that count together; x is not empty. `result` is zero at first.
template <class T>
LACONIC_GPU_FN void run_count_outliers(const Tile& tile, std::uint64_t number, std::uint64_t tiles,
                                       const typename T::Bits* elements, std::uint64_t count, const OutlierBits& wanted,
                                       Outliers* result, OutlierShared& shared) {
  using O = OrderOf<T>;
  const auto* x = reinterpret_cast<const typename O::Bits*>(elements);
  using Magnitude = std::conditional_t<sizeof(typename O::Bits) == 8, std::uint64_t, std::uint32_t>;
  const auto first = static_cast<Magnitude>(wanted.first);
  const auto size = static_cast<Magnitude>(wanted.size);
  const auto fill = static_cast<Magnitude>(wanted.fill);
  tile.each_warp([&](const Warp& w, int k) {
    const Share share{number * tile_warps + static_cast<std::uint64_t>(k), tiles * tile_warps};
    PerLane<std::uint32_t> outliers, fills;
    PerLane<Magnitude> within;
    const auto one = [&](int l, typename O::Bits bits) {
      const auto m = static_cast<Magnitude>(O::magnitude(bits));
      outliers[l] += m - first < size ? 1 : 0;
      fills[l] += m == fill ? 1 : 0;
      within[l] = m < first && m > within[l] ? m : within[l];
    };
    const auto batch = [&](int l, std::uint64_t i) {
      ElementUnit<O> in[Batches<O>::units];
      load_batch<O>(x + i, in);
      LACONIC_GPU_UNROLL
      for (const auto& unit : in) {
        LACONIC_GPU_UNROLL
        for (const auto bits : unit.v) one(l, bits);
      }
    };
    take_share<O>(w, share, x, count, batch, [&](int l, std::uint64_t i) { one(l, x[i]); });
    const auto in_all = w.sum<std::uint64_t>([&](int l) { return std::uint64_t{outliers[l]}; });
    const auto fills_in_all = w.sum<std::uint64_t>([&](int l) { return std::uint64_t{fills[l]}; });
    const auto within_all = largest(w, within);
    w.each([&](int l) {
      if (l != 0) return;
      shared.count[k] = in_all;
      shared.fills[k] = fills_in_all;
      shared.within[k] = within_all;
    });
    auto* fill_at = reinterpret_cast<std::uint32_t*>(result->fill_at.data());  // little endian
    auto* lone_at = reinterpret_cast<std::uint32_t*>(result->lone_at.data());
    const auto is_fill = [&](std::uint64_t m) { return m == wanted.fill; };
    const auto is_lone = [&](std::uint64_t m) { return m - wanted.first < wanted.size && !is_fill(m); };
    for (std::uint64_t word = share.number; word < Outliers::samples / 32; word += share.of) {
      const std::uint32_t filled = at_samples<O>(w, x, count, word, is_fill);
      const std::uint32_t alone = at_samples<O>(w, x, count, word, is_lone);
      w.each([&](int l) {
        if (l != 0) return;
        fill_at[word] = filled;
        lone_at[word] = alone;
      });
    }
  });
  tile.each_warp([&](const Warp& w, int k) {
    w.each([&](int l) {
      if (k != 0 || l > 2) return;
      if (l == 2) {
        std::uint64_t bits = 0;
        for (const std::uint64_t n : shared.within) bits = n > bits ? n : bits;
        const auto value = static_cast<double>(T::real(static_cast<typename T::Bits>(bits)));
        // Bits of numbers that are not negative are in their order.
        max_shared(reinterpret_cast<std::uint64_t*>(&result->within), std::bit_cast<std::uint64_t>(value));
        return;
      }
      std::uint64_t sum = 0;
      for (const std::uint64_t n : l == 0 ? shared.count : shared.fills) sum += n;
      if (sum != 0) add_shared(l == 0 ? &result->count : &result->fills, sum);
    });
  });
}

// ---- What changes elements
// -------------------------------------------------------------------------------------------

/// A quotient as the CPU gives it.
template <class T>
LACONIC_GPU_FN typename T::Bits quotient(typename T::Bits bits, typename T::Real divisor) {
  return quotient_of<T>(bits, [&](typename T::Real v) { return T::bits(computed(v / divisor)); });
}

template <class T>
LACONIC_GPU_FN void divide_share(const Warp& w, const Share& share, typename T::Bits* x, std::uint64_t count,
                                 typename T::Real divisor) {
  const auto batch = [&](int, std::uint64_t i) {
    ElementUnit<T> in[Batches<T>::units];
    load_batch<T>(x + i, in);
    LACONIC_GPU_UNROLL
    for (int u = 0; u < Batches<T>::units; ++u) {
      LACONIC_GPU_UNROLL
      for (auto& bits : in[u].v) bits = quotient<T>(bits, divisor);
      store_unit<T>(x + i + u * Batches<T>::stride, in[u]);
    }
  };
  take_share<T>(w, share, x, count, batch, [&](int, std::uint64_t i) { x[i] = quotient<T>(x[i], divisor); });
}

/// The smaller or the larger of two elements.
template <class O>
LACONIC_GPU_FN typename O::Bits extreme_of(bool smaller, typename O::Bits x, typename O::Bits y) {
  if constexpr (O::floats) {
    if (O::is_nan(x) || O::is_nan(y)) return O::quiet_nan;
    return (order_mapped(x) < order_mapped(y)) == smaller ? x : y;
  } else {
    return (x < y) == smaller ? x : y;
  }
}

/// As load_batch(), of memory that is aligned to its elements only.
template <class T>
LACONIC_GPU_FN void load_unaligned_batch(const typename T::Bits* p, ElementUnit<T> (&in)[Batches<T>::units]) {
  LACONIC_GPU_UNROLL
  for (int u = 0; u < Batches<T>::units; ++u) {
    LACONIC_GPU_UNROLL
    for (int e = 0; e < unit_elements<T>; ++e) in[u].v[e] = p[u * Batches<T>::stride + e];
  }
}

/// a[i] = an extreme of a[i] and b[i].
template <class O>
LACONIC_GPU_FN void extreme_share(const Warp& w, const Share& share, bool smaller, typename O::Bits* a,
                                  const typename O::Bits* b, std::uint64_t count) {
  const bool alike = is_aligned16(b + Batches<O>(a, count).before);
  const auto batch = [&](int, std::uint64_t i) {
    ElementUnit<O> x[Batches<O>::units];
    ElementUnit<O> y[Batches<O>::units];
    load_batch<O>(a + i, x);
    if (alike) {
      load_batch<O>(b + i, y);
    } else {
      load_unaligned_batch<O>(b + i, y);
    }
    LACONIC_GPU_UNROLL
    for (int u = 0; u < Batches<O>::units; ++u) {
      LACONIC_GPU_UNROLL
      for (int e = 0; e < unit_elements<O>; ++e) x[u].v[e] = extreme_of<O>(smaller, x[u].v[e], y[u].v[e]);
      store_unit<O>(a + i + u * Batches<O>::stride, x[u]);
    }
  };
  take_share<O>(w, share, a, count, batch, [&](int, std::uint64_t i) { a[i] = extreme_of<O>(smaller, a[i], b[i]); });
}

// ---- The sample
// ------------------------------------------------------------------------------------------------------

/// out = the chunks of a sample of x, one behind the other. Element: an unsigned integer of its size.
template <class Element>
LACONIC_GPU_FN void gather_share(const Warp& w, const Share& share, const Element* x, const Sample& sample,
                                 Element* out) {
  w.each([&](int l) {
    for (std::uint64_t i = share.number * warp_lanes + static_cast<std::uint64_t>(l); i < sample.elements();
         i += share.of * warp_lanes)
      out[i] = x[sample.first(i / chunk_values) + i % chunk_values];
  });
}

// ---- Types
// -----------------------------------------------------------------------------------------------------------

/// f(F32{}) or f of another type's. False: not a float dtype.
template <class F>
bool with_float(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      f(F32{});
      return true;
    case DType::f64:
      f(F64{});
      return true;
    case DType::f16:
      f(F16{});
      return true;
    case DType::bf16:
      f(BF16{});
      return true;
    default:
      return false;
  }
}

/// The same with Ordered ones, integers too.
template <class F>
bool with_ordered(DType dtype, F f) {
  switch (dtype) {
    case DType::i32:
      f(Ordered<std::int32_t>{});
      return true;
    case DType::i64:
      f(Ordered<std::int64_t>{});
      return true;
    case DType::u32:
      f(Ordered<std::uint32_t>{});
      return true;
    case DType::u64:
      f(Ordered<std::uint64_t>{});
      return true;
    default:
      return with_float(dtype, [&]<class T>(T) { f(OrderOf<T>{}); });
  }
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
