// AVX2 with FMA, BMI2, LZCNT and F16C (Haswell, Zen and later): bit matrices are transposed by exchanging bits between
// two registers, zero bytes dropped by shuffles looked up from the masks, residuals summed by products with triangles
// of ones.
//
// A block's 64 bytes lie in two registers. Where a byte lies has six bits: register, lane, and four within the lane.
// Each stands for one bit of the value's number (v5..v0, group of eight = v5 v4 v3) or, once exchanged, of the plane's
// (r2 r1 r0). Orders are written [register lane b3 b2 b1 b0].
#include "codec/slice/kernel_sets.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include <cstring>

#include "codec/slice/byte_tables.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#endif

namespace laconic::slice {
namespace {

#include "codec/slice/fast_codec.h"
// The policy's base uses the types above.
#include "codec/slice/avx2_policy.h"

/// 64 bytes.
struct Bytes64 {
  __m256i a, b;
};

/// Byte masks and multipliers.
struct Tables {
  alignas(64) std::uint8_t first[64 + 64];   // from byte 64 - n on: n ones, then zeros
  alignas(32) std::uint8_t triangle[2][32];  // sums of the first 4g..4g+3 bytes up to lane j

  constexpr Tables() : first(), triangle() {
    for (int i = 0; i < 64; ++i) first[i] = 255;
    for (int g = 0; g < 2; ++g)
      for (int j = 0; j < 8; ++j)
        for (int t = 0; t < 4; ++t) triangle[g][j * 4 + t] = 4 * g + t <= j;
  }
};
constexpr Tables tables;

/// Exchanges bits: bit position 2^k of the bytes with the register bit.
template <int K>
inline Bytes64 swap_bits(Bytes64 x) {
  constexpr int masks[] = {0, 0x55, 0x33, 0, 0x0F};
  const __m256i t =
      _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi16(x.a, K), x.b), _mm256_set1_epi8(static_cast<char>(masks[K])));
  return {_mm256_xor_si256(x.a, _mm256_slli_epi16(t, K)), _mm256_xor_si256(x.b, t)};
}

/// [r l x y b1 b0] to [y l r x b1 b0].
inline Bytes64 even_odd_dwords(Bytes64 x) {
  const __m256 a = _mm256_castsi256_ps(x.a);
  const __m256 b = _mm256_castsi256_ps(x.b);
  return {_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)), _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD))};
}
/// [r l x y b1 b0] to [x l y r b1 b0].
inline Bytes64 zip_dwords(Bytes64 x) { return {_mm256_unpacklo_epi32(x.a, x.b), _mm256_unpackhi_epi32(x.a, x.b)}; }
/// [r l x ...] to [x l r ...].
inline Bytes64 swap_halves(Bytes64 x) { return {_mm256_unpacklo_epi64(x.a, x.b), _mm256_unpackhi_epi64(x.a, x.b)}; }
/// [r l ...] to [l r ...].
inline Bytes64 swap_lanes(Bytes64 x) {
  return {_mm256_permute2x128_si256(x.a, x.b, 0x20), _mm256_permute2x128_si256(x.a, x.b, 0x31)};
}

/// [v5 v2 v1 v0 v4 v3] to planes [r2 r1 r0 v5 v4 v3].
inline Bytes64 planes_of_columns(Bytes64 x) {
  x = swap_bits<1>(even_odd_dwords(x));
  x = swap_bits<2>(even_odd_dwords(x));
  return swap_bits<4>(swap_lanes(x));
}

/// Planes [r2 r1 r0 v5 v4 v3] to [v0 v2 v1 v5 v4 v3], and back.
inline Bytes64 mixed_of_planes(Bytes64 x) {
  x = swap_lanes(swap_bits<4>(x));
  x = swap_halves(swap_bits<2>(x));
  return swap_bits<1>(x);
}
inline Bytes64 planes_of_mixed(Bytes64 x) {
  x = swap_halves(swap_bits<1>(x));
  x = swap_lanes(swap_bits<2>(x));
  return swap_bits<4>(x);
}

/// [v0 v2 v1 v5 v4 v3] to [v5 v2 v1 v0 v4 v3]: each dword holds one value of four consecutive groups.
inline Bytes64 columns_of_mixed(Bytes64 x) { return swap_halves(zip_dwords(x)); }

/// [v0 v2 v1 v5 v4 v3] to [v5 v2 v4 v3 v1 v0]: each dword holds four consecutive values.
inline Bytes64 quads_of_mixed(Bytes64 x) {
  x = {_mm256_unpacklo_epi8(x.a, x.b), _mm256_unpackhi_epi8(x.a, x.b)};
  return {_mm256_unpacklo_epi16(x.a, x.b), _mm256_unpackhi_epi16(x.a, x.b)};
}

inline __m256i zigzag_bytes(__m256i r) {
  return _mm256_xor_si256(_mm256_add_epi8(r, r), _mm256_cmpgt_epi8(_mm256_setzero_si256(), r));
}
inline __m256i signed_bytes(__m256i z) {
  const __m256i sign = _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_and_si256(z, _mm256_set1_epi8(1)));
  return _mm256_xor_si256(_mm256_and_si256(_mm256_srli_epi16(z, 1), _mm256_set1_epi8(127)), sign);
}

/// The planes among eight that are not stored sparsely: the run from the bottom with at least 7 of 8 bytes not zero.
inline int full_planes(std::uint64_t nonzero) {
  const std::uint64_t zeros = ~nonzero;
  const std::uint64_t two_zeros = zeros & ((zeros | 0x8080808080808080ULL) - 0x0101010101010101ULL);
  return static_cast<int>(_tzcnt_u64(two_zeros)) / 8;
}

inline std::uint64_t nonzero_bytes(Bytes64 x) {
  const __m256i zero = _mm256_setzero_si256();
  const auto a = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(x.a, zero)));
  const auto b = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(x.b, zero)));
  return ~(std::uint64_t{b} << 32 | a);
}

inline __m128i load64(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
inline void store64(void* p, __m128i v) { _mm_storel_epi64(static_cast<__m128i*>(p), v); }

struct Avx2 : Avx2Base {
  // ------------------------------------------------------------------------------------------- planes out

  /// Writes planes 0..7 of a group: the low `dense` as they are, then the others' non-zero bytes; `planes` count.
  __attribute__((always_inline)) static void write_planes(Out& o, Bytes64 plane, std::uint64_t nonzero, int planes,
                                                          int dense) {
    store256(o.dense, plane.a);
    store256(o.dense + 32, plane.b);
    const std::uint64_t sparse = nonzero >> (4 * dense) >> (4 * dense);
    store(o.masks, sparse);
    // The masks in their planes' places: those of dense planes are zero, so all eight can be written alike.
    const std::uint64_t mask = sparse << (4 * dense) << (4 * dense);
    const std::uint8_t* at = o.dense;
    std::uint8_t* to = o.bytes;
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      const std::uint64_t m = mask >> (8 * r) & 255;
      store64(to, _mm_shuffle_epi8(load64(at + 8 * r), load64(compress_shuffles.of(m))));
      to += _mm_popcnt_u64(m);
    }
    o.dense += 8 * dense;
    o.masks += planes - dense;
    o.bytes = to;
  }

  __attribute__((always_inline)) static Split put_narrow(Out& o, Bytes64 plane) {
    const std::uint64_t nonzero = nonzero_bytes(plane);
    const int w = 8 - static_cast<int>(_lzcnt_u64(nonzero)) / 8;
    int d = full_planes(nonzero);
    d = d > w ? w : d;
    if (w - d > 6) d = 0;
    write_planes(o, plane, nonzero, w, d);
    return {w, d};
  }

  /// Four columns of numbers below 256 as one of bytes.
  __attribute__((always_inline)) static __m256i merge(const __m256i* u) {
    return or_of(or_of(u[0], _mm256_slli_epi32(u[1], 8)),
                 or_of(_mm256_slli_epi32(u[2], 16), _mm256_slli_epi32(u[3], 24)));
  }

  __attribute__((noinline)) static Split put_wide(Out& o, const Block64& r) {
    Block64 z;
    __m256i any = _mm256_setzero_si256();
    for (int k = 0; k < 8; ++k) any = or_of(any, z.v[k] = zigzag(r.v[k]));
    const int groups = _mm256_testz_si256(any, _mm256_set1_epi32(static_cast<int>(0xFFFF0000U))) != 0 ? 2 : 4;
    Bytes64 plane[4];
    std::uint64_t nonzero[4];
    int w = 0;
    int full = 0;
    for (int g = 0; g < groups; ++g) {
      Block64 low;
      for (int k = 0; k < 8; ++k) {
        low.v[k] = _mm256_and_si256(z.v[k], _mm256_set1_epi32(255));
        z.v[k] = _mm256_srli_epi32(z.v[k], 8);
      }
      plane[g] = planes_of_columns({merge(low.v), merge(low.v + 4)});
      nonzero[g] = nonzero_bytes(plane[g]);
      if (nonzero[g] != 0) w = 8 * g + 8 - static_cast<int>(_lzcnt_u64(nonzero[g])) / 8;
      if (full == 8 * g) full += full_planes(nonzero[g]);
    }
    int d = full > w ? w : full;
    if (w - d > 6) d = 2 * d < w ? 0 : w - 6;
    for (int g = 0; 8 * g < w; ++g) {
      const int planes_here = w - 8 * g < 8 ? w - 8 * g : 8;
      const int dense_here = d - 8 * g < 0 ? 0 : d - 8 * g < planes_here ? d - 8 * g : planes_here;
      write_planes(o, plane[g], nonzero[g], planes_here, dense_here);
    }
    return {w, d};
  }

  __attribute__((always_inline)) static Split put(Out& o, const Block64& r) {
    // Biased by 128, a residual that fits a signed byte has no bits above the lowest eight.
    const __m256i bias = _mm256_set1_epi32(128);
    Block64 u;
    for (int k = 0; k < 8; ++k) u.v[k] = _mm256_add_epi32(r.v[k], bias);
    const __m256i any =
        or_of(or_of(or_of(u.v[0], u.v[1]), or_of(u.v[2], u.v[3])), or_of(or_of(u.v[4], u.v[5]), or_of(u.v[6], u.v[7])));
    if (__builtin_expect(_mm256_testz_si256(any, _mm256_set1_epi32(~255)) == 0, 0)) return put_wide(o, r);
    const __m256i high = _mm256_set1_epi8(static_cast<char>(0x80));
    return put_narrow(o, planes_of_columns({zigzag_bytes(_mm256_xor_si256(merge(u.v), high)),
                                            zigzag_bytes(_mm256_xor_si256(merge(u.v + 4), high))}));
  }

  // ------------------------------------------------------------------------------------------- planes in

  /// Up to eight planes.
  __attribute__((always_inline)) static Bytes64 read_planes(In& in, int dense, int sparse) {
    const std::uint64_t packed = _bzhi_u64(load<std::uint64_t>(in.masks), static_cast<unsigned>(8 * sparse));
    const std::uint64_t mask = packed << (4 * dense) << (4 * dense);
    const std::uint8_t* at = in.bytes;
    __m128i plane[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      const std::uint64_t m = mask >> (8 * r) & 255;
      plane[r] = _mm_shuffle_epi8(load64(at), load64(expand_shuffles.of(m)));
      at += _mm_popcnt_u64(m);
    }
    const auto four = [&](int r) {
      const __m128i low = _mm_unpacklo_epi64(plane[r], plane[r + 1]);
      return _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_unpacklo_epi64(plane[r + 2], plane[r + 3]), 1);
    };
    const std::uint8_t* valid = tables.first + 64 - 8 * dense;
    const Bytes64 x{or_of(four(0), _mm256_and_si256(load256(in.dense), load256(valid))),
                    or_of(four(4), _mm256_and_si256(load256(in.dense + 32), load256(valid + 32)))};
    in.dense += 8 * dense;
    in.masks += sparse;
    in.bytes = at;
    return x;
  }

  /// Zigzag residuals below 256 as bytes, [v0 v2 v1 v5 v4 v3].
  __attribute__((always_inline)) static Bytes64 read_mixed(In& in, int dense, int sparse) {
    const Bytes64 z = mixed_of_planes(read_planes(in, dense, sparse));
    return {signed_bytes(z.a), signed_bytes(z.b)};
  }

  __attribute__((noinline)) static Block64 get_wide(In& in, int dense, int sparse) {
    Block64 r;
    for (auto& v : r.v) v = _mm256_setzero_si256();
    const int w = dense + sparse;
    for (int g = 0; 8 * g < w; ++g) {
      const int planes_here = w - 8 * g < 8 ? w - 8 * g : 8;
      const int dense_here = dense - 8 * g < 0 ? 0 : dense - 8 * g < planes_here ? dense - 8 * g : planes_here;
      const Bytes64 c = columns_of_mixed(mixed_of_planes(read_planes(in, dense_here, planes_here - dense_here)));
      for (int k = 0; k < 8; ++k) {
        const __m256i byte =
            _mm256_and_si256(_mm256_srli_epi32(k < 4 ? c.a : c.b, 8 * (k % 4)), _mm256_set1_epi32(255));
        r.v[k] = or_of(r.v[k], _mm256_slli_epi32(byte, 8 * g));
      }
    }
    for (auto& v : r.v) {
      const __m256i sign = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(v, _mm256_set1_epi32(1)));
      v = _mm256_xor_si256(_mm256_srli_epi32(v, 1), sign);
    }
    return r;
  }

  static Block64 get(In& in, int dense, int sparse) {
    if (__builtin_expect(dense + sparse > 8, 0)) return get_wide(in, dense, sparse);
    const Bytes64 c = columns_of_mixed(read_mixed(in, dense, sparse));
    Block64 r;
    for (int k = 0; k < 8; ++k) r.v[k] = _mm256_srai_epi32(_mm256_slli_epi32(k < 4 ? c.a : c.b, 24 - 8 * (k % 4)), 24);
    return r;
  }

  /// Sums of residuals along a chunk.
  template <Predictor P>
  struct Chain {
    __m256i last;                            // all lanes: the integer before
    __m256i slope = _mm256_setzero_si256();  // all lanes: the difference before
    explicit Chain(std::int32_t base) : last(_mm256_set1_epi32(base)) {}

    static __m256i top(__m256i v) { return _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7)); }
    static __m256i prefix(__m256i v) {
      v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
      v = _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
      return _mm256_add_epi32(v, _mm256_shuffle_epi32(_mm256_permute2x128_si256(v, v, 0x08), 0xFF));
    }

    void next(In& in, int dense, int sparse, std::int32_t* q) {
      if (P != Predictor::second && dense + sparse == 0) {
        for (int k = 0; k < 8; ++k) store256(q + 8 * k, last);
        return;
      }
      if (P == Predictor::first && __builtin_expect(dense + sparse <= 8, 1)) return next_narrow(in, dense, sparse, q);
      const Block64 r = get(in, dense, sparse);
      for (int k = 0; k < 8; ++k) {
        __m256i v = r.v[k];
        if constexpr (P == Predictor::second) {
          v = _mm256_add_epi32(prefix(v), slope);
          slope = top(v);
        }
        v = P == Predictor::none ? _mm256_add_epi32(v, last) : _mm256_add_epi32(prefix(v), last);
        if constexpr (P != Predictor::none) last = top(v);
        store256(q + 8 * k, v);
      }
    }

    /// 8 prefix sums are two products of bytes with triangles of ones; the bytes come back from memory as broadcasts.
    __attribute__((always_inline)) void next_narrow(In& in, int dense, int sparse, std::int32_t* q) {
      alignas(32) std::int32_t four[16];
      const Bytes64 quads = quads_of_mixed(read_mixed(in, dense, sparse));
      store256(four, quads.a);
      store256(four + 8, quads.b);
      asm volatile("" ::: "memory");
      const __m256i low = load256(tables.triangle[0]);
      const __m256i high = load256(tables.triangle[1]);
      const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        const int at = k / 4 * 8 + k % 4;
        const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(low, _mm256_set1_epi32(four[at])),
                                               _mm256_maddubs_epi16(high, _mm256_set1_epi32(four[at + 4])));
        const __m256i sums = _mm256_madd_epi16(pairs, ones);
        store256(q + 8 * k, _mm256_add_epi32(sums, last));
        last = _mm256_add_epi32(last, top(sums));
      }
    }
  };

  // ------------------------------------------------------------------------------------------- sums of blocks

  /// The planes of one operand where the other's are all zero.
  static Split copy_block(In& in, int dense, int sparse, Out& o) {
    if (dense + sparse > 8) return put(o, get(in, dense, sparse));
    const std::uint64_t mask = _bzhi_u64(load<std::uint64_t>(in.masks), static_cast<unsigned>(8 * sparse));
    const auto n = _mm_popcnt_u64(mask);
    store256(o.dense, load256(in.dense));
    store256(o.dense + 32, load256(in.dense + 32));
    store(o.masks, mask);
    store256(o.bytes, load256(in.bytes));
    store256(o.bytes + 32, load256(in.bytes + 32));
    in.dense += 8 * dense;
    o.dense += 8 * dense;
    in.masks += sparse;
    o.masks += sparse;
    in.bytes += n;
    o.bytes += n;
    return {dense + sparse, dense};
  }

  static Split add_block(In& a, int da, int sa, In& b, int db, int sb, Out& o) {
    const int wa = da + sa;
    const int wb = db + sb;
    if (wa == 0 && wb == 0) return {0, 0};
    if (wb == 0) return copy_block(a, da, sa, o);
    if (wa == 0) return copy_block(b, db, sb, o);
    if (__builtin_expect(wa > 7 || wb > 7, 0)) {
      const Block64 ra = get(a, da, sa);
      return put(o, sum(ra, get(b, db, sb)));
    }
    // Both fit seven bits with sign, so the sum fits eight.
    const Bytes64 x = read_mixed(a, da, sa);
    const Bytes64 y = read_mixed(b, db, sb);
    return put_narrow(
        o, planes_of_mixed({zigzag_bytes(_mm256_add_epi8(x.a, y.a)), zigzag_bytes(_mm256_add_epi8(x.b, y.b))}));
  }

  /// One sparse plane: its mask and its non-zero bytes.
  static void put_plane(Out& o, std::uint64_t plane) {
    const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(plane));
    const auto zeros = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
    const auto mask = static_cast<std::uint8_t>(~zeros);
    *o.masks++ = mask;
    store64(o.bytes, _mm_shuffle_epi8(bytes, load64(compress_shuffles.of(mask))));
    o.bytes += _mm_popcnt_u64(mask);
  }
  static std::uint64_t get_plane(In& in) {
    const std::uint8_t mask = *in.masks++;
    const __m128i plane = _mm_shuffle_epi8(load64(in.bytes), load64(expand_shuffles.of(mask)));
    in.bytes += _mm_popcnt_u64(mask);
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(plane));
  }
};

const Kernels* found() { return FastCodec<Avx2>::kernels(); }

}  // namespace
}  // namespace laconic::slice

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace laconic::slice {

namespace {
/// What clang's __builtin_cpu_supports does not know.
bool have_f16c_and_lzcnt() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & bit_F16C) == 0) return false;
  return __get_cpuid(0x80000001U, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_LZCNT) != 0;
}
}  // namespace

const Kernels* avx2_kernels() {
  static const bool have = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                           __builtin_cpu_supports("popcnt") && have_f16c_and_lzcnt();
  return have ? found() : nullptr;
}

}  // namespace laconic::slice

#else

namespace laconic::slice {
const Kernels* avx2_kernels() { return nullptr; }
}  // namespace laconic::slice

#endif
