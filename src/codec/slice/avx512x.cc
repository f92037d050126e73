// AVX-512 with GFNI, VBMI, VBMI2, BITALG and VNNI (Ice Lake, Zen 4 and later): bit matrices are transposed by
// GF2P8AFFINEQB, zero bytes dropped by VPCOMPRESSB, residuals of up to 15 planes summed in fours by VPDPBUSD.
#include "codec/slice/chunk_integers.h"
#include "codec/slice/kernel_sets.h"
#include "codec/slice/scratch.h"
#include "core/cache.h"
#include "core/one_nan.h"

#if defined(__x86_64__) && !defined(LACONIC_WITHOUT_AVX512)

#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "codec/slice/flush_subnormals.h"
#include "codec/slice/target_region.h"

LACONIC_TARGET_REGION(
    "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vbmi,avx512vbmi2,avx512bitalg,avx512vpopcntdq,avx512vnni,"
    "gfni,bmi,bmi2,lzcnt,popcnt,fma,avx2,f16c")

namespace laconic::slice {
namespace {

#include "codec/slice/fast_codec.h"
#include "codec/slice/fast_sums.h"
#include "codec/slice/fast_sums_many.h"
// The policy's base uses the types above.
#include "codec/slice/avx512_policy.h"
#include "codec/slice/avx512x_tables.h"
// Reading uses the tables.
#include "codec/slice/avx512x_reader.h"

struct Avx512xPlanes : Avx512xReader {
  // ------------------------------------------------------------------------------------------- planes out

  /// How many planes from the bottom have at least 7 non-zero bytes; byte r of `nonzero` tells those of plane r. A byte
  /// of the complement with two bits or more keeps one when its lowest is cleared; bit 7 stops borrows between bytes.
  static int full_planes(std::uint64_t nonzero) {
    const std::uint64_t zero = ~nonzero;
    const std::uint64_t sparse = ((zero | 0x8080808080808080ULL) - 0x0101010101010101ULL) & zero;
    return static_cast<int>(_tzcnt_u64(sparse) / 8);
  }
  /// How many planes there are: the last with a non-zero byte.
  static int used_planes(std::uint64_t nonzero) { return static_cast<int>((71 - _lzcnt_u64(nonzero)) / 8); }

  /// Bytes whose value 8g+7-r stands at 8g+r, as eight planes.
  static __m512i planes(__m512i zigzag_bytes) {
    return _mm512_permutexvar_epi8(_mm512_load_si512(tables.to_planes), transpose(zigzag_bytes));
  }

  static Split put_narrow(Out& o, __m512i plane) {
    const std::uint64_t nonzero = _mm512_test_epi8_mask(plane, plane);
    const int w = used_planes(nonzero);
    const int full = full_planes(nonzero);
    const unsigned split = at_hand().splits[w][full];
    const unsigned dense = split & 255;
    const std::uint64_t sparse = nonzero & ~_bzhi_u64(~std::uint64_t{0}, dense);
    _mm512_storeu_si512(o.dense, plane);
    store(o.masks, sparse >> (dense & 63));
    _mm512_storeu_si512(o.bytes, _mm512_maskz_compress_epi8(sparse, plane));
    o.dense += dense;
    o.masks += w - static_cast<int>(dense / 8);
    o.bytes += _mm_popcnt_u64(sparse);
    return {w, static_cast<int>(dense / 8), static_cast<std::uint8_t>(split >> 8)};
  }

  static __m512i pack_low_bytes(const Block64& z) {
    const __m512i low = _mm512_set1_epi32(255);
    const __m512i a = _mm512_packus_epi32(_mm512_and_si512(z.v[0], low), _mm512_and_si512(z.v[1], low));
    const __m512i b = _mm512_packus_epi32(_mm512_and_si512(z.v[2], low), _mm512_and_si512(z.v[3], low));
    return _mm512_permutexvar_epi8(_mm512_load_si512(tables.from_packed), _mm512_packus_epi16(a, b));
  }

  /// Cursors pass by value, so that the caller's stay in registers.
  struct Put {
    Split split;
    Out out;
  };

  /// Planes of `groups` bytes of the zigzag residuals, lowest first.
  template <int groups>
  static Put put_groups(Out o, const __m512i* plane) {
    std::uint64_t nonzero[groups];
    int w = 0;
    int d = 0;
    for (int g = 0; g < groups; ++g) {
      nonzero[g] = _mm512_test_epi8_mask(plane[g], plane[g]);
      w = nonzero[g] != 0 ? 8 * g + used_planes(nonzero[g]) : w;
      d += d == 8 * g ? full_planes(nonzero[g]) : 0;
    }
    d = d > w ? w : d;
    if (w - d > 6) d = 2 * d < w ? 0 : w - 6;
    for (int g = 0; g < groups; ++g) {
      const int dense_here = below(d, g);
      const std::uint64_t sparse = nonzero[g] & ~_bzhi_u64(~std::uint64_t{0}, static_cast<unsigned>(8 * dense_here));
      _mm512_storeu_si512(o.dense, plane[g]);
      store(o.masks, sparse >> (8 * dense_here & 63));
      _mm512_storeu_si512(o.bytes, _mm512_maskz_compress_epi8(sparse, plane[g]));
      o.dense += 8 * dense_here;
      o.masks += below(w, g) - dense_here;
      o.bytes += _mm_popcnt_u64(sparse);
    }
    return {Split(w, d), o};
  }

  static __m512i zigzag16(__m512i v) { return _mm512_xor_si512(_mm512_slli_epi16(v, 1), _mm512_srai_epi16(v, 15)); }

  /// Whether all residuals of a block are 16-bit integers.
  static bool fit16(const __m512i& r0, const __m512i& r1, const __m512i& r2, const __m512i& r3) {
    const __m512i bias = _mm512_set1_epi32(32768);
    const __m512i any = _mm512_or_si512(_mm512_or_si512(_mm512_add_epi32(r0, bias), _mm512_add_epi32(r1, bias)),
                                        _mm512_or_si512(_mm512_add_epi32(r2, bias), _mm512_add_epi32(r3, bias)));
    return _mm512_test_epi32_mask(any, _mm512_set1_epi32(~0xFFFF)) == 0;
  }

  __attribute__((noinline)) static Put put_wide(Out o, __m512i r0, __m512i r1, __m512i r2, __m512i r3) {
    __m512i plane[4];
    if (fit16(r0, r1, r2, r3)) {
      const __m512i a = zigzag16(_mm512_packs_epi32(r0, r1));
      const __m512i b = zigzag16(_mm512_packs_epi32(r2, r3));
      for (int high = 0; high < 2; ++high)
        plane[high] = planes(_mm512_permutex2var_epi8(a, _mm512_load_si512(tables.from_packed16[high]), b));
      return put_groups<2>(o, plane);
    }
    Block64 z{{zigzag(r0), zigzag(r1), zigzag(r2), zigzag(r3)}};
    for (auto& p : plane) {
      p = planes(pack_low_bytes(z));
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
    return put_biased(o, _mm512_permutexvar_epi8(_mm512_load_si512(tables.from_packed), packed));
  }

  /// Residuals + 128 as bytes, value 8g+7-r at byte 8g+r. Flipping bit 7 before zigzag is adding to_zigzag's image of
  /// it.
  static Split put_biased(Out& o, __m512i biased) {
    return put_narrow(
        o, planes(_mm512_gf2p8affine_epi64_epi8(biased, _mm512_set1_epi64(static_cast<long long>(to_zigzag)), 0xFF)));
  }

  /// 64 bytes as eight planes. Byte r of what it returns tells which bytes of plane r are not zero.
  static std::uint64_t planes_of_bytes(const std::uint8_t* bytes, std::uint64_t* plane) {
    const __m512i reverse = _mm512_set4_epi32(0x08090A0B, 0x0C0D0E0F, 0x00010203, 0x04050607);
    const __m512i p = planes(_mm512_shuffle_epi8(_mm512_loadu_si512(bytes), reverse));
    _mm512_storeu_si512(plane, p);
    return _mm512_test_epi8_mask(p, p);
  }
  static void bytes_of_planes(const std::uint64_t* plane, std::uint8_t* bytes) {
    const __m512i p = _mm512_permutexvar_epi8(_mm512_load_si512(tables.from_planes), _mm512_loadu_si512(plane));
    _mm512_storeu_si512(bytes, transpose(p, identity));
  }

  // ------------------------------------------------------------------------------------------- sums of blocks

  /// The planes of one operand where the other's are all zero, split anew: not every writer does as ours.
  static Split copy_block(In& in, int dense, int sparse, Out& o) {
    if (dense + sparse > 8) return put(o, get(in, dense, sparse));
    return put_narrow(o, read_stored(in, Stored::planes(dense, sparse)));
  }

  /// Both operands have at most 8 * Groups - 1 planes, so the sum has at most 8 * Groups.
  template <int Groups>
  __attribute__((always_inline)) static Split add_planes(In& a, int da, int sa, In& b, int db, int sb, Out& o) {
    if constexpr (Groups == 1) {
      const __m512i sum = _mm512_add_epi8(signed_bytes(read_planes(a, da, sa, reversal)),
                                          signed_bytes(read_planes(b, db, sb, reversal)));
      return put_narrow(o, planes(affine(sum, to_zigzag)));
    } else {
      const Halves x = read_halves(a, da, sa, reversal);
      const Halves sum = sum_halves(x, read_halves(b, db, sb, reversal));
      const __m512i plane[2] = {
          planes(_mm512_xor_si512(affine(sum.low, zigzag_maps.shift_up), affine(sum.high, zigzag_maps.sign_up))),
          planes(_mm512_xor_si512(affine(sum.high, to_zigzag), affine(sum.low, zigzag_maps.sign_to_one)))};
      const Put put = put_groups<2>(o, plane);
      o = put.out;
      return put.split;
    }
  }

  __attribute__((always_inline)) static Split add_block(In& a, int da, int sa, In& b, int db, int sb, Out& o) {
    const int wa = da + sa;
    const int wb = db + sb;
    if (wa == 0 && wb == 0) return {0, 0};
    if (wb == 0) return copy_block(a, da, sa, o);
    if (wa == 0) return copy_block(b, db, sb, o);
    if (wa <= 7 && wb <= 7) return add_planes<1>(a, da, sa, b, db, sb, o);
    if (wa <= 15 && wb <= 15) return add_planes<2>(a, da, sa, b, db, sb, o);
    const Block64 ra = get(a, da, sa);
    return put(o, sum(ra, get(b, db, sb)));
  }

  static std::size_t count_bits(const std::uint8_t* masks, std::size_t n) {
    __m512i total = _mm512_setzero_si512();
    std::size_t i = 0;
    for (; i + 64 <= n; i += 64)
      total = _mm512_add_epi64(
          total, _mm512_sad_epu8(_mm512_popcnt_epi8(_mm512_loadu_si512(masks + i)), _mm512_setzero_si512()));
    const __m512i rest = _mm512_maskz_loadu_epi8(_bzhi_u64(~std::uint64_t{0}, static_cast<unsigned>(n - i)), masks + i);
    total = _mm512_add_epi64(total, _mm512_sad_epu8(_mm512_popcnt_epi8(rest), _mm512_setzero_si512()));
    return static_cast<std::size_t>(_mm512_reduce_add_epi64(total));
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

#include "codec/slice/avx512x_sections.h"
#include "codec/slice/avx512x_stages.h"

struct Avx512x : Avx512xPlanes {
  using Staged = Stages;
  using Sums = Stages;
  using Planes = PlaneSet;
  static bool fusible(const Params& p) { return elements_of(p) == Elements::f32; }
  static std::uint8_t* put_codes(const std::uint8_t* codes, Word& word, std::uint8_t* p) {
    return Stages::put_codes(codes, word, p);
  }
};

const Kernels* found() { return FastManySums<Avx512x>::kernels(); }

}  // namespace
}  // namespace laconic::slice

LACONIC_TARGET_REGION_END

namespace laconic::slice {

const Kernels* avx512x_kernels() {
  static const bool have = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi") &&
                           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bitalg") &&
                           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vpopcntdq") &&
                           __builtin_cpu_supports("gfni");
  // Of what its functions are compiled for, AVX2's are the rest.
  return have && avx2_kernels() != nullptr ? found() : nullptr;
}

}  // namespace laconic::slice

#else

namespace laconic::slice {
const Kernels* avx512x_kernels() { return nullptr; }
}  // namespace laconic::slice

#endif
