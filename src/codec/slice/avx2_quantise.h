// Elements -> integers with AVX2, and what is wrong with those that have none. Included by avx2_policy.h.

#include "codec/slice/element_kinds.h"

inline __m256i order_flip32(__m256i s) { return _mm256_xor_si256(s, _mm256_srli_epi32(_mm256_srai_epi32(s, 31), 1)); }
inline __m256i order_flip16(__m256i s) {
  return _mm256_xor_si256(s, _mm256_and_si256(_mm256_srai_epi32(s, 31), _mm256_set1_epi32(0x7FFF)));
}

inline __m256 widen_bf16(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
/// Bits of the nearest bf16, ties to even, in the upper halves. For finite values.
inline __m256i nearest_bf16(__m256 f) {
  const __m256i b = _mm256_castps_si256(f);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(1));
  return _mm256_and_si256(_mm256_add_epi32(_mm256_add_epi32(b, _mm256_set1_epi32(0x7FFF)), odd),
                          _mm256_set1_epi32(static_cast<int>(0xFFFF0000U)));
}

/// 8 elements as f32, and what decoding q * step would give.
template <Elements E>
struct Narrow {
  static __m256 load8(const void* x, int i) {
    if constexpr (E == Elements::f32) return _mm256_loadu_ps(static_cast<const float*>(x) + i);
    const __m128i h = load128(static_cast<const std::uint16_t*>(x) + i);
    if constexpr (E == Elements::f16) return _mm256_cvtph_ps(h);
    return widen_bf16(h);
  }
  static __m256 rounded(__m256 v) {
    if constexpr (E == Elements::f16) return _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    if constexpr (E == Elements::bf16) return _mm256_castsi256_ps(nearest_bf16(v));
    return v;
  }
};

/// x * inverse rounded to the nearest integer, held in the low bits of a float: 2^23 + 2^qbits + q. In the allowed
/// window all bits above the lowest qbits + 1 are those of 2^23. For doubles the same with 2^52.
constexpr int floor32 = 0x4B000000;
constexpr long long floor64 = 0x4330000000000000LL;

inline __m256 abs_of(__m256 v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), v); }
inline __m256d abs_of(__m256d v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }

template <Elements E>
struct Quantiser32 {
  static constexpr int lanes = 8;
  __m256 inverse, step, bound, origin;
  __m128i window;
  __m256i lowest, highest;  ///< of Params::proven, with the bias
  explicit Quantiser32(const Params& p)
      : inverse(_mm256_set1_ps(p.inverse32)),
        step(_mm256_set1_ps(p.step32)),
        bound(_mm256_set1_ps(p.bound32)),
        origin(_mm256_castsi256_ps(_mm256_set1_epi32(floor32 + (1 << p.grid.qbits)))),
        window(_mm_cvtsi32_si128(p.grid.qbits + 1)),
        lowest(_mm256_set1_epi32(floor32 + (1 << p.grid.qbits) - static_cast<int>(p.proven))),
        highest(_mm256_set1_epi32(floor32 + (1 << p.grid.qbits) + static_cast<int>(p.highest_proven()))) {}

  /// Elements whose errors are computed, as the decoder makes them. Errors of values that are not finite get lost in
  /// the maximum, but their bits outside the window do not.
  struct Checked {
    __m256i outside;  ///< what must not have bits above the window
    __m256 error;     ///< the largest magnitude
    explicit Checked(const Quantiser32&) : outside(_mm256_setzero_si256()), error(_mm256_setzero_ps()) {}
    void see(const Quantiser32& z, __m256 a, __m256 t) {
      const __m256 value = Narrow<E>::rounded(_mm256_mul_ps(_mm256_sub_ps(t, z.origin), z.step));
      error = _mm256_max_ps(error, abs_of(_mm256_sub_ps(a, value)));
      outside = _mm256_or_si256(outside, _mm256_xor_si256(_mm256_castps_si256(t), _mm256_set1_epi32(floor32)));
    }
    void join(const Checked& o) {
      error = _mm256_max_ps(error, o.error);
      outside = _mm256_or_si256(outside, o.outside);
    }
    [[nodiscard]] unsigned bad(const Quantiser32& z) const {
      const __m256i inside = _mm256_cmpeq_epi32(_mm256_srl_epi32(outside, z.window), _mm256_setzero_si256());
      return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(inside)) ^ 255) |
             static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(error, z.bound, _CMP_NLE_UQ)));
    }
  };
  /// Elements whose integers must be proven ones.
  struct Proven {
    __m256i low, high;
    explicit Proven(const Quantiser32& z) : low(_mm256_castps_si256(z.origin)), high(low) {}
    void see(const Quantiser32&, __m256, __m256 t) {
      low = _mm256_min_epi32(low, _mm256_castps_si256(t));
      high = _mm256_max_epi32(high, _mm256_castps_si256(t));
    }
    void join(const Proven& o) {
      low = _mm256_min_epi32(low, o.low);
      high = _mm256_max_epi32(high, o.high);
    }
    [[nodiscard]] unsigned bad(const Quantiser32& z) const {
      const __m256i beyond = _mm256_or_si256(_mm256_cmpgt_epi32(z.lowest, low), _mm256_cmpgt_epi32(high, z.highest));
      return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(beyond)));
    }
  };

  /// q with its bias.
  template <class Seen>
  __m256i one(const void* x, int i, Seen& seen) const {
    const __m256 a = Narrow<E>::load8(x, i);
    const __m256 t = _mm256_fmadd_ps(a, inverse, origin);
    seen.see(*this, a, t);
    return _mm256_castps_si256(t);
  }
  static void put(std::int32_t* to, __m256i q) { store256(to, q); }
};

struct Quantiser64 {
  static constexpr int lanes = 4;
  __m256d inverse, step, bound, origin;
  __m128i window;
  explicit Quantiser64(const Params& p)
      : inverse(_mm256_set1_pd(p.inverse64)),
        step(_mm256_set1_pd(p.grid.step)),
        bound(_mm256_set1_pd(p.grid.bound)),
        origin(_mm256_castsi256_pd(_mm256_set1_epi64x(floor64 + (1LL << p.grid.qbits)))),
        window(_mm_cvtsi32_si128(p.grid.qbits + 1)) {}

  template <bool Computed>
  struct Seen {
    __m256i outside;
    __m256d error;
    explicit Seen(const Quantiser64&) : outside(_mm256_setzero_si256()), error(_mm256_setzero_pd()) {}
    void see(const Quantiser64& z, __m256d a, __m256d t) {
      outside = _mm256_or_si256(outside, _mm256_xor_si256(_mm256_castpd_si256(t), _mm256_set1_epi64x(floor64)));
      if constexpr (Computed) {
        const __m256d value = _mm256_mul_pd(_mm256_sub_pd(t, z.origin), z.step);
        error = _mm256_max_pd(error, abs_of(_mm256_sub_pd(a, value)));
      }
    }
    void join(const Seen& o) {
      outside = _mm256_or_si256(outside, o.outside);
      error = _mm256_max_pd(error, o.error);
    }
    [[nodiscard]] unsigned bad(const Quantiser64& z) const {
      const __m256i inside = _mm256_cmpeq_epi64(_mm256_srl_epi64(outside, z.window), _mm256_setzero_si256());
      return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(inside)) ^ 15) |
             static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(error, z.bound, _CMP_NLE_UQ)));
    }
  };
  using Checked = Seen<true>;
  using Proven = Seen<false>;  ///< where all of the window is

  template <class S>
  __m256i one(const void* x, int i, S& seen) const {
    const __m256d a = _mm256_loadu_pd(static_cast<const double*>(x) + i);
    const __m256d t = _mm256_fmadd_pd(a, inverse, origin);
    seen.see(*this, a, t);
    return _mm256_castpd_si256(t);
  }
  /// The low halves: that of floor64 is zero.
  static void put(std::int32_t* to, __m256i q) {
    const __m256i low = _mm256_permutevar8x32_epi32(q, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(low));
  }
};

/// A chunk's integers; false if any value is an exception or, unless errors are computed, may be one.
template <class Seen, class Q>
bool quantise_all(const Q& k, const void* x, std::int32_t* to) {
  Seen seen[2] = {Seen(k), Seen(k)};
  for (int i = 0; i < chunk_values; i += 4 * Q::lanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) Q::put(to + i + j * Q::lanes, k.one(x, i + j * Q::lanes, seen[j % 2]));
  }
  seen[0].join(seen[1]);
  return seen[0].bad(k) == 0;
}
template <class Q>
bool quantise_all(const Params& p, const void* x, std::int32_t* to) {
  const Q k(p);
  const bool try_proven = std::is_same_v<Q, Quantiser64> ? p.all_proven() : p.proven != 0;
  if (try_proven && quantise_all<typename Q::Proven>(k, x, to)) return true;
  return !p.all_proven() && quantise_all<typename Q::Checked>(k, x, to);
}

template <class Q>
void quantise_marks(const Q& k, const void* x, std::uint64_t* marks) {
  for (int b = 0; b < chunk_blocks; ++b) {
    marks[b] = 0;
    for (int i = 0; i < block_values; i += Q::lanes) {
      typename Q::Checked seen(k);
      k.one(x, block_values * b + i, seen);
      marks[b] |= std::uint64_t{seen.bad(k)} << i;
    }
  }
}
