// AVX2 with FMA, BMI2, LZCNT and F16C (Haswell, Zen and later): bit matrices are transposed by exchanging bits between
// two registers, zero bytes dropped by shuffles looked up from the masks, residuals summed by products with triangles
// of ones.
#include "codec/slice/chunk_integers.h"
#include "codec/slice/kernel_sets.h"
#include "codec/slice/scratch.h"
#include "core/cache.h"
#include "core/one_nan.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "codec/slice/byte_tables.h"
#include "codec/slice/flush_subnormals.h"
#include "codec/slice/target_region.h"

LACONIC_TARGET_REGION("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")

namespace laconic::slice {
namespace {

#include "codec/slice/fast_codec.h"
#include "codec/slice/fast_sums.h"
#include "codec/slice/fast_sums_many.h"
// The policy's base uses the types above.
#include "codec/slice/avx2_bits.h"
#include "codec/slice/avx2_policy.h"
#include "codec/slice/shuffled_planes.h"

struct Avx2 : Avx2Base {
  // ------------------------------------------------------------------------------------------- planes out

  __attribute__((always_inline)) static void put_planes(Out& o, Bytes64 plane, std::uint64_t nonzero, int planes,
                                                        int dense) {
    store256(o.dense, plane.a);
    store256(o.dense + 32, plane.b);
    put_stored_planes(o, nonzero, planes, dense);
  }

  __attribute__((always_inline)) static Split put_narrow(Out& o, Bytes64 plane) {
    const std::uint64_t nonzero = nonzero_bytes(plane);
    const int w = used_planes(nonzero);
    int d = full_planes(nonzero);
    d = d > w ? w : d;
    if (w - d > 6) d = 0;
    put_planes(o, plane, nonzero, w, d);
    return {w, d};
  }

  /// Four columns of numbers below 256 as one of bytes.
  __attribute__((always_inline)) static __m256i merge(const __m256i* u) {
    return or_of(or_of(u[0], _mm256_slli_epi32(u[1], 8)),
                 or_of(_mm256_slli_epi32(u[2], 16), _mm256_slli_epi32(u[3], 24)));
  }

  /// Four columns of numbers below 2^16 as one of their low bytes and one of their high ones.
  static void merge16(const __m256i* z, __m256i& low, __m256i& high) {
    const __m256i even = or_of(z[0], _mm256_slli_epi32(z[2], 16));
    const __m256i odd = or_of(z[1], _mm256_slli_epi32(z[3], 16));
    const __m256i low_bytes = _mm256_set1_epi16(255);
    low = or_of(_mm256_and_si256(even, low_bytes), _mm256_slli_epi16(odd, 8));
    high = or_of(_mm256_srli_epi16(even, 8), _mm256_andnot_si256(low_bytes, odd));
  }

  /// Cursors pass by value where a call is not inlined, so that they stay in registers elsewhere.
  struct Put {
    Split split;
    Out out;
  };

  /// Planes of `groups` bytes of the zigzag residuals, lowest first.
  template <int groups>
  static Put put_groups(Out o, const Bytes64* plane) {
    std::uint64_t nonzero[groups];
    int w = 0;
    int full = 0;
    for (int g = 0; g < groups; ++g) {
      nonzero[g] = nonzero_bytes(plane[g]);
      w = nonzero[g] != 0 ? 8 * g + used_planes(nonzero[g]) : w;
      full += full == 8 * g ? full_planes(nonzero[g]) : 0;
    }
    int d = full > w ? w : full;
    if (w - d > 6) d = 2 * d < w ? 0 : w - 6;
    for (int g = 0; g < groups; ++g) put_planes(o, plane[g], nonzero[g], below(w, g), below(d, g));
    return {Split(w, d), o};
  }

  /// The planes of zigzag residuals that do not fit a byte, eight to a group. Returns how many groups: 2 or 4.
  static int wide_planes(const Block64& r, Bytes64* plane) {
    Block64 z;
    __m256i any = _mm256_setzero_si256();
    for (int k = 0; k < 8; ++k) any = or_of(any, z.v[k] = zigzag(r.v[k]));
    if (_mm256_testz_si256(any, _mm256_set1_epi32(static_cast<int>(0xFFFF0000U))) != 0) {
      Bytes64 low;
      Bytes64 high;
      merge16(z.v, low.a, high.a);
      merge16(z.v + 4, low.b, high.b);
      plane[0] = planes_of_columns(low);
      plane[1] = planes_of_columns(high);
      return 2;
    }
    for (int g = 0; g < 4; ++g) {
      Block64 low;
      for (int k = 0; k < 8; ++k) {
        low.v[k] = _mm256_and_si256(z.v[k], _mm256_set1_epi32(255));
        z.v[k] = _mm256_srli_epi32(z.v[k], 8);
      }
      plane[g] = planes_of_columns({merge(low.v), merge(low.v + 4)});
    }
    return 4;
  }

  __attribute__((noinline)) static Put put_wide(Out o, const Block64& r) {
    Bytes64 plane[4];
    return wide_planes(r, plane) == 2 ? put_groups<2>(o, plane) : put_groups<4>(o, plane);
  }

  /// Where all zigzag residuals fit a byte: their planes.
  __attribute__((always_inline)) static bool narrow_planes(const Block64& r, Bytes64& plane) {
    // Biased by 128, a residual that fits a signed byte has no bits above the lowest eight.
    const __m256i bias = _mm256_set1_epi32(128);
    Block64 u;
    for (int k = 0; k < 8; ++k) u.v[k] = _mm256_add_epi32(r.v[k], bias);
    const __m256i any =
        or_of(or_of(or_of(u.v[0], u.v[1]), or_of(u.v[2], u.v[3])), or_of(or_of(u.v[4], u.v[5]), or_of(u.v[6], u.v[7])));
    if (__builtin_expect(_mm256_testz_si256(any, _mm256_set1_epi32(~255)) == 0, 0)) return false;
    const __m256i high = _mm256_set1_epi8(static_cast<char>(0x80));
    plane = planes_of_columns(
        {zigzag_bytes(_mm256_xor_si256(merge(u.v), high)), zigzag_bytes(_mm256_xor_si256(merge(u.v + 4), high))});
    return true;
  }

  __attribute__((always_inline)) static Split put(Out& o, const Block64& r) {
    Bytes64 plane;
    if (narrow_planes(r, plane)) return put_narrow(o, plane);
    const Put put = put_wide(o, r);
    o = put.out;
    return put.split;
  }

  /// 64 bytes as eight planes. Byte r of what it returns tells which bytes of plane r are not zero.
  static std::uint64_t planes_of_bytes(const std::uint8_t* bytes, std::uint64_t* plane) {
    const Bytes64 p = planes_of_columns({columns_of_values(load256(bytes)), columns_of_values(load256(bytes + 32))});
    store256(plane, p.a);
    store256(plane + 4, p.b);
    return nonzero_bytes(p);
  }
  static void bytes_of_planes(const std::uint64_t* plane, std::uint8_t* bytes) {
    const Bytes64 q = quads_of_mixed(mixed_of_planes({load256(plane), load256(plane + 4)}));
    store256(bytes, values_of_quads(q.a));
    store256(bytes + 32, values_of_quads(q.b));
  }

  // ------------------------------------------------------------------------------------------- planes in

  /// Up to eight planes.
  __attribute__((always_inline)) static Bytes64 read_planes(In& in, int dense, int sparse) {
    const SparsePlanes s = get_sparse_planes(in, dense, sparse);
    const std::uint8_t* valid = tables.first + 64 - 8 * dense;
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(s.pair[0]), s.pair[1], 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(s.pair[2]), s.pair[3], 1);
    const Bytes64 x{or_of(low, _mm256_and_si256(load256(in.dense), load256(valid))),
                    or_of(high, _mm256_and_si256(load256(in.dense + 32), load256(valid + 32)))};
    in.dense += 8 * dense;
    return x;
  }

  /// Residuals of at most eight planes as bytes, [v0 v2 v1 v5 v4 v3].
  __attribute__((always_inline)) static Bytes64 read_mixed(In& in, int dense, int sparse) {
    const Bytes64 z = mixed_of_planes(read_planes(in, dense, sparse));
    return {signed_bytes(z.a), signed_bytes(z.b)};
  }

  struct Got {
    Block64 block;
    In in;
  };

  static Bytes64 read_group(In& in, int dense, int sparse, int g) {
    const int dense_here = below(dense, g);
    return columns_of_mixed(mixed_of_planes(read_planes(in, dense_here, below(dense + sparse, g) - dense_here)));
  }

  /// Four columns of 16-bit numbers from their low and high bytes: even ones, odd ones.
  static void split16(__m256i low, __m256i high, __m256i& even, __m256i& odd) {
    const __m256i low_bytes = _mm256_set1_epi16(255);
    even = or_of(_mm256_and_si256(low, low_bytes), _mm256_slli_epi16(high, 8));
    odd = or_of(_mm256_srli_epi16(low, 8), _mm256_andnot_si256(low_bytes, high));
  }

  static __m256i unzigzag16(__m256i v) {
    const __m256i sign = _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_and_si256(v, _mm256_set1_epi16(1)));
    return _mm256_xor_si256(_mm256_srli_epi16(v, 1), sign);
  }

  __attribute__((noinline)) static Got get_wide(In in, int dense, int sparse) {
    const Bytes64 c[2] = {read_group(in, dense, sparse, 0), read_group(in, dense, sparse, 1)};
    __m256i pair[4];
    split16(c[0].a, c[1].a, pair[0], pair[1]);
    split16(c[0].b, c[1].b, pair[2], pair[3]);
    Got got;
    got.in = in;
    __m256i* v = got.block.v;
    if (__builtin_expect(dense + sparse <= 16, 1)) {
      for (int k = 0; k < 4; ++k) {
        const __m256i p = unzigzag16(pair[k]);
        v[k / 2 * 4 + k % 2] = _mm256_srai_epi32(_mm256_slli_epi32(p, 16), 16);
        v[k / 2 * 4 + k % 2 + 2] = _mm256_srai_epi32(p, 16);
      }
      return got;
    }
    const Bytes64 u[2] = {read_group(got.in, dense, sparse, 2), read_group(got.in, dense, sparse, 3)};
    __m256i upper[4];
    split16(u[0].a, u[1].a, upper[0], upper[1]);
    split16(u[0].b, u[1].b, upper[2], upper[3]);
    for (int k = 0; k < 4; ++k) {
      v[k / 2 * 4 + k % 2] = _mm256_blend_epi16(pair[k], _mm256_slli_epi32(upper[k], 16), 0xAA);
      v[k / 2 * 4 + k % 2 + 2] = _mm256_blend_epi16(_mm256_srli_epi32(pair[k], 16), upper[k], 0xAA);
    }
    for (int k = 0; k < 8; ++k) {
      const __m256i sign = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(v[k], _mm256_set1_epi32(1)));
      v[k] = _mm256_xor_si256(_mm256_srli_epi32(v[k], 1), sign);
    }
    return got;
  }

  __attribute__((always_inline)) static Block64 get(In& in, int dense, int sparse) {
    if (__builtin_expect(dense + sparse > 8, 0)) {
      const Got got = get_wide(in, dense, sparse);
      in = got.in;
      return got.block;
    }
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

    /// Hands the next 64 integers to `sink`, in eight registers.
    template <class Sink>
    __attribute__((always_inline)) void next(In& in, int dense, int sparse, Sink sink) {
      if (P != Predictor::second && dense + sparse == 0) {
        for (int k = 0; k < 8; ++k) sink.put(k, last);
        return;
      }
      if (P != Predictor::none && __builtin_expect(dense + sparse <= 8, 1)) return next_narrow(in, dense, sparse, sink);
      const Block64 r = get(in, dense, sparse);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        __m256i v = r.v[k];
        if constexpr (P == Predictor::none) {
          sink.put(k, _mm256_add_epi32(v, last));
          continue;
        }
        // Only the additions to last and slope wait for the eight values before.
        v = prefix(v);
        if constexpr (P == Predictor::second) {
          const __m256i end = top(v);
          v = prefix(_mm256_add_epi32(v, slope));
          slope = _mm256_add_epi32(slope, end);
        }
        sink.put(k, _mm256_add_epi32(v, last));
        last = _mm256_add_epi32(last, top(v));
      }
    }

    /// 8 sums (or sums of sums) are two products of bytes with tables; the bytes come back from memory as broadcasts.
    template <class Sink>
    __attribute__((always_inline)) void next_narrow(In& in, int dense, int sparse, Sink sink) {
      alignas(32) std::int32_t four[16];
      const Bytes64 quads = quads_of_mixed(read_mixed(in, dense, sparse));
      store256(four, quads.a);
      store256(four + 8, quads.b);
      asm volatile("" : "+m"(four));
      const auto& table = P == Predictor::first ? tables.triangle : tables.wedge;
      const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        const int at = k / 4 * 8 + k % 4;
        const __m256i pairs =
            _mm256_add_epi16(_mm256_maddubs_epi16(load256(table[0]), _mm256_set1_epi32(four[at])),
                             _mm256_maddubs_epi16(load256(table[1]), _mm256_set1_epi32(four[at + 4])));
        const __m256i a = _mm256_madd_epi16(pairs, ones);
        if constexpr (P == Predictor::first) {
          sink.put(k, _mm256_add_epi32(a, last));
          last = _mm256_add_epi32(last, top(a));
        } else {
          const __m256i steps = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8);
          const __m256i end = top(a);
          sink.put(k, _mm256_add_epi32(_mm256_add_epi32(a, last), _mm256_mullo_epi32(slope, steps)));
          last = _mm256_add_epi32(last, _mm256_add_epi32(end, _mm256_slli_epi32(slope, 3)));
          const __m256i before_end = _mm256_permutevar8x32_epi32(a, _mm256_set1_epi32(6));
          slope = _mm256_add_epi32(slope, _mm256_sub_epi32(end, before_end));
        }
      }
    }
    void next(In& in, int dense, int sparse, std::int32_t* q) { next(in, dense, sparse, ToIntegers{q}); }
  };

  struct ToIntegers {
    std::int32_t* q;
    void put(int k, __m256i v) const { store256(q + 8 * k, v); }
  };
  struct Added {
    std::int32_t* q;
    void put(int k, __m256i v) const { store256(q + 8 * k, _mm256_add_epi32(load256(q + 8 * k), v)); }
  };
  /// Straight to f32 elements, without a detour over integers in memory.
  template <bool Stream>
  struct ToF32 {
    float* y;
    __m256 step;
    static ToF32 begin(const Params& p, void* y) { return {static_cast<float*>(y), _mm256_set1_ps(p.step32)}; }
    [[nodiscard]] ToF32 block(int b) const { return {y + 64 * b, step}; }
    void put(int k, __m256i v) const { stream_or_store(y + 8 * k, _mm256_mul_ps(_mm256_cvtepi32_ps(v), step), Stream); }
  };
  /// See Avx512Sinks. A line is two vectors here: the first line's and the last one's are kept.
  struct ToF32Lines {
    struct Ends {
      alignas(64) float first[16];
      alignas(64) float last[16];
      __m256 before;
    };
    Ends* ends;
    float* half;               ///< of a line: where the block's first vector begins
    std::array<float*, 3> to;  ///< where the first, the second and the eighth go
    std::array<bool, 3> kept;  ///< whether that is in `ends`: not past the caches, or finish() would wait for memory
    __m256 step;
    __m256i turn;
    __m256i before;
    int begun;

    static ToF32Lines begin(const Params& p, void* y, Ends& ends) {
      const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
      const auto begun = static_cast<int>(reinterpret_cast<std::uintptr_t>(y) % 64 / sizeof(float));
      const __m256i n = _mm256_set1_epi32(begun % 8);
      __builtin_prefetch(static_cast<float*>(y) + chunk_values - 1, 1);
      return {&ends,
              static_cast<float*>(y) - begun % 8,
              {},
              {},
              _mm256_set1_ps(p.step32),
              _mm256_sub_epi32(lanes, n),  // of which the permutation sees three bits
              _mm256_cmpgt_epi32(n, lanes),
              begun};
    }
    [[nodiscard]] ToF32Lines block(int b) const {
      ToF32Lines at = *this;
      at.half += 64 * b;
      at.to = {at.half, at.half + 8, at.half + 56};
      at.kept = {b == 0, b == 0 && begun < 8, b == chunk_blocks - 1 && begun >= 8};
      if (at.kept[0]) at.to[0] = ends->first + begun / 8 * 8;
      if (at.kept[1]) at.to[1] = ends->first + 8;
      if (at.kept[2]) at.to[2] = ends->last;
      return at;
    }
    void put(int k, __m256i v) const {
      const __m256 now = _mm256_permutevar8x32_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(v), step), turn);
      const __m256 joined = _mm256_blendv_ps(now, ends->before, _mm256_castsi256_ps(before));
      const auto i = static_cast<std::size_t>(k < 2 ? k : 2);
      const bool edge = k < 2 || k == 7;
      float* const at = edge ? to[i] : half + 8 * k;
      if (edge && kept[i]) {
        _mm256_store_ps(at, joined);
      } else {
        _mm256_stream_ps(at, joined);
      }
      ends->before = now;
    }
    void finish() const {
      float* const line = half + begun % 8 - begun;
      _mm256_store_ps(ends->last + begun / 8 * 8, ends->before);
      std::copy(ends->first + begun, ends->first + 16, line + begun);
      std::copy(ends->last, ends->last + begun, line + chunk_values);
    }
  };
  static bool direct(const Params& p) { return elements_of(p) == Elements::f32 && p.narrow_value; }

  // ------------------------------------------------------------------------------------------- one plane

  static std::uint64_t spread(std::uint8_t mask) { return _pdep_u64(mask, 0x0101010101010101ULL) * 255; }

  /// One sparse plane: its mask and its non-zero bytes.
  static std::uint8_t mask_of(std::uint64_t plane) {
    const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(plane));
    const auto zeros = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
    return static_cast<std::uint8_t>(~zeros);
  }
  static void put_plane(Out& o, std::uint64_t plane) {
    const std::uint8_t mask = mask_of(plane);
    *o.masks++ = mask;
    store(o.bytes, _pext_u64(plane, spread(mask)));
    o.bytes += _mm_popcnt_u32(mask);
  }
  static std::uint64_t get_plane(In& in) {
    const std::uint8_t mask = *in.masks++;
    const std::uint64_t plane = _pdep_u64(load<std::uint64_t>(in.bytes), spread(mask));
    in.bytes += _mm_popcnt_u32(mask);
    return plane;
  }
};

#include "codec/slice/avx2_sums.h"

struct Avx2Codec : Avx2 {
  using Sums = PlaneSums;
  using Planes = PlaneSet;
};

const Kernels* found() { return FastManySums<Avx2Codec>::kernels(); }

}  // namespace
}  // namespace laconic::slice

LACONIC_TARGET_REGION_END

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
