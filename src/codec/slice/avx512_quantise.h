// Elements -> integers with AVX-512, and what is wrong with those that have none. Included by avx512_policy.h.

#include "codec/slice/element_kinds.h"

inline __m512i order_flip32(__m512i s) { return _mm512_xor_si512(s, _mm512_srli_epi32(_mm512_srai_epi32(s, 31), 1)); }
inline __m512i order_flip16(__m512i s) {
  return _mm512_xor_si512(s, _mm512_and_si512(_mm512_srai_epi32(s, 31), _mm512_set1_epi32(0x7FFF)));
}

inline __m512 widen_bf16(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
/// Bits of the nearest bf16, ties to even, in the upper halves. For finite values.
inline __m512i nearest_bf16(__m512 f) {
  const __m512i b = _mm512_castps_si512(f);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
  return _mm512_and_si512(_mm512_add_epi32(_mm512_add_epi32(b, _mm512_set1_epi32(0x7FFF)), odd),
                          _mm512_set1_epi32(static_cast<int>(0xFFFF0000U)));
}

/// 16 elements as f32, and what decoding q * step would give.
template <Elements E>
struct Narrow {
  static __m512 load16(const void* x, int i) {
    if constexpr (E == Elements::f32) return _mm512_loadu_ps(static_cast<const float*>(x) + i);
    const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const std::uint16_t*>(x) + i));
    if constexpr (E == Elements::f16) return _mm512_cvtph_ps(h);
    return widen_bf16(h);
  }
  static __m512 rounded(__m512 v) {
    if constexpr (E == Elements::f16)
      return _mm512_cvtph_ps(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    if constexpr (E == Elements::bf16) return _mm512_castsi512_ps(nearest_bf16(v));
    return v;
  }
};

/// x * inverse rounded to the nearest integer, held in the low bits of a float: 2^23 + 2^qbits + q. In the allowed
/// window all bits above the lowest qbits + 1 are those of 2^23. For doubles the same with 2^52.
constexpr int floor32 = 0x4B000000;
constexpr long long floor64 = 0x4330000000000000LL;

template <Elements E>
struct Quantiser32 {
  __m512 inverse, step, bound, origin;
  __m128i window;
  __m512i lowest, highest;  ///< of Params::proven, with the bias
  explicit Quantiser32(const Params& p)
      : inverse(_mm512_set1_ps(p.inverse32)),
        step(_mm512_set1_ps(p.step32)),
        bound(_mm512_set1_ps(p.bound32)),
        origin(_mm512_castsi512_ps(_mm512_set1_epi32(floor32 + (1 << p.grid.qbits)))),
        window(_mm_cvtsi32_si128(p.grid.qbits + 1)),
        lowest(_mm512_set1_epi32(floor32 + (1 << p.grid.qbits) - static_cast<int>(p.proven))),
        highest(_mm512_set1_epi32(floor32 + (1 << p.grid.qbits) + static_cast<int>(p.highest_proven()))) {}

  /// q with its bias.
  [[nodiscard]] __m512i integer(__m512 a) const { return _mm512_castps_si512(_mm512_fmadd_ps(a, inverse, origin)); }

  /// Elements whose errors are computed, as the decoder makes them.
  struct Checked {
    __m512i outside = _mm512_setzero_si512();  ///< what must not have bits above the window
    __m512 error = _mm512_setzero_ps();        ///< the largest magnitude
    explicit Checked(const Quantiser32&) {}
    void see(const Quantiser32& z, __m512 a, __m512i q) {
      const __m512 f = _mm512_sub_ps(_mm512_castsi512_ps(q), z.origin);
      const __m512 e = _mm512_sub_ps(a, Narrow<E>::rounded(_mm512_mul_ps(f, z.step)));
      error = _mm512_range_ps(error, e, 11);  // the larger magnitude, without its sign
      outside = _mm512_ternarylogic_epi32(outside, q, _mm512_set1_epi32(floor32), 0xF6);  // outside | (q ^ floor)
    }
    void join(const Checked& o) {
      error = _mm512_range_ps(error, o.error, 11);
      outside = _mm512_or_si512(outside, o.outside);
    }
    /// Which of 16 elements, or of more in their places, are exceptions.
    [[nodiscard]] unsigned bad(const Quantiser32& z) const {
      const __m512i above = _mm512_srl_epi32(outside, z.window);
      return _mm512_test_epi32_mask(above, above) |
             static_cast<unsigned>(_mm512_cmp_ps_mask(error, z.bound, _CMP_NLE_UQ));
    }
  };
  /// Elements whose integers must be proven ones.
  struct Proven {
    __m512i low, high;
    explicit Proven(const Quantiser32& z) : low(_mm512_castps_si512(z.origin)), high(low) {}
    void see(const Quantiser32&, __m512, __m512i q) {
      low = _mm512_min_epi32(low, q);
      high = _mm512_max_epi32(high, q);
    }
    void join(const Proven& o) {
      low = _mm512_min_epi32(low, o.low);
      high = _mm512_max_epi32(high, o.high);
    }
    [[nodiscard]] unsigned bad(const Quantiser32& z) const {
      return _mm512_cmplt_epi32_mask(low, z.lowest) | _mm512_cmpgt_epi32_mask(high, z.highest);
    }
  };

  template <class Seen>
  __m512i one(const void* x, int i, Seen& seen) const {
    __m512 a = Narrow<E>::load16(x, i);
#ifndef LACONIC_EMULATED_AVX512  // whose vectors fit no register
    asm("" : "+v"(a));           // else gcc loads it twice, and unaligned loads are dear
#endif
    const __m512i q = integer(a);
    seen.see(*this, a, q);
    return q;
  }

  template <class Seen>
  bool all(const void* x, std::int32_t* q) const {
    Seen seen[4] = {Seen(*this), Seen(*this), Seen(*this), Seen(*this)};
    for (int i = 0; i < chunk_values; i += 64) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) _mm512_store_si512(q + i + 16 * k, one(x, i + 16 * k, seen[k]));
    }
    for (int k = 1; k < 4; ++k) seen[0].join(seen[k]);
    return seen[0].bad(*this) == 0;
  }
  static bool all(const Params& p, const void* x, std::int32_t* q) {
    const Quantiser32 z(p);
    return (p.proven != 0 && z.all<Proven>(x, q)) || (!p.all_proven() && z.all<Checked>(x, q));
  }

  void marks(const Params& p, const void* x, std::uint64_t* m, std::int32_t* q) const {
    for (int b = 0; b < chunk_blocks; ++b) {
      m[b] = p.proven != 0 ? unproven_marks(x, 64 * b, q) : ~std::uint64_t{0};
      if (m[b] != 0 && !p.all_proven()) m[b] = checked_marks(x, 64 * b, q);
    }
  }

 private:
  /// Which of the 64 elements from i on have no proven integer.
  std::uint64_t unproven_marks(const void* x, int i, std::int32_t* q) const {
    const __m512i width = _mm512_sub_epi32(highest, lowest);
    std::uint64_t m = 0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const __m512i v = integer(Narrow<E>::load16(x, i + 16 * k));
      _mm512_store_si512(q + i + 16 * k, v);
      m |= std::uint64_t{_mm512_cmpgt_epu32_mask(_mm512_sub_epi32(v, lowest), width)} << (16 * k);
    }
    return m;
  }
  std::uint64_t checked_marks(const void* x, int i, std::int32_t* q) const {
    Checked seen[4] = {Checked(*this), Checked(*this), Checked(*this), Checked(*this)};
    for (int k = 0; k < 4; ++k) _mm512_store_si512(q + i + 16 * k, one(x, i + 16 * k, seen[k]));
    Checked any = seen[0];
    for (int k = 1; k < 4; ++k) any.join(seen[k]);
    std::uint64_t m = 0;
    if (any.bad(*this) == 0) return m;
    for (int k = 0; k < 4; ++k) m |= std::uint64_t{seen[k].bad(*this)} << (16 * k);
    return m;
  }
};

struct Quantiser64 {
  __m512d inverse, step, bound, origin;
  __m128i window;
  explicit Quantiser64(const Params& p)
      : inverse(_mm512_set1_pd(p.inverse64)),
        step(_mm512_set1_pd(p.grid.step)),
        bound(_mm512_set1_pd(p.grid.bound)),
        origin(_mm512_castsi512_pd(_mm512_set1_epi64(floor64 + (1LL << p.grid.qbits)))),
        window(_mm_cvtsi32_si128(p.grid.qbits + 1)) {}

  /// Of 8 elements, or of more in their places. Errors are computed where the window does not prove them (Params).
  template <bool Checked>
  struct Seen {
    __m512i outside;  ///< what must not have bits above the window
    __m512d error;    ///< the largest magnitude
    Seen() : outside(_mm512_setzero_si512()), error(_mm512_setzero_pd()) {}
    void see(const Quantiser64& z, __m512d a, __m512d t) {
      outside = _mm512_ternarylogic_epi64(outside, _mm512_castpd_si512(t), _mm512_set1_epi64(floor64), 0xF6);
      if constexpr (Checked) {
        const __m512d e = _mm512_sub_pd(a, _mm512_mul_pd(_mm512_sub_pd(t, z.origin), z.step));
        error = _mm512_range_pd(error, e, 11);
      }
    }
    void join(const Seen& o) {
      outside = _mm512_or_si512(outside, o.outside);
      error = _mm512_range_pd(error, o.error, 11);
    }
    [[nodiscard]] unsigned bad(const Quantiser64& z) const {
      const __m512i above = _mm512_srl_epi64(outside, z.window);
      const unsigned beyond = _mm512_test_epi64_mask(above, above);
      return Checked ? beyond | static_cast<unsigned>(_mm512_cmp_pd_mask(error, z.bound, _CMP_NLE_UQ)) : beyond;
    }
  };

  template <class S>
  __m256i one(const void* x, int i, S& seen) const {
    const __m512d a = _mm512_loadu_pd(static_cast<const double*>(x) + i);
    const __m512d t = _mm512_fmadd_pd(a, inverse, origin);
    seen.see(*this, a, t);
    return _mm512_cvtepi64_epi32(_mm512_castpd_si512(t));  // the low half of floor64 is zero
  }

  template <bool Checked>
  bool all(const void* x, std::int32_t* q) const {
    Seen<Checked> seen[4];
    for (int i = 0; i < chunk_values; i += 32) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k)
        _mm256_store_si256(reinterpret_cast<__m256i*>(q + i + 8 * k), one(x, i + 8 * k, seen[k]));
    }
    for (int k = 1; k < 4; ++k) seen[0].join(seen[k]);
    return seen[0].bad(*this) == 0;
  }
  static bool all(const Params& p, const void* x, std::int32_t* q) {
    const Quantiser64 z(p);
    return p.all_proven() ? z.all<false>(x, q) : z.all<true>(x, q);
  }

  void marks(const void* x, std::uint64_t* m, std::int32_t* q) const {
    for (int b = 0; b < chunk_blocks; ++b) {
      m[b] = 0;
      for (int k = 0; k < 8; ++k) {
        Seen<true> seen;
        _mm256_store_si256(reinterpret_cast<__m256i*>(q + 64 * b + 8 * k), one(x, 64 * b + 8 * k, seen));
        m[b] |= std::uint64_t{seen.bad(*this)} << (8 * k);
      }
    }
  }
};
