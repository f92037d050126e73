// What AVX-512 sets share: elements <-> integers, residuals, the choice of a predictor, tables of codes. Included
// inside a target region and an anonymous namespace, after fast_codec.h's types. The plane coder is what the sets
// differ in.

/// The integers of one block: 64 values in four registers.
struct Block64 {
  __m512i v[4];
};

#include "codec/slice/avx512_choice.h"
#include "codec/slice/avx512_quantise.h"
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
        return Quantiser32<Elements::f16>(p).marks(p, x, marks, q);
      case Elements::bf16:
        return Quantiser32<Elements::bf16>(p).marks(p, x, marks, q);
      default:
        return Quantiser32<Elements::f32>(p).marks(p, x, marks, q);
    }
  }

  /// As FastCodec::hold(). `held`: what marks at the beginning repeat.
  static void hold(std::int32_t* q, const std::uint64_t* marks, std::int32_t held) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i up_to_lane = _mm512_sub_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(2), lanes), _mm512_set1_epi32(1));
    __m512i last = _mm512_set1_epi32(held);
    for (int b = 0; b < chunk_blocks; ++b) {
      std::int32_t* block = q + 64 * b;
      if (marks[b] == 0) {
        last = _mm512_set1_epi32(block[63]);
        continue;
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const auto kept = static_cast<int>(~marks[b] >> (16 * k) & 0xFFFF);
        const __m512i before = _mm512_and_si512(_mm512_set1_epi32(kept), up_to_lane);
        const __m512i nearest = _mm512_sub_epi32(_mm512_set1_epi32(31), _mm512_lzcnt_epi32(before));
        last = _mm512_mask_permutexvar_epi32(last, _mm512_test_epi32_mask(before, before), nearest,
                                             _mm512_load_si512(block + 16 * k));
        _mm512_store_si512(block + 16 * k, last);
        last = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), last);
      }
    }
  }

  /// Which of a block's integers differ from the one before.
  static std::uint64_t changes(const std::int32_t* block) {
    std::uint64_t changed = 0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k)
      changed |= std::uint64_t{_mm512_cmpneq_epi32_mask(_mm512_load_si512(block + 16 * k),
                                                        _mm512_loadu_si512(block + 16 * k - 1))}
                 << (16 * k);
    return changed;
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
    return _mm_cvtsi128_si32(_mm512_castsi512_si128(sample_of(q).mean(bias)));
  }
  static ChoiceSample sample_of(const std::int32_t* q) {
    return ChoiceSample([&](int i) { return _mm512_load_si512(q + i); });
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

  static Choice<std::int32_t> choose(const Integers& q, std::int32_t bias) { return sample_of(q.q).choose(bias); }

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

  /// See Avx2Base.
  static void put_indices(const std::uint8_t* codes, const std::uint8_t* dictionary, int k, std::uint8_t* to) {
    const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    __m256i index = _mm256_setzero_si256();
    for (int i = 0; i < k; ++i) {
      const __mmask32 above = _mm256_cmpgt_epu8_mask(c, _mm256_set1_epi8(static_cast<char>(dictionary[i])));
      index = _mm256_mask_add_epi8(index, above, index, _mm256_set1_epi8(1));
    }
    for (int j = 0; j < 4; ++j) store(to + 4 * j, _mm256_movepi8_mask(_mm256_slli_epi16(index, 7 - j)));
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
