// What AVX-512 sets share: elements <-> integers, residuals, the choice of a predictor, tables of codes. Included
// inside a target region and an anonymous namespace, after fast_codec.h's types. The plane coder is what the sets
// differ in.

/// The integers of one block: 64 values in four registers.
struct Block64 {
  __m512i v[4];
};

enum class Elements { f32, f64, f16, bf16, exact32, exact_f32, exact_f16 };

inline Elements elements_of(const Params& p) {
  if (p.shape.exact_only) {
    if (p.shape.element_bytes == 2) return Elements::exact_f16;
    return p.shape.floating ? Elements::exact_f32 : Elements::exact32;
  }
  switch (p.grid.dtype) {
    case DType::f64:
      return Elements::f64;
    case DType::f16:
      return Elements::f16;
    case DType::bf16:
      return Elements::bf16;
    default:
      return Elements::f32;
  }
}

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
    asm("" : "+v"(a));  // else gcc loads it twice, and unaligned loads are dear
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

  void marks(const void* x, std::uint64_t* m, std::int32_t* q) const {
    for (int b = 0; b < chunk_blocks; ++b) {
      Checked seen[4] = {Checked(*this), Checked(*this), Checked(*this), Checked(*this)};
      for (int k = 0; k < 4; ++k) _mm512_store_si512(q + 64 * b + 16 * k, one(x, 64 * b + 16 * k, seen[k]));
      Checked any = seen[0];
      for (int k = 1; k < 4; ++k) any.join(seen[k]);
      m[b] = 0;
      if (any.bad(*this) == 0) continue;
      for (int k = 0; k < 4; ++k) m[b] |= std::uint64_t{seen[k].bad(*this)} << (16 * k);
    }
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

#include "codec/slice/avx512_choice.h"
#include "codec/slice/avx512_sinks.h"

/// Everything of a policy but the plane coder.
struct Avx512Base : Avx512Sinks {
  using R = Block64;

  /// What quantise() leaves in the integers beside q: the residuals do not notice, and it saves an operation a value.
  static std::int32_t bias(const Params& p) {
    if (p.shape.exact_only) return 0;
    return (p.shape.element_bytes == 8 ? 0 : floor32) + (1 << p.grid.qbits);
  }

  static bool quantise(const Params& p, const void* x, std::int32_t* q) {
    const FlushSubnormals guard;
    switch (elements_of(p)) {
      case Elements::f32:
        return Quantiser32<Elements::f32>::all(p, x, q);
      case Elements::f16:
        return Quantiser32<Elements::f16>::all(p, x, q);
      case Elements::bf16:
        return Quantiser32<Elements::bf16>::all(p, x, q);
      case Elements::f64:
        return Quantiser64::all(p, x, q);
      case Elements::exact32:
        std::memcpy(q, x, 4 * chunk_values);
        return true;
      case Elements::exact_f32:
        for (int i = 0; i < chunk_values; i += 16)
          _mm512_store_si512(q + i, order_flip32(_mm512_loadu_si512(static_cast<const std::int32_t*>(x) + i)));
        return true;
      case Elements::exact_f16:
        for (int i = 0; i < chunk_values; i += 16) {
          const auto h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const std::uint16_t*>(x) + i));
          _mm512_store_si512(q + i, order_flip16(_mm512_cvtepi16_epi32(h)));
        }
        return true;
    }
    return false;
  }

  /// Marks, and the integers once more.
  static void find_marks(const Params& p, const void* x, std::uint64_t* marks, std::int32_t* q) {
    const FlushSubnormals guard;
    switch (elements_of(p)) {
      case Elements::f64:
        return Quantiser64(p).marks(x, marks, q);
      case Elements::f16:
        return Quantiser32<Elements::f16>(p).marks(x, marks, q);
      case Elements::bf16:
        return Quantiser32<Elements::bf16>(p).marks(x, marks, q);
      default:
        return Quantiser32<Elements::f32>(p).marks(x, marks, q);
    }
  }

  static bool marked_equal(const void* x, const std::uint64_t* marks, std::uint64_t value, int bytes) {
    for (int b = 0; b < chunk_blocks; ++b) {
      if (marks[b] == 0) continue;
      std::uint64_t other = 0;
      const auto* at = static_cast<const std::uint8_t*>(x) + static_cast<std::ptrdiff_t>(64 * b * bytes);
      if (bytes == 4) {
        for (int k = 0; k < 4; ++k)
          other |= std::uint64_t{_mm512_cmpneq_epi32_mask(_mm512_loadu_si512(at + 64 * k),
                                                          _mm512_set1_epi32(static_cast<int>(value)))}
                   << (16 * k);
      } else if (bytes == 8) {
        for (int k = 0; k < 8; ++k)
          other |= std::uint64_t{_mm512_cmpneq_epi64_mask(_mm512_loadu_si512(at + 64 * k),
                                                          _mm512_set1_epi64(static_cast<long long>(value)))}
                   << (8 * k);
      } else {
        for (int k = 0; k < 2; ++k)
          other |= std::uint64_t{_mm512_cmpneq_epi16_mask(_mm512_loadu_si512(at + 64 * k),
                                                          _mm512_set1_epi16(static_cast<short>(value)))}
                   << (32 * k);
      }
      if ((other & marks[b]) != 0) return false;
    }
    return true;
  }

  static bool constant(const std::int32_t* q) {
    if (q[0] != q[chunk_values - 1] || q[0] != q[chunk_values / 2] || q[0] != q[chunk_values / 3]) return false;
    const __m512i first = _mm512_set1_epi32(q[0]);
    for (int i = 0; i < chunk_values; i += 64) {
      __m512i other = _mm512_setzero_si512();
      for (int k = 0; k < 4; ++k)
        other = _mm512_or_si512(other, _mm512_xor_si512(first, _mm512_load_si512(q + i + 16 * k)));
      if (_mm512_test_epi32_mask(other, other) != 0) return false;
    }
    return true;
  }

  /// The sampled mean of q, biased as they are.
  static std::int32_t mean(const std::int32_t* q, std::int32_t bias) {
    __m512i sum = _mm512_setzero_si512();
    for (const int b : {4, 12, 20, 28})
      for (int k = 0; k < 4; ++k) sum = _mm512_add_epi32(sum, _mm512_load_si512(q + 64 * b + 16 * k));
    const auto unbiased =
        static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sum)) - (static_cast<std::uint32_t>(bias) << 8);
    return (static_cast<std::int32_t>(unbiased + 128) >> 8) + bias;
  }

  static __m512i zigzag(__m512i v) { return _mm512_xor_si512(_mm512_slli_epi32(v, 1), _mm512_srai_epi32(v, 31)); }

  template <Predictor P>
  static Block64 residual(const std::int32_t* q, std::int32_t base) {
    Block64 r;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const __m512i c = _mm512_load_si512(q + 16 * k);
      if constexpr (P == Predictor::none) {
        r.v[k] = _mm512_sub_epi32(c, _mm512_set1_epi32(base));
      } else {
        const __m512i one = _mm512_loadu_si512(q + 16 * k - 1);
        r.v[k] = _mm512_sub_epi32(c, one);
        if constexpr (P == Predictor::second)
          r.v[k] = _mm512_sub_epi32(r.v[k], _mm512_sub_epi32(one, _mm512_loadu_si512(q + 16 * k - 2)));
      }
    }
    return r;
  }

  static Choice<std::int32_t> choose(const Integers& q, std::int32_t bias) {
    return ChoiceSample([&](int i) { return _mm512_load_si512(q.q + i); }).choose(bias);
  }

  static Block64 sum(const Block64& a, const Block64& b) {
    return {{_mm512_add_epi32(a.v[0], b.v[0]), _mm512_add_epi32(a.v[1], b.v[1]), _mm512_add_epi32(a.v[2], b.v[2]),
             _mm512_add_epi32(a.v[3], b.v[3])}};
  }

  static void broadcast(std::int32_t v, std::int32_t* q) {
    for (int i = 0; i < chunk_values; i += 16) _mm512_store_si512(q + i, _mm512_set1_epi32(v));
  }

  // ------------------------------------------------------------------------------------------- integers -> elements

  /// 16 values as f32: one rounding of q * step / divisor.
  static __m512 values(const Params& p, __m512i q) {
    if (p.narrow_value) return _mm512_mul_ps(_mm512_cvtepi32_ps(q), _mm512_set1_ps(p.step32));
    const __m512d step = _mm512_set1_pd(p.value_step);
    const __m256 low = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtepi32_pd(_mm512_castsi512_si256(q)), step));
    const __m256 high = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(q, 1)), step));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  }

  static void dequantise(const Params& p, const std::int32_t* q, void* y, bool stream) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(y) % 64 == 0;
    auto* to = static_cast<std::uint8_t*>(y);
    if (stream && !aligned && p.shape.element_bytes >= 4) {
      alignas(64) std::uint8_t buffer[chunk_values * 8];
      dequantise(p, q, buffer, false);
      stream_copy(to, buffer, chunk_values * p.shape.element_bytes);
      return;
    }
    const bool nt = stream && aligned;
    switch (elements_of(p)) {
      case Elements::f32:
        if (p.narrow_value) {
          const __m512 step = _mm512_set1_ps(p.step32);
          for (int i = 0; i < chunk_values; i += 16)
            stream_or_store(to + 4 * i, _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(q + i)), step), nt);
        } else {
          for (int i = 0; i < chunk_values; i += 16)
            stream_or_store(to + 4 * i, values(p, _mm512_load_si512(q + i)), nt);
        }
        break;
      case Elements::f64: {
        const __m512d step = _mm512_set1_pd(p.value_step);
        for (int i = 0; i < chunk_values; i += 8) {
          const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(q + i));
          stream_or_store(to + 8 * i, _mm512_mul_pd(_mm512_cvtepi32_pd(v), step), nt);
        }
        break;
      }
      case Elements::exact32:
        for (int i = 0; i < chunk_values; i += 16) stream_or_store(to + 4 * i, _mm512_load_si512(q + i), nt);
        break;
      case Elements::exact_f32:
        for (int i = 0; i < chunk_values; i += 16)
          stream_or_store(to + 4 * i, order_flip32(_mm512_load_si512(q + i)), nt);
        break;
      default:
        for (int i = 0; i < chunk_values; i += 16) store_half(p, to + 2 * i, _mm512_load_si512(q + i));
    }
  }

  static void store_half(const Params& p, std::uint8_t* to, __m512i q) {
    __m256i h;
    if (p.shape.exact_only) {
      h = _mm512_cvtepi32_epi16(order_flip16(q));
    } else if (p.grid.dtype == DType::f16) {
      h = _mm512_cvtps_ph(values(p, q), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    } else {
      h = _mm512_cvtepi32_epi16(_mm512_srli_epi32(nearest_bf16(values(p, q)), 16));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), h);
  }

  static void stream_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
    std::memcpy(to, from, head);
    std::size_t i = head;
    for (; i + 64 <= n; i += 64) _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
    std::memcpy(to + i, from + i, n - i);
  }

  static void put_fill(const Params& p, void* y, int b, std::uint64_t marks, std::uint64_t value) {
    auto* to = static_cast<std::uint8_t*>(y) + static_cast<std::ptrdiff_t>(64 * b * p.shape.element_bytes);
    if (p.shape.element_bytes == 8) {
      const __m512i v = _mm512_set1_epi64(static_cast<long long>(value));
      for (int k = 0; k < 8; ++k) _mm512_mask_storeu_epi64(to + 64 * k, static_cast<__mmask8>(marks >> (8 * k)), v);
    } else if (p.shape.element_bytes == 4) {
      auto bits = static_cast<std::uint32_t>(value);
      if (p.shape.sum) bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(__builtin_bit_cast(double, value)));
      const __m512i v = _mm512_set1_epi32(static_cast<int>(bits));
      for (int k = 0; k < 4; ++k) _mm512_mask_storeu_epi32(to + 64 * k, static_cast<__mmask16>(marks >> (16 * k)), v);
    } else {
      const __m512i v = _mm512_set1_epi16(static_cast<short>(value));
      for (int k = 0; k < 2; ++k) _mm512_mask_storeu_epi16(to + 64 * k, static_cast<__mmask32>(marks >> (32 * k)), v);
    }
  }

  // ------------------------------------------------------------------------------------------- tables of codes

  static std::uint32_t equal_codes(const std::uint8_t* codes, std::uint8_t code) {
    return _mm256_cmpeq_epi8_mask(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)),
                                  _mm256_set1_epi8(static_cast<char>(code)));
  }

  static bool split_codes(const std::uint8_t* codes, std::uint8_t* dense, std::uint8_t* sparse, std::size_t& dense_sum,
                          std::size_t& sparse_sum, int& extended) {
    const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const __m256i w = _mm256_and_si256(c, _mm256_set1_epi8(31));
    __m256i s = _mm256_and_si256(_mm256_srli_epi16(c, 5), _mm256_set1_epi8(7));
    const __mmask32 special = _mm256_cmpeq_epi8_mask(w, _mm256_set1_epi8(31));
    s = _mm256_mask_mov_epi8(s, _mm256_cmpeq_epi8_mask(s, _mm256_set1_epi8(7)), w);
    if ((_mm256_cmpgt_epu8_mask(s, w) & ~special) != 0) return false;
    const __m256i d = _mm256_maskz_sub_epi8(~special, w, s);
    s = _mm256_maskz_mov_epi8(~special, s);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dense), d);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sparse), s);
    dense_sum = byte_sum(d);
    sparse_sum = byte_sum(s);
    extended = special != 0;
    return true;
  }
  static std::size_t byte_sum(__m256i v) {
    const __m256i x = _mm256_sad_epu8(v, _mm256_setzero_si256());
    const __m128i q = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return static_cast<std::size_t>(_mm_cvtsi128_si64(q) + _mm_extract_epi64(q, 1));
  }

  static std::uint8_t* copy(std::uint8_t* to, const std::uint8_t* from, std::ptrdiff_t n) {
    for (std::ptrdiff_t i = 0; i < n; i += 64) _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
    return to + n;
  }

  static std::uint64_t spread(std::uint8_t mask) { return _pdep_u64(mask, 0x0101010101010101ULL) * 255; }

  /// One sparse plane: its mask and its non-zero bytes.
  static void put_plane(Out& o, std::uint64_t plane) {
    const auto mask = static_cast<std::uint8_t>(_mm_test_epi8_mask(_mm_cvtsi64_si128(static_cast<long long>(plane)),
                                                                   _mm_cvtsi64_si128(static_cast<long long>(plane))));
    *o.masks++ = mask;
    store(o.bytes, _pext_u64(plane, spread(mask)));
    o.bytes += __builtin_popcount(mask);
  }
  static std::uint64_t get_plane(In& in) {
    const std::uint8_t mask = *in.masks++;
    const std::uint64_t plane = _pdep_u64(load<std::uint64_t>(in.bytes), spread(mask));
    in.bytes += __builtin_popcount(mask);
    return plane;
  }
};
