// What the AVX2 set does apart from its plane coder: elements <-> integers, residuals, the choice of a predictor,
// tables of codes. Included inside a target region and an anonymous namespace, after fast_codec.h's types.

/// The integers of one block: 64 values in eight registers.
struct Block64 {
  __m256i v[8];
};

inline __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void store256(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

#include "codec/slice/avx2_quantise.h"

/// See avx512_sinks.h.
template <class Value>
void stream_or_store(void* at, Value v, bool stream) {
  if (stream) {
    _mm256_stream_si256(static_cast<__m256i*>(at), (__m256i)v);
  } else {
    __builtin_prefetch(static_cast<char*>(at) + 2048, 1);
    store256(at, (__m256i)v);
  }
}

/// From memory that is one instruction, from a register two: hence the reference.
inline __m256i all_bytes(const std::uint8_t& n) { return _mm256_set1_epi8(static_cast<char>(n)); }

inline __m256i zigzag(__m256i v) { return _mm256_xor_si256(_mm256_slli_epi32(v, 1), _mm256_srai_epi32(v, 31)); }

inline __m256i or_of(__m256i a, __m256i b) { return _mm256_or_si256(a, b); }

/// The width in bits of each lane, as an unsigned number: the exponent of a float, made from the topmost bit alone so
/// that nothing rounds up.
inline __m256i bit_widths(__m256i v) {
  const __m256i below_sign = _mm256_srli_epi32(_mm256_srai_epi32(v, 31), 1);
  const __m256i top = _mm256_andnot_si256(or_of(_mm256_srli_epi32(v, 1), below_sign), v);
  const __m256i exponent =
      _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(top)), 23), _mm256_set1_epi32(255));
  return _mm256_max_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(126)), _mm256_setzero_si256());
}

inline int lane_sum(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}

/// All ones in the 16-bit, 32-bit or 64-bit lanes whose bit is set.
inline __m256i lanes16(std::uint64_t bits) {
  const __m256i each = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768);
  return _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(static_cast<short>(bits)), each), each);
}
inline __m256i lanes32(std::uint64_t bits) {
  const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits)), each), each);
}
inline __m256i lanes64(std::uint64_t bits) {
  const __m256i each = _mm256_setr_epi64x(1, 2, 4, 8);
  return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(static_cast<long long>(bits)), each), each);
}

/// Everything of the policy but the plane coder.
struct Avx2Base {
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
        return quantise_all<Quantiser32<Elements::f32>>(p, x, q);
      case Elements::f16:
        return quantise_all<Quantiser32<Elements::f16>>(p, x, q);
      case Elements::bf16:
        return quantise_all<Quantiser32<Elements::bf16>>(p, x, q);
      case Elements::f64:
        return quantise_all<Quantiser64>(p, x, q);
      case Elements::exact32:
        std::memcpy(q, x, 4 * chunk_values);
        return true;
      case Elements::exact_f32:
        for (int i = 0; i < chunk_values; i += 8)
          store256(q + i, order_flip32(load256(static_cast<const std::int32_t*>(x) + i)));
        return true;
      case Elements::exact_f16:
        for (int i = 0; i < chunk_values; i += 8)
          store256(q + i, order_flip16(_mm256_cvtepi16_epi32(load128(static_cast<const std::uint16_t*>(x) + i))));
        return true;
    }
    return false;
  }

  static void find_marks(const Params& p, const void* x, std::uint64_t* marks) {
    const FlushSubnormals guard;
    switch (elements_of(p)) {
      case Elements::f64:
        return quantise_marks(Quantiser64(p), x, marks);
      case Elements::f16:
        return quantise_marks(Quantiser32<Elements::f16>(p), x, marks);
      case Elements::bf16:
        return quantise_marks(Quantiser32<Elements::bf16>(p), x, marks);
      default:
        return quantise_marks(Quantiser32<Elements::f32>(p), x, marks);
    }
  }

  static bool marked_equal(const void* x, const std::uint64_t* marks, std::uint64_t value, int bytes) {
    for (int b = 0; b < chunk_blocks; ++b) {
      if (marks[b] == 0) continue;
      __m256i other = _mm256_setzero_si256();
      const auto* at = static_cast<const std::uint8_t*>(x) + static_cast<std::ptrdiff_t>(block_values * b * bytes);
      const int lanes = 32 / bytes;
      for (int i = 0; i < block_values; i += lanes) {
        const __m256i v = load256(at + i * bytes);
        const std::uint64_t m = marks[b] >> i;
        const __m256i equal = bytes == 4   ? _mm256_cmpeq_epi32(v, _mm256_set1_epi32(static_cast<int>(value)))
                              : bytes == 8 ? _mm256_cmpeq_epi64(v, _mm256_set1_epi64x(static_cast<long long>(value)))
                                           : _mm256_cmpeq_epi16(v, _mm256_set1_epi16(static_cast<short>(value)));
        const __m256i marked = bytes == 4 ? lanes32(m) : bytes == 8 ? lanes64(m) : lanes16(m);
        other = or_of(other, _mm256_andnot_si256(equal, marked));
      }
      if (_mm256_testz_si256(other, other) == 0) return false;
    }
    return true;
  }

  /// Which of 64 integers differ from the one before.
  static std::uint64_t changes(const std::int32_t* block) {
    std::uint64_t equal = 0;
    for (int k = 0; k < 8; ++k) {
      const __m256i same = _mm256_cmpeq_epi32(load256(block + 8 * k), load256(block + 8 * k - 1));
      equal |= static_cast<std::uint64_t>(_mm256_movemask_ps(_mm256_castsi256_ps(same))) << (8 * k);
    }
    return ~equal;
  }

  static bool constant(const std::int32_t* q) {
    if (q[0] != q[chunk_values - 1] || q[0] != q[chunk_values / 2] || q[0] != q[chunk_values / 3]) return false;
    const __m256i first = _mm256_set1_epi32(q[0]);
    for (int i = 0; i < chunk_values; i += 64) {
      __m256i other = _mm256_setzero_si256();
      for (int k = 0; k < 8; ++k) other = or_of(other, _mm256_xor_si256(first, load256(q + i + 8 * k)));
      if (_mm256_testz_si256(other, other) == 0) return false;
    }
    return true;
  }

  /// The sampled mean of q, biased as they are.
  static std::int32_t mean(const std::int32_t* q, std::int32_t bias) {
    __m256i sum = _mm256_setzero_si256();
    for (const int b : {4, 12, 20, 28})
      for (int k = 0; k < 8; ++k) sum = _mm256_add_epi32(sum, load256(q + 64 * b + 8 * k));
    const auto unbiased = static_cast<std::uint32_t>(lane_sum(sum)) - (static_cast<std::uint32_t>(bias) << 8);
    return (static_cast<std::int32_t>(unbiased + 128) >> 8) + bias;
  }

  template <Predictor P>
  __attribute__((always_inline)) static Block64 residual(const std::int32_t* q, std::int32_t base) {
    Block64 r;
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      const __m256i c = load256(q + 8 * k);
      if constexpr (P == Predictor::none) {
        r.v[k] = _mm256_sub_epi32(c, _mm256_set1_epi32(base));
      } else {
        const __m256i one = load256(q + 8 * k - 1);
        r.v[k] = _mm256_sub_epi32(c, one);
        if constexpr (P == Predictor::second)
          r.v[k] = _mm256_sub_epi32(r.v[k], _mm256_sub_epi32(one, load256(q + 8 * k - 2)));
      }
    }
    return r;
  }

  /// The sum of the bit widths of a block's eight groups of eight zigzag residuals, spread over the lanes.
  static __m256i group_widths(const Block64& r) {
    __m256i four[4];
    for (int k = 0; k < 4; ++k) {
      const __m256i a = zigzag(r.v[2 * k]);
      const __m256i b = zigzag(r.v[2 * k + 1]);
      four[k] = or_of(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    }
    const __m256i low = or_of(_mm256_unpacklo_epi64(four[0], four[1]), _mm256_unpackhi_epi64(four[0], four[1]));
    const __m256i high = or_of(_mm256_unpacklo_epi64(four[2], four[3]), _mm256_unpackhi_epi64(four[2], four[3]));
    return bit_widths(or_of(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31)));
  }

  static Choice<std::int32_t> choose(const Integers& q, std::int32_t bias) {
    const std::int32_t m = mean(q.q, bias);
    __m256i widths[3] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    for (const int b : {4, 20}) {
      const std::int32_t* at = q.q + 64 * b;
      widths[0] = _mm256_add_epi32(widths[0], group_widths(residual<Predictor::none>(at, m)));
      widths[1] = _mm256_add_epi32(widths[1], group_widths(residual<Predictor::first>(at, 0)));
      widths[2] = _mm256_add_epi32(widths[2], group_widths(residual<Predictor::second>(at, 0)));
    }
    const int none = lane_sum(widths[0]);
    const int first = lane_sum(widths[1]);
    const int second = lane_sum(widths[2]);
    Choice<std::int32_t> c{Predictor::first, q.q[0]};
    int best = first;
    if (none < best) {
      c = {Predictor::none, m};
      best = none;
    }
    if (second < best) c = {Predictor::second, q.q[0]};
    return c;
  }

  static Block64 sum(const Block64& a, const Block64& b) {
    Block64 s;
    for (int k = 0; k < 8; ++k) s.v[k] = _mm256_add_epi32(a.v[k], b.v[k]);
    return s;
  }

  static void broadcast(std::int32_t v, std::int32_t* q) {
    for (int i = 0; i < chunk_values; i += 8) store256(q + i, _mm256_set1_epi32(v));
  }

  // ------------------------------------------------------------------------------------------- integers -> elements

  /// 8 values as f32: one rounding of q * step / divisor.
  static __m256 values(const Params& p, __m256i q) {
    if (p.narrow_value) return _mm256_mul_ps(_mm256_cvtepi32_ps(q), _mm256_set1_ps(p.step32));
    const __m256d step = _mm256_set1_pd(p.value_step);
    const __m128 low = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(q)), step));
    const __m128 high = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(q, 1)), step));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
  }

  static void dequantise(const Params& p, const std::int32_t* q, void* y, bool stream) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(y) % 32 == 0;
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
          const __m256 step = _mm256_set1_ps(p.step32);
          for (int i = 0; i < chunk_values; i += 8)
            stream_or_store(to + 4 * i, _mm256_mul_ps(_mm256_cvtepi32_ps(load256(q + i)), step), nt);
        } else {
          for (int i = 0; i < chunk_values; i += 8) stream_or_store(to + 4 * i, values(p, load256(q + i)), nt);
        }
        break;
      case Elements::f64: {
        const __m256d step = _mm256_set1_pd(p.value_step);
        for (int i = 0; i < chunk_values; i += 4)
          stream_or_store(to + 8 * i, _mm256_mul_pd(_mm256_cvtepi32_pd(load128(q + i)), step), nt);
        break;
      }
      case Elements::exact32:
        for (int i = 0; i < chunk_values; i += 8) stream_or_store(to + 4 * i, load256(q + i), nt);
        break;
      case Elements::exact_f32:
        for (int i = 0; i < chunk_values; i += 8) stream_or_store(to + 4 * i, order_flip32(load256(q + i)), nt);
        break;
      default:
        for (int i = 0; i < chunk_values; i += 8) store_half(p, to + 2 * i, load256(q + i));
    }
  }

  /// The low half of every lane.
  static __m128i low_halves(__m256i v) {
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xFFFF));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08));
  }

  static void store_half(const Params& p, std::uint8_t* to, __m256i q) {
    __m128i h;
    if (p.shape.exact_only) {
      h = low_halves(order_flip16(q));
    } else if (p.grid.dtype == DType::f16) {
      h = _mm256_cvtps_ph(values(p, q), _MM_FROUND_TO_NEAREST_INT);
    } else {
      h = low_halves(_mm256_srli_epi32(nearest_bf16(values(p, q)), 16));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), h);
  }

  static void stream_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    const std::size_t head = (32 - reinterpret_cast<std::uintptr_t>(to) % 32) % 32;
    std::memcpy(to, from, head);
    std::size_t i = head;
    for (; i + 32 <= n; i += 32) _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), load256(from + i));
    std::memcpy(to + i, from + i, n - i);
  }

  static void put_fill(const Params& p, void* y, int b, std::uint64_t marks, std::uint64_t value) {
    const int bytes = p.shape.element_bytes;
    auto* to = static_cast<std::uint8_t*>(y) + static_cast<std::ptrdiff_t>(block_values * b * bytes);
    if (bytes == 4 && p.shape.sum)
      value = __builtin_bit_cast(std::uint32_t, static_cast<float>(__builtin_bit_cast(double, value)));
    const __m256i v = bytes == 8   ? _mm256_set1_epi64x(static_cast<long long>(value))
                      : bytes == 4 ? _mm256_set1_epi32(static_cast<int>(value))
                                   : _mm256_set1_epi16(static_cast<short>(value));
    for (int i = 0; i < block_values; i += 32 / bytes) {
      const std::uint64_t m = marks >> i;
      const __m256i marked = bytes == 8 ? lanes64(m) : bytes == 4 ? lanes32(m) : lanes16(m);
      store256(to + i * bytes, _mm256_blendv_epi8(load256(to + i * bytes), v, marked));
    }
  }

  // ------------------------------------------------------------------------------------------- tables of codes

  /// Bit c of the set: some code is c.
  static void find_set(const std::uint8_t* codes, std::uint64_t* present) {
    const __m256i one = _mm256_set1_epi64x(1);
    const __m256i low = _mm256_set1_epi64x(255);
    const __m256i first = _mm256_setr_epi64x(0, 64, 128, 192);
    __m256i set[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
#pragma GCC unroll 32
    for (int b = 0; b < chunk_blocks; ++b) {
      const __m256i c = _mm256_and_si256(all_bytes(codes[b]), low);
      set[b % 2] =
          or_of(set[b % 2], _mm256_sllv_epi64(one, _mm256_sub_epi64(c, first)));  // nothing if that is not 0..63
    }
    store256(present, or_of(set[0], set[1]));
  }

  /// Of each code its index into the dictionary, as four index planes.
  static void put_indices(const std::uint8_t* codes, const std::uint8_t* dictionary, int k, std::uint8_t* to) {
    const __m256i signs = _mm256_set1_epi8(-128);
    const __m256i c = _mm256_xor_si256(load256(codes), signs);
    __m256i index = _mm256_setzero_si256();
    for (int i = 0; i < k; ++i)
      index = _mm256_sub_epi8(index, _mm256_cmpgt_epi8(c, _mm256_set1_epi8(static_cast<char>(dictionary[i] ^ 128))));
    for (int j = 0; j < 4; ++j) store(to + 4 * j, _mm256_movemask_epi8(_mm256_slli_epi16(index, 7 - j)));
  }

  static bool split_codes(const std::uint8_t* codes, std::uint8_t* dense, std::uint8_t* sparse, std::size_t& dense_sum,
                          std::size_t& sparse_sum, int& extended) {
    const __m256i c = load256(codes);
    const __m256i w = _mm256_and_si256(c, _mm256_set1_epi8(31));
    const __m256i top = _mm256_and_si256(_mm256_srli_epi16(c, 5), _mm256_set1_epi8(7));
    const __m256i special = _mm256_cmpeq_epi8(w, _mm256_set1_epi8(31));
    const __m256i s = _mm256_blendv_epi8(top, w, _mm256_cmpeq_epi8(top, _mm256_set1_epi8(7)));
    const __m256i more_sparse_than_planes = _mm256_andnot_si256(special, _mm256_cmpgt_epi8(s, w));
    if (_mm256_testz_si256(more_sparse_than_planes, more_sparse_than_planes) == 0) return false;
    const __m256i of_planes = _mm256_andnot_si256(special, _mm256_sub_epi8(w, s));
    const __m256i of_sparse = _mm256_andnot_si256(special, s);
    store256(dense, of_planes);
    store256(sparse, of_sparse);
    dense_sum = byte_sum(of_planes);
    sparse_sum = byte_sum(of_sparse);
    extended = _mm256_movemask_epi8(special) != 0;
    return true;
  }
  static std::size_t byte_sum(__m256i v) {
    const __m256i x = _mm256_sad_epu8(v, _mm256_setzero_si256());
    const __m128i q = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return static_cast<std::size_t>(_mm_cvtsi128_si64(q) + _mm_extract_epi64(q, 1));
  }

  static bool look_up_codes(const std::uint8_t* at, std::uint32_t planes, std::uint32_t dictionary,
                            std::uint8_t* codes) {
    const __m256i byte_of = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit_of = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
    __m256i index = _mm256_setzero_si256();
    for (std::uint32_t j = 0; j < planes; ++j) {
      const __m256i spread =
          _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(load<std::uint32_t>(at + 4 * j))), byte_of);
      const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit_of), bit_of);
      index = or_of(index, _mm256_and_si256(set, _mm256_set1_epi8(static_cast<char>(1 << j))));
    }
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(dictionary)), index)) != -1)
      return false;
    store256(codes, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(at + 4 * planes)), index));
    return true;
  }

  static std::size_t count_bits(const std::uint8_t* masks, std::size_t n) {
    std::size_t total = 0;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) total += static_cast<std::size_t>(_mm_popcnt_u64(load<std::uint64_t>(masks + i)));
    const std::uint64_t rest = _bzhi_u64(load<std::uint64_t>(masks + i), static_cast<unsigned>(8 * (n - i)));
    return total + static_cast<std::size_t>(_mm_popcnt_u64(rest));
  }

  static std::uint8_t* copy(std::uint8_t* to, const std::uint8_t* from, std::ptrdiff_t n) {
    for (std::ptrdiff_t i = 0; i < n; i += 32) store256(to + i, load256(from + i));
    return to + n;
  }
};
