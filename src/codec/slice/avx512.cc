// AVX-512 without GFNI and VBMI (Skylake-X, Cascade Lake): bit matrices are transposed by exchanging bits at three
// distances, zero bytes dropped by shuffles looked up from the masks, residuals summed by products with triangles of
// ones.
#include "codec/slice/chunk_integers.h"
#include "codec/slice/kernel_sets.h"
#include "core/cache.h"
#include "core/one_nan.h"

#if defined(__x86_64__) && !defined(LACONIC_WITHOUT_AVX512)

#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "codec/slice/byte_tables.h"
#include "codec/slice/flush_subnormals.h"
#include "codec/slice/target_region.h"

LACONIC_TARGET_REGION("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi,bmi2,lzcnt,popcnt,fma,avx2,f16c")

namespace laconic::slice {
namespace {

#include "codec/slice/fast_codec.h"
// The policy's base uses the types above.
#include "codec/slice/avx512_policy.h"
#include "codec/slice/shuffled_planes.h"

/// Permutations and multipliers.
struct Tables {
  alignas(64) std::uint32_t from_packed[16];  // after the lane-wise packs: dwords of four values in order
  alignas(64) std::uint8_t pair_bytes[64];    // in each lane, byte 8g+r to 2r+g
  alignas(64) std::uint16_t to_planes[32];    // and then words, so that byte 8g+r comes to 8r+g; its own inverse
  alignas(64) std::uint8_t unpair_bytes[64];  // in each lane, byte 2r+g to 8g+r
  alignas(64) std::uint16_t from_planes[32];
  alignas(64) std::uint8_t triangle[4][64];  // byte 4g+t counts in the sums of lanes 4g+t and above
  alignas(64) std::uint8_t wedge[4][64];     // and as often as there are lanes from it on: sums of sums

  constexpr Tables() : from_packed(), pair_bytes(), to_planes(), unpair_bytes(), from_planes(), triangle(), wedge() {
    for (int k = 0; k < 4; ++k)
      for (int lane = 0; lane < 4; ++lane) from_packed[4 * k + lane] = static_cast<std::uint32_t>(4 * lane + k);
    for (int lane = 0; lane < 4; ++lane)
      for (int r = 0; r < 8; ++r) {
        for (int g = 0; g < 2; ++g) {
          pair_bytes[16 * lane + 2 * r + g] = static_cast<std::uint8_t>(8 * g + r);
          unpair_bytes[16 * lane + 8 * g + r] = static_cast<std::uint8_t>(2 * r + g);
        }
        to_planes[4 * r + lane] = static_cast<std::uint16_t>(8 * lane + r);
        from_planes[8 * lane + r] = static_cast<std::uint16_t>(4 * r + lane);
      }
    for (int g = 0; g < 4; ++g)
      for (int j = 0; j < 16; ++j)
        for (int t = 0; t < 4; ++t) {
          triangle[g][j * 4 + t] = 4 * g + t <= j;
          wedge[g][j * 4 + t] = static_cast<std::uint8_t>(4 * g + t <= j ? j - (4 * g + t) + 1 : 0);
        }
  }
};
constexpr Tables tables;

/// Exchanges the bits under the mask with those `distance` above them.
template <int distance>
inline __m512i exchange(__m512i x, long long mask) {
  const __m512i t = _mm512_ternarylogic_epi64(x, _mm512_srli_epi64(x, distance), _mm512_set1_epi64(mask), 0x28);
  return _mm512_ternarylogic_epi64(x, t, _mm512_slli_epi64(t, distance), 0x96);
}
/// Transposes the 8 x 8 bits of every qword.
inline __m512i transpose(__m512i x) {
  x = exchange<7>(x, 0x00AA00AA00AA00AALL);
  x = exchange<14>(x, 0x0000CCCC0000CCCCLL);
  return exchange<28>(x, 0x00000000F0F0F0F0LL);
}

/// Bytes in value order to planes, and back.
inline __m512i planes_of(__m512i bytes) {
  const __m512i pairs = _mm512_shuffle_epi8(transpose(bytes), _mm512_load_si512(tables.pair_bytes));
  return _mm512_permutexvar_epi16(_mm512_load_si512(tables.to_planes), pairs);
}
inline __m512i bytes_of(__m512i planes) {
  const __m512i pairs = _mm512_permutexvar_epi16(_mm512_load_si512(tables.from_planes), planes);
  return transpose(_mm512_shuffle_epi8(pairs, _mm512_load_si512(tables.unpair_bytes)));
}

inline __m512i signed_bytes(__m512i z) {
  const __m512i sign = _mm512_sub_epi8(_mm512_setzero_si512(), _mm512_and_si512(z, _mm512_set1_epi8(1)));
  return _mm512_ternarylogic_epi64(_mm512_srli_epi16(z, 1), _mm512_set1_epi8(127), sign, 0x6A);
}
/// 2 * bytes, inverted where `invert`: zigzag when those are the negative ones.
inline __m512i zigzag_bytes(__m512i bytes, __mmask64 invert) {
  const __m512i twice = _mm512_add_epi8(bytes, bytes);
  return _mm512_mask_sub_epi8(twice, invert, _mm512_set1_epi8(-1), twice);
}
inline __m512i zigzag16(__m512i v) { return _mm512_xor_si512(_mm512_slli_epi16(v, 1), _mm512_srai_epi16(v, 15)); }

struct Avx512 : Avx512Base {
  // ------------------------------------------------------------------------------------------- planes out

  static Split put_narrow(Out& o, __m512i plane) {
    const std::uint64_t nonzero = _mm512_test_epi8_mask(plane, plane);
    const int w = used_planes(nonzero);
    int d = full_planes(nonzero);
    d = d > w ? w : d;
    if (w - d > 6) d = 0;
    _mm512_storeu_si512(o.dense, plane);
    put_stored_planes(o, nonzero, w, d);
    return {w, d};
  }

  struct Put {
    Split split;
    Out out;
  };

  /// Planes of `groups` bytes of the zigzag residuals, lowest first.
  template <int groups>
  static Put put_groups(Out o, const __m512i* plane) {
    std::uint64_t nonzero[groups];
    int w = 0;
    int full = 0;
    for (int g = 0; g < groups; ++g) {
      nonzero[g] = _mm512_test_epi8_mask(plane[g], plane[g]);
      w = nonzero[g] != 0 ? 8 * g + used_planes(nonzero[g]) : w;
      full += full == 8 * g ? full_planes(nonzero[g]) : 0;
    }
    int d = full > w ? w : full;
    if (w - d > 6) d = 2 * d < w ? 0 : w - 6;
    for (int g = 0; g < groups; ++g) {
      _mm512_storeu_si512(o.dense, plane[g]);
      put_stored_planes(o, nonzero[g], below(w, g), below(d, g));
    }
    return {Split(w, d), o};
  }

  /// After two lane-wise packs.
  static __m512i planes_of_packed(__m512i packed) {
    return planes_of(_mm512_permutexvar_epi32(_mm512_load_si512(tables.from_packed), packed));
  }

  __attribute__((noinline)) static Put put_wide(Out o, __m512i r0, __m512i r1, __m512i r2, __m512i r3) {
    const __m512i bias = _mm512_set1_epi32(32768);
    const __m512i any = _mm512_or_si512(_mm512_or_si512(_mm512_add_epi32(r0, bias), _mm512_add_epi32(r1, bias)),
                                        _mm512_or_si512(_mm512_add_epi32(r2, bias), _mm512_add_epi32(r3, bias)));
    const __m512i low = _mm512_set1_epi16(255);
    __m512i plane[4];
    if (_mm512_test_epi32_mask(any, _mm512_set1_epi32(~0xFFFF)) == 0) {
      const __m512i a = zigzag16(_mm512_packs_epi32(r0, r1));
      const __m512i b = zigzag16(_mm512_packs_epi32(r2, r3));
      plane[0] = planes_of_packed(_mm512_packus_epi16(_mm512_and_si512(a, low), _mm512_and_si512(b, low)));
      plane[1] = planes_of_packed(_mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8)));
      return put_groups<2>(o, plane);
    }
    Block64 z{{zigzag(r0), zigzag(r1), zigzag(r2), zigzag(r3)}};
    const __m512i byte = _mm512_set1_epi32(255);
    for (auto& p : plane) {
      const __m512i a = _mm512_packus_epi32(_mm512_and_si512(z.v[0], byte), _mm512_and_si512(z.v[1], byte));
      const __m512i b = _mm512_packus_epi32(_mm512_and_si512(z.v[2], byte), _mm512_and_si512(z.v[3], byte));
      p = planes_of_packed(_mm512_packus_epi16(a, b));
      for (auto& v : z.v) v = _mm512_srli_epi32(v, 8);
    }
    return put_groups<4>(o, plane);
  }

  static Split put(Out& o, const Block64& r) {
    // Biased by 128, a residual that fits a signed byte has no bits above the lowest eight.
    const __m512i bias = _mm512_set1_epi32(128);
    const __m512i u0 = _mm512_add_epi32(r.v[0], bias);
    const __m512i u1 = _mm512_add_epi32(r.v[1], bias);
    const __m512i u2 = _mm512_add_epi32(r.v[2], bias);
    const __m512i u3 = _mm512_add_epi32(r.v[3], bias);
    const __m512i any = _mm512_or_si512(_mm512_ternarylogic_epi32(u0, u1, u2, 0xFE), u3);
    if (__builtin_expect(_mm512_test_epi32_mask(any, _mm512_set1_epi32(~255)) != 0, 0)) {
      const Put put = put_wide(o, r.v[0], r.v[1], r.v[2], r.v[3]);
      o = put.out;
      return put.split;
    }
    const __m512i packed = _mm512_packus_epi16(_mm512_packus_epi32(u0, u1), _mm512_packus_epi32(u2, u3));
    // The bias turned the sign bit around, and doubling drops it.
    const __mmask64 negative = _mm512_testn_epi8_mask(packed, _mm512_set1_epi8(static_cast<char>(0x80)));
    return put_narrow(o, planes_of_packed(zigzag_bytes(packed, negative)));
  }

  /// 64 bytes as eight planes. Byte r of what it returns tells which bytes of plane r are not zero.
  static std::uint64_t planes_of_bytes(const std::uint8_t* bytes, std::uint64_t* plane) {
    const __m512i p = planes_of(_mm512_loadu_si512(bytes));
    _mm512_storeu_si512(plane, p);
    return _mm512_test_epi8_mask(p, p);
  }
  static void bytes_of_planes(const std::uint64_t* plane, std::uint8_t* bytes) {
    _mm512_storeu_si512(bytes, bytes_of(_mm512_loadu_si512(plane)));
  }

  // ------------------------------------------------------------------------------------------- planes in

  /// Up to eight planes as 64 bytes in value order.
  static __m512i read_planes(In& in, int dense, int sparse) {
    const SparsePlanes s = get_sparse_planes(in, dense, sparse);
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(s.pair[0]), s.pair[1], 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(s.pair[2]), s.pair[3], 1);
    const __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    const __m512i plane =
        _mm512_mask_loadu_epi64(all, static_cast<__mmask8>((1U << static_cast<unsigned>(dense)) - 1), in.dense);
    in.dense += 8 * dense;
    return bytes_of(plane);
  }

  static __m512i read_group(In& in, int dense, int sparse, int g) {
    const int dense_here = below(dense, g);
    return read_planes(in, dense_here, below(dense + sparse, g) - dense_here);
  }

  struct Got {
    Block64 block;
    In in;
  };

  /// Half of the values as 16-bit numbers of two bytes.
  template <int half>
  static __m512i words(__m512i low, __m512i high) {
    return _mm512_or_si512(_mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(low, half)),
                           _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(high, half)), 8));
  }
  static Block64 widen_words(__m512i a, __m512i b) {
    return {{_mm512_cvtepi16_epi32(_mm512_castsi512_si256(a)), _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(a, 1)),
             _mm512_cvtepi16_epi32(_mm512_castsi512_si256(b)), _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(b, 1))}};
  }
  static __m512i unzigzag16(__m512i v) {
    const __m512i sign = _mm512_sub_epi16(_mm512_setzero_si512(), _mm512_and_si512(v, _mm512_set1_epi16(1)));
    return _mm512_xor_si512(_mm512_srli_epi16(v, 1), sign);
  }

  __attribute__((noinline)) static Got get_wide(In in, int dense, int sparse) {
    const __m512i first = read_group(in, dense, sparse, 0);
    const __m512i second = read_group(in, dense, sparse, 1);
    const __m512i a = words<0>(first, second);
    const __m512i b = words<1>(first, second);
    if (__builtin_expect(dense + sparse <= 16, 1)) return {widen_words(unzigzag16(a), unzigzag16(b)), in};
    const __m512i third = read_group(in, dense, sparse, 2);
    const __m512i fourth = read_group(in, dense, sparse, 3);
    Block64 r = widen_words(a, b);
    const Block64 upper = widen_words(words<0>(third, fourth), words<1>(third, fourth));
    for (int k = 0; k < 4; ++k) {
      const __m512i v = _mm512_mask_blend_epi16(0xAAAAAAAAU, r.v[k], _mm512_slli_epi32(upper.v[k], 16));
      const __m512i sign = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_and_si512(v, _mm512_set1_epi32(1)));
      r.v[k] = _mm512_xor_si512(_mm512_srli_epi32(v, 1), sign);
    }
    return {r, in};
  }

  static Block64 get(In& in, int dense, int sparse) {
    if (__builtin_expect(dense + sparse > 8, 0)) {
      const Got got = get_wide(in, dense, sparse);
      in = got.in;
      return got.block;
    }
    const __m512i bytes = signed_bytes(read_planes(in, dense, sparse));
    return {{_mm512_cvtepi8_epi32(_mm512_castsi512_si128(bytes)),
             _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 1)),
             _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 2)),
             _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 3))}};
  }

  /// Sums of residuals along a chunk.
  template <Predictor P>
  struct Chain {
    __m512i last;                            // all lanes: the integer before
    __m512i slope = _mm512_setzero_si512();  // all lanes: the difference before
    explicit Chain(std::int32_t base) : last(_mm512_set1_epi32(base)) {}

    static __m512i top(__m512i v) { return _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v); }
    static __m512i prefix(__m512i v) {
      const __m512i z = _mm512_setzero_si512();
      v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, z, 15));
      v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, z, 14));
      v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, z, 12));
      return _mm512_add_epi32(v, _mm512_alignr_epi32(v, z, 8));
    }

    /// Hands the next 64 integers to `sink`, in four registers.
    template <class Sink>
    void next(In& in, int dense, int sparse, Sink sink) {
      if (P != Predictor::second && dense + sparse == 0) {
        for (int k = 0; k < 4; ++k) sink.put(k, last);
        return;
      }
      if (P != Predictor::none && __builtin_expect(dense + sparse <= 8, 1)) return next_narrow(in, dense, sparse, sink);
      const Block64 r = get(in, dense, sparse);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        __m512i v = r.v[k];
        if constexpr (P == Predictor::second) {
          v = _mm512_add_epi32(prefix(v), slope);
          slope = top(v);
        }
        v = P == Predictor::none ? _mm512_add_epi32(v, last) : _mm512_add_epi32(prefix(v), last);
        if constexpr (P != Predictor::none) last = top(v);
        sink.put(k, v);
      }
    }

    /// 16 sums (or sums of sums) are four products of bytes with tables, which fit 16 bits; the bytes come back from
    /// memory as broadcasts.
    template <class Sink>
    void next_narrow(In& in, int dense, int sparse, Sink sink) {
      alignas(64) std::int32_t four[16];
      _mm512_store_si512(four, signed_bytes(read_planes(in, dense, sparse)));
      asm volatile("" : "+m"(four));
      const auto& table = P == Predictor::first ? tables.triangle : tables.wedge;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        __m512i part[4];
        for (int g = 0; g < 4; ++g)
          part[g] = _mm512_maddubs_epi16(_mm512_load_si512(table[g]), _mm512_set1_epi32(four[4 * k + g]));
        const __m512i pairs = _mm512_add_epi16(_mm512_add_epi16(part[0], part[1]), _mm512_add_epi16(part[2], part[3]));
        const __m512i a = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
        // Only the additions to last and slope wait for the sixteen values before.
        if constexpr (P == Predictor::first) {
          sink.put(k, _mm512_add_epi32(a, last));
          last = _mm512_add_epi32(last, top(a));
        } else {
          const __m512i steps = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
          const __m512i end = top(a);
          sink.put(k, _mm512_add_epi32(_mm512_add_epi32(a, last), _mm512_mullo_epi32(slope, steps)));
          last = _mm512_add_epi32(last, _mm512_add_epi32(end, _mm512_slli_epi32(slope, 4)));
          slope = _mm512_add_epi32(slope, _mm512_sub_epi32(end, _mm512_permutexvar_epi32(_mm512_set1_epi32(14), a)));
        }
      }
    }
    void next(In& in, int dense, int sparse, std::int32_t* q) { next(in, dense, sparse, ToIntegers{q}); }
  };

  // ------------------------------------------------------------------------------------------- sums of blocks

  static std::size_t count_bits(const std::uint8_t* masks, std::size_t n) {
    std::size_t total = 0;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) total += static_cast<std::size_t>(_mm_popcnt_u64(load<std::uint64_t>(masks + i)));
    const std::uint64_t rest = _bzhi_u64(load<std::uint64_t>(masks + i), static_cast<unsigned>(8 * (n - i)));
    return total + static_cast<std::size_t>(_mm_popcnt_u64(rest));
  }

  static bool look_up_codes(const std::uint8_t* at, std::uint32_t planes, std::uint32_t dictionary,
                            std::uint8_t* codes) {
    __m256i index = _mm256_setzero_si256();
    for (std::uint32_t j = 0; j < planes; ++j)
      index =
          _mm256_or_si256(index, _mm256_maskz_set1_epi8(load<std::uint32_t>(at + 4 * j), static_cast<char>(1 << j)));
    if (_mm256_cmpge_epu8_mask(index, _mm256_set1_epi8(static_cast<char>(dictionary))) != 0) return false;
    const __m256i entries =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 4 * planes)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_shuffle_epi8(entries, index));
    return true;
  }
};

/// Sums as AVX2 forms them: planes by logic alone gain little from longer registers without VBMI.
const Kernels* found(const Kernels& avx2) {
  static const Kernels k{FastCodec<Avx512>::encode,
                         FastCodec<Avx512>::decode,
                         FastCodec<Avx512>::encode_decode,
                         FastCodec<Avx512>::on_grid,
                         avx2.add,
                         avx2.encode_add,
                         avx2.sum,
                         avx2.sums_fetch,
                         avx2.room_fetch};
  return &k;
}

}  // namespace
}  // namespace laconic::slice

LACONIC_TARGET_REGION_END

namespace laconic::slice {

const Kernels* avx512_kernels() {
  static const bool have = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("bmi2");
  const Kernels* avx2 = avx2_kernels();
  return have && avx2 != nullptr ? found(*avx2) : nullptr;
}

}  // namespace laconic::slice

#else

namespace laconic::slice {
const Kernels* avx512_kernels() { return nullptr; }
}  // namespace laconic::slice

#endif
