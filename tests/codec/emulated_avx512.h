// AVX-512 by plain code, for processors that lack it: what the kernels in codec/slice/avx512.cc and avx512x.cc call of
// it, in place of <immintrin.h>'s. A source that is compiled behind this header (-include) uses it without knowing; its
// target region is then one of AVX2. Every function is what Intel's Intrinsics Guide says of the one it is named after,
// element by element. Kernels that ask for what is not here do not compile.
#pragma once

#include "codec/emulated_vectors.h"

// Where immediates are concerned, compilers have macros in place of functions.
#undef _mm512_alignr_epi32
#undef _mm512_bslli_epi128
#undef _mm512_cmp_pd_mask
#undef _mm512_cmp_ps_mask
#undef _mm512_cmpeq_epi64_mask
#undef _mm512_cmpge_epi64_mask
#undef _mm512_cmpgt_epi32_mask
#undef _mm512_cmpgt_epi64_mask
#undef _mm512_cmpgt_epu32_mask
#undef _mm512_cmplt_epi32_mask
#undef _mm512_cmplt_epu8_mask
#undef _mm512_cmpneq_epi16_mask
#undef _mm512_cmpneq_epi32_mask
#undef _mm512_cmpneq_epi64_mask
#undef _mm512_cvtps_ph
#undef _mm512_extracti32x4_epi32
#undef _mm512_extracti64x4_epi64
#undef _mm512_gf2p8affine_epi64_epi8
#undef _mm512_insertf32x8
#undef _mm512_inserti64x4
#undef _mm512_range_pd
#undef _mm512_range_ps
#undef _mm512_set4_epi32
#undef _mm512_setr_epi32
#undef _mm512_setr_epi64
#undef _mm512_shuffle_epi32
#undef _mm512_shuffle_i32x4
#undef _mm512_shuffle_i64x2
#undef _mm512_slli_epi16
#undef _mm512_slli_epi32
#undef _mm512_slli_epi64
#undef _mm512_srai_epi16
#undef _mm512_srai_epi32
#undef _mm512_srli_epi16
#undef _mm512_srli_epi32
#undef _mm512_srli_epi64
#undef _mm512_ternarylogic_epi32
#undef _mm512_ternarylogic_epi64
#undef _mm256_cmpgt_epu8_mask
#undef _mm256_cmpge_epu8_mask
#undef _mm256_cmpeq_epi8_mask

LACONIC_EMULATION_REGION

namespace laconic::slice {
namespace {

using namespace laconic::emulated;  // NOLINT(google-build-using-namespace)

// Nearer to the kernels than <immintrin.h>'s, and found first.
#define EACH(name, T, ...)                                        \
  inline __m512i _mm512_##name(__m512i va, __m512i vb) {          \
    return each<T>(va, vb, [](T a, T b) { return __VA_ARGS__; }); \
  }
#define ONE(name, T, ...)                                \
  inline __m512i _mm512_##name(__m512i va) {             \
    return each<T>(va, [](T a) { return __VA_ARGS__; }); \
  }
#define REAL(name, Vector, T, ...)                                \
  inline Vector _mm512_##name(Vector va, Vector vb) {             \
    return each<T>(va, vb, [](T a, T b) { return __VA_ARGS__; }); \
  }
#define SHIFT(name, T, ...)                               \
  inline __m512i _mm512_##name(__m512i va, unsigned n) {  \
    return each<T>(va, [n](T a) { return __VA_ARGS__; }); \
  }
#define COMPARE(name, T, Mask, ...)                                                     \
  inline Mask _mm512_##name##_mask(__m512i va, __m512i vb) {                            \
    return static_cast<Mask>(compare<T>(va, vb, [](T a, T b) { return __VA_ARGS__; })); \
  }

EACH(add_epi8, u8, a + b)
EACH(add_epi16, u16, a + b)
EACH(add_epi32, u32, a + b)
EACH(add_epi64, u64, a + b)
EACH(sub_epi8, u8, a - b)
EACH(sub_epi16, u16, a - b)
EACH(sub_epi32, u32, a - b)
EACH(sub_epi64, u64, a - b)
EACH(mullo_epi32, u32, a* b)
EACH(and_si512, u64, a& b)
EACH(or_si512, u64, a | b)
EACH(xor_si512, u64, a ^ b)
EACH(andnot_si512, u64, ~a& b)
EACH(min_epi32, i32, std::min(a, b))
EACH(max_epi32, i32, std::max(a, b))
EACH(min_epi64, i64, std::min(a, b))
EACH(max_epi64, i64, std::max(a, b))
EACH(min_epu64, u64, std::min(a, b))
EACH(sllv_epi32, u32, b > 31 ? 0 : a << b)
EACH(sllv_epi64, u64, b > 63 ? 0 : a << b)
EACH(srlv_epi64, u64, b > 63 ? 0 : a >> b)
ONE(popcnt_epi8, u8, std::popcount(a))
ONE(popcnt_epi64, u64, std::popcount(a))
ONE(lzcnt_epi32, u32, std::countl_zero(a))
ONE(lzcnt_epi64, u64, std::countl_zero(a))
SHIFT(slli_epi16, u16, n > 15 ? 0 : a << n)
SHIFT(slli_epi32, u32, n > 31 ? 0 : a << n)
SHIFT(slli_epi64, u64, n > 63 ? 0 : a << n)
SHIFT(srli_epi16, u16, n > 15 ? 0 : a >> n)
SHIFT(srli_epi32, u32, n > 31 ? 0 : a >> n)
SHIFT(srli_epi64, u64, n > 63 ? 0 : a >> n)
SHIFT(srai_epi16, i16, a >> std::min(n, 15U))
SHIFT(srai_epi32, i32, a >> std::min(n, 31U))
inline __m512i _mm512_srl_epi32(__m512i a, __m128i n) {
  return _mm512_srli_epi32(a, static_cast<unsigned>(std::min<u64>(of<u64>(n)[0], 99)));
}
inline __m512i _mm512_srl_epi64(__m512i a, __m128i n) {
  return _mm512_srli_epi64(a, static_cast<unsigned>(std::min<u64>(of<u64>(n)[0], 99)));
}
REAL(mul_ps, __m512, float, a* b)
REAL(mul_pd, __m512d, double, a* b)
REAL(sub_ps, __m512, float, a - b)
REAL(sub_pd, __m512d, double, a - b)
COMPARE(cmpeq_epi64, i64, __mmask8, a == b)
COMPARE(cmpge_epi64, i64, __mmask8, a >= b)
COMPARE(cmpgt_epi64, i64, __mmask8, a > b)
COMPARE(cmpneq_epi64, i64, __mmask8, a != b)
COMPARE(cmpgt_epi32, i32, __mmask16, a > b)
COMPARE(cmplt_epi32, i32, __mmask16, a < b)
COMPARE(cmpneq_epi32, i32, __mmask16, a != b)
COMPARE(cmpgt_epu32, u32, __mmask16, a > b)
COMPARE(cmpneq_epi16, i16, __mmask32, a != b)
COMPARE(cmplt_epu8, u8, __mmask64, a < b)
COMPARE(test_epi8, u8, __mmask64, (a & b) != 0)
COMPARE(test_epi16, u16, __mmask32, (a & b) != 0)
COMPARE(test_epi32, u32, __mmask16, (a & b) != 0)
COMPARE(test_epi64, u64, __mmask8, (a & b) != 0)
COMPARE(testn_epi8, u8, __mmask64, (a & b) == 0)
COMPARE(testn_epi64, u64, __mmask8, (a & b) == 0)

#undef EACH
#undef ONE
#undef REAL
#undef SHIFT
#undef COMPARE

// Floating point.
inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  const auto x = of<float>(a);
  const auto y = of<float>(b);
  const auto z = of<float>(c);
  return make<float, __m512>([&](std::size_t i) { return std::fma(x[i], y[i], z[i]); });
}
inline __m512d _mm512_fmadd_pd(__m512d a, __m512d b, __m512d c) {
  const auto x = of<double>(a);
  const auto y = of<double>(b);
  const auto z = of<double>(c);
  return make<double, __m512d>([&](std::size_t i) { return std::fma(x[i], y[i], z[i]); });
}
inline __m512 _mm512_range_ps(__m512 a, __m512 b, int which) {
  if (which != 11) __builtin_trap();
  return each<float>(a, b, [](float x, float y) { return larger_magnitude(x, y); });
}
inline __m512d _mm512_range_pd(__m512d a, __m512d b, int which) {
  if (which != 11) __builtin_trap();
  return each<double>(a, b, [](double x, double y) { return larger_magnitude(x, y); });
}
inline __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int which) {
  if (which != _CMP_NLE_UQ) __builtin_trap();
  const auto x = of<float>(a);
  const auto y = of<float>(b);
  return static_cast<__mmask16>(mask_of<16>([&](std::size_t i) { return !(x[i] <= y[i]); }));
}
inline __mmask8 _mm512_cmp_pd_mask(__m512d a, __m512d b, int which) {
  if (which != _CMP_NLE_UQ) __builtin_trap();
  const auto x = of<double>(a);
  const auto y = of<double>(b);
  return static_cast<__mmask8>(mask_of<8>([&](std::size_t i) { return !(x[i] <= y[i]); }));
}
inline __m512 _mm512_cvtepi32_ps(__m512i v) { return convert<i32, float, __m512>(v); }
inline __m512d _mm512_cvtepi32_pd(__m256i v) { return convert<i32, double, __m512d>(v); }
inline __m256 _mm512_cvtpd_ps(__m512d v) { return convert<double, float, __m256>(v); }
inline __m512 _mm512_cvtph_ps(__m256i v) {
  const auto h = bits_as<std::array<__m128i, 2>>(v);
  return bits_as<__m512>(std::array{_mm256_cvtph_ps(h[0]), _mm256_cvtph_ps(h[1])});
}
inline __m256i _mm512_cvtps_ph(__m512 v, int rounding) {
  if (rounding != (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)) __builtin_trap();
  const auto h = bits_as<std::array<__m256, 2>>(v);
  return bits_as<__m256i>(std::array{_mm256_cvtps_ph(h[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                                     _mm256_cvtps_ph(h[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)});
}

// Constants, parts, and the same bits as another type.
inline __m512i _mm512_setzero_si512() { return zero<__m512i>(); }
inline __m512 _mm512_setzero_ps() { return zero<__m512>(); }
inline __m512d _mm512_setzero_pd() { return zero<__m512d>(); }
inline __m512i _mm512_set1_epi8(char v) {
  return make<u8, __m512i>([v](std::size_t) { return static_cast<u8>(v); });
}
inline __m512i _mm512_set1_epi16(short v) {
  return make<i16, __m512i>([v](std::size_t) { return v; });
}
inline __m512i _mm512_set1_epi32(int v) {
  return make<i32, __m512i>([v](std::size_t) { return v; });
}
inline __m512i _mm512_set1_epi64(long long v) {
  return make<i64, __m512i>([v](std::size_t) { return v; });
}
inline __m512 _mm512_set1_ps(float v) {
  return make<float, __m512>([v](std::size_t) { return v; });
}
inline __m512d _mm512_set1_pd(double v) {
  return make<double, __m512d>([v](std::size_t) { return v; });
}
template <class... Int>
__m512i _mm512_setr_epi32(Int... v) {
  return to<__m512i>(std::array<i32, 16>{static_cast<i32>(v)...});
}
template <class... Int>
__m512i _mm512_setr_epi64(Int... v) {
  return to<__m512i>(std::array<i64, 8>{static_cast<i64>(v)...});
}
inline __m512i _mm512_set4_epi32(int d, int c, int b, int a) {
  return _mm512_setr_epi32(a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d);
}
inline __m512i _mm512_broadcast_i32x4(__m128i v) { return bits_as<__m512i>(std::array{v, v, v, v}); }
inline __m512 _mm512_castsi512_ps(__m512i v) { return bits_as<__m512>(v); }
inline __m512d _mm512_castsi512_pd(__m512i v) { return bits_as<__m512d>(v); }
inline __m512i _mm512_castps_si512(__m512 v) { return bits_as<__m512i>(v); }
inline __m512i _mm512_castpd_si512(__m512d v) { return bits_as<__m512i>(v); }
inline __m256i _mm512_extracti64x4_epi64(__m512i v, int i) {
  return bits_as<std::array<__m256i, 2>>(v)[static_cast<std::size_t>(i)];
}
inline __m128i _mm512_extracti32x4_epi32(__m512i v, int i) {
  return bits_as<std::array<__m128i, 4>>(v)[static_cast<std::size_t>(i)];
}
inline __m256i _mm512_castsi512_si256(__m512i v) { return _mm512_extracti64x4_epi64(v, 0); }
inline __m128i _mm512_castsi512_si128(__m512i v) { return _mm512_extracti32x4_epi32(v, 0); }
/// What lies above is undefined: here, something that nobody wants.
inline __m512i _mm512_castsi256_si512(__m256i v) { return bits_as<__m512i>(std::array{v, _mm256_set1_epi8(0x5A)}); }
inline __m512 _mm512_castps256_ps512(__m256 v) { return bits_as<__m512>(std::array{v, _mm256_set1_ps(1e30F)}); }
inline __m512i _mm512_inserti64x4(__m512i v, __m256i part, int i) {
  auto a = bits_as<std::array<__m256i, 2>>(v);
  a[static_cast<std::size_t>(i)] = part;
  return bits_as<__m512i>(a);
}
inline __m512 _mm512_insertf32x8(__m512 v, __m256 part, int i) {
  auto a = bits_as<std::array<__m256, 2>>(v);
  a[static_cast<std::size_t>(i)] = part;
  return bits_as<__m512>(a);
}

// Memory.
inline __m512i _mm512_load_si512(const void* p) { return load_aligned<__m512i>(p); }
inline __m512i _mm512_loadu_si512(const void* p) { return load<__m512i>(p); }
inline __m512 _mm512_loadu_ps(const void* p) { return load<__m512>(p); }
inline __m512d _mm512_loadu_pd(const void* p) { return load<__m512d>(p); }
inline void _mm512_store_si512(void* p, __m512i v) { store_aligned(p, v); }
inline void _mm512_storeu_si512(void* p, __m512i v) { store(p, v); }
inline void _mm512_stream_si512(void* p, __m512i v) { store_aligned(p, v); }
inline void _mm512_stream_ps(void* p, __m512 v) { store_aligned(p, v); }
inline void _mm512_mask_storeu_epi16(void* p, __mmask32 m, __m512i v) { store_where<u16>(p, m, v); }
inline void _mm512_mask_storeu_epi32(void* p, __mmask16 m, __m512i v) { store_where<u32>(p, m, v); }
inline void _mm512_mask_storeu_epi64(void* p, __mmask8 m, __m512i v) { store_where<u64>(p, m, v); }
inline void _mm512_mask_storeu_ps(void* p, __mmask16 m, __m512 v) { store_where<float>(p, m, v); }
inline __m512i _mm512_mask_loadu_epi64(__m512i otherwise, __mmask8 m, const void* p) {
  return load_where<u64>(otherwise, m, p);
}
inline __m512i _mm512_maskz_loadu_epi8(__mmask64 m, const void* p) { return load_where<u8>(zero<__m512i>(), m, p); }

// Other sizes of elements.
inline __m512i _mm512_cvtepi8_epi32(__m128i v) { return convert<i8, i32, __m512i>(v); }
inline __m512i _mm512_cvtepi16_epi32(__m256i v) { return convert<i16, i32, __m512i>(v); }
inline __m512i _mm512_cvtepu16_epi32(__m256i v) { return convert<u16, u32, __m512i>(v); }
inline __m512i _mm512_cvtepu8_epi16(__m256i v) { return convert<u8, u16, __m512i>(v); }
inline __m512i _mm512_cvtepu8_epi64(__m128i v) {
  const auto x = of<u8>(v);
  return make<u64, __m512i>([&](std::size_t i) { return x[i]; });
}
inline __m256i _mm512_cvtepi32_epi16(__m512i v) { return convert<u32, u16, __m256i>(v); }
inline __m256i _mm512_cvtepi64_epi32(__m512i v) { return convert<u64, u32, __m256i>(v); }
inline __m128i _mm512_cvtepi64_epi8(__m512i v) {
  const auto x = of<u64>(v);
  return make<u8, __m128i>([&](std::size_t i) { return i < 8 ? x[i] : 0; });
}
inline __m512i _mm512_packs_epi32(__m512i a, __m512i b) { return pack<i32, i16>(a, b); }
inline __m512i _mm512_packus_epi32(__m512i a, __m512i b) { return pack<i32, u16>(a, b); }
inline __m512i _mm512_packs_epi16(__m512i a, __m512i b) { return pack<i16, i8>(a, b); }
inline __m512i _mm512_packus_epi16(__m512i a, __m512i b) { return pack<i16, u8>(a, b); }

// Other places.
inline __m512i _mm512_permutexvar_epi8(__m512i index, __m512i v) { return permute<u8>(index, v); }
inline __m512i _mm512_permutexvar_epi16(__m512i index, __m512i v) { return permute<u16>(index, v); }
inline __m512i _mm512_permutexvar_epi32(__m512i index, __m512i v) { return permute<u32>(index, v); }
inline __m512i _mm512_permutexvar_epi64(__m512i index, __m512i v) { return permute<u64>(index, v); }
inline __m512 _mm512_permutexvar_ps(__m512i index, __m512 v) {
  return bits_as<__m512>(permute<u32>(index, bits_as<__m512i>(v)));
}
inline __m512i _mm512_permutex2var_epi8(__m512i a, __m512i index, __m512i b) { return permute2<u8>(a, index, b); }
inline __m512 _mm512_permutex2var_ps(__m512 a, __m512i index, __m512 b) {
  return bits_as<__m512>(permute2<u32>(bits_as<__m512i>(a), index, bits_as<__m512i>(b)));
}
inline __m512i _mm512_alignr_epi32(__m512i high, __m512i low, int by) {
  const auto x = of<u32>(high);
  const auto y = of<u32>(low);
  const auto n = static_cast<std::size_t>(by & 15);
  return make<u32, __m512i>([&](std::size_t i) { return i + n < 16 ? y[i + n] : x[i + n - 16]; });
}
inline __m512i _mm512_bslli_epi128(__m512i v, int by) {
  const auto x = of<u8>(v);
  const auto n = static_cast<std::size_t>(by);
  return make<u8, __m512i>([&](std::size_t i) { return i % 16 >= n ? x[i - n] : 0; });
}
inline __m512i _mm512_shuffle_epi8(__m512i v, __m512i index) {
  const auto x = of<u8>(v);
  const auto at = of<u8>(index);
  return make<u8, __m512i>([&](std::size_t i) { return at[i] > 127 ? 0 : x[i / 16 * 16 + at[i] % 16]; });
}
inline __m512i shuffle_in_lanes(__m512i v, int places) {
  const auto x = of<u32>(v);
  return make<u32, __m512i>(
      [&](std::size_t i) { return x[i / 4 * 4 + (static_cast<unsigned>(places) >> (2 * (i % 4)) & 3)]; });
}
/// Two lanes of a, then two of b.
inline __m512i _mm512_shuffle_i32x4(__m512i a, __m512i b, int places) {
  const auto x = bits_as<std::array<__m128i, 4>>(a);
  const auto y = bits_as<std::array<__m128i, 4>>(b);
  const auto at = [places](int i) { return static_cast<std::size_t>(places >> (2 * i) & 3); };
  return bits_as<__m512i>(std::array{x[at(0)], x[at(1)], y[at(2)], y[at(3)]});
}
inline __m512i _mm512_shuffle_i64x2(__m512i a, __m512i b, int places) { return _mm512_shuffle_i32x4(a, b, places); }
inline __m512i _mm512_unpacklo_epi64(__m512i a, __m512i b) {
  const auto x = of<u64>(a);
  const auto y = of<u64>(b);
  return make<u64, __m512i>([&](std::size_t i) { return i % 2 == 0 ? x[i] : y[i - 1]; });
}
inline __m512i _mm512_unpackhi_epi64(__m512i a, __m512i b) {
  const auto x = of<u64>(a);
  const auto y = of<u64>(b);
  return make<u64, __m512i>([&](std::size_t i) { return i % 2 == 0 ? x[i + 1] : y[i]; });
}
inline __m512i _mm512_maskz_compress_epi8(__mmask64 m, __m512i v) { return compress_bytes(m, v); }
inline __m512i _mm512_mask_expand_epi8(__m512i otherwise, __mmask64 m, __m512i v) {
  const auto x = of<u8>(v);
  auto r = of<u8>(otherwise);
  std::size_t n = 0;
  for (std::size_t i = 0; i < 64; ++i)
    if ((m >> i & 1) != 0) r[i] = x[n++];
  return to<__m512i>(r);
}

// Several elements together.
inline __m512i _mm512_madd_epi16(__m512i a, __m512i b) {
  const auto x = of<i16>(a);
  const auto y = of<i16>(b);
  return make<u32, __m512i>([&](std::size_t i) {
    return static_cast<u32>(x[2 * i] * y[2 * i]) + static_cast<u32>(x[2 * i + 1] * y[2 * i + 1]);
  });
}
inline __m512i _mm512_maddubs_epi16(__m512i a, __m512i b) {
  const auto x = of<u8>(a);
  const auto y = of<i8>(b);
  return make<i16, __m512i>(
      [&](std::size_t i) { return saturate<i16>(x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1]); });
}
inline __m512i _mm512_dpbusd_epi32(__m512i sum, __m512i a, __m512i b) {
  const auto s = of<u32>(sum);
  const auto x = of<u8>(a);
  const auto y = of<i8>(b);
  return make<u32, __m512i>([&](std::size_t i) {
    u32 r = s[i];
    for (std::size_t k = 4 * i; k < 4 * i + 4; ++k) r += static_cast<u32>(x[k] * y[k]);
    return r;
  });
}
inline __m512i _mm512_sad_epu8(__m512i a, __m512i b) {
  const auto x = of<u8>(a);
  const auto y = of<u8>(b);
  return make<u64, __m512i>([&](std::size_t i) {
    int r = 0;
    for (std::size_t k = 8 * i; k < 8 * i + 8; ++k) r += std::abs(x[k] - y[k]);
    return r;
  });
}
inline long long _mm512_reduce_add_epi64(__m512i v) {
  u64 r = 0;
  for (const u64 x : of<u64>(v)) r += x;
  return static_cast<long long>(r);
}
inline long long _mm512_reduce_or_epi64(__m512i v) {
  u64 r = 0;
  for (const u64 x : of<u64>(v)) r |= x;
  return static_cast<long long>(r);
}
inline __m512i _mm512_gf2p8affine_epi64_epi8(__m512i v, __m512i matrices, int constant) {
  const auto x = of<u8>(v);
  const auto m = of<u64>(matrices);
  return make<u8, __m512i>([&](std::size_t i) { return affine(x[i], m[i / 8], static_cast<u8>(constant)); });
}
/// Bit by bit: bit (a, b, c) of the table.
inline __m512i _mm512_ternarylogic_epi64(__m512i a, __m512i b, __m512i c, int table) {
  const auto x = of<u64>(a);
  const auto y = of<u64>(b);
  const auto z = of<u64>(c);
  return make<u64, __m512i>([&](std::size_t i) {
    u64 r = 0;
    for (unsigned k = 0; k < 8; ++k)
      if ((table >> k & 1) != 0)
        r |= ((k & 4) != 0 ? x[i] : ~x[i]) & ((k & 2) != 0 ? y[i] : ~y[i]) & ((k & 1) != 0 ? z[i] : ~z[i]);
    return r;
  });
}
inline __m512i _mm512_ternarylogic_epi32(__m512i a, __m512i b, __m512i c, int table) {
  return _mm512_ternarylogic_epi64(a, b, c, table);
}

// Under masks.
inline __m512i _mm512_movm_epi8(__mmask64 m) { return blend<u8>(m, zero<__m512i>(), _mm512_set1_epi8(-1)); }
inline __mmask64 _mm512_movepi8_mask(__m512i v) { return _mm512_test_epi8_mask(v, _mm512_set1_epi8(-128)); }
inline __m512i _mm512_maskz_mov_epi64(__mmask8 m, __m512i v) { return blend<u64>(m, zero<__m512i>(), v); }
inline __m512i _mm512_mask_mov_epi64(__m512i a, __mmask8 m, __m512i v) { return blend<u64>(m, a, v); }
inline __m512i _mm512_mask_blend_epi16(__mmask32 m, __m512i a, __m512i b) { return blend<u16>(m, a, b); }
inline __m512i _mm512_mask_add_epi64(__m512i otherwise, __mmask8 m, __m512i a, __m512i b) {
  return blend<u64>(m, otherwise, _mm512_add_epi64(a, b));
}
inline __m512i _mm512_mask_add_epi8(__m512i otherwise, __mmask64 m, __m512i a, __m512i b) {
  return blend<u8>(m, otherwise, _mm512_add_epi8(a, b));
}
inline __m512i _mm512_mask_sub_epi8(__m512i otherwise, __mmask64 m, __m512i a, __m512i b) {
  return blend<u8>(m, otherwise, _mm512_sub_epi8(a, b));
}
inline __m512i _mm512_mask_or_epi64(__m512i otherwise, __mmask8 m, __m512i a, __m512i b) {
  return blend<u64>(m, otherwise, _mm512_or_si512(a, b));
}
inline __m512i _mm512_mask_permutexvar_epi32(__m512i otherwise, __mmask16 m, __m512i index, __m512i v) {
  return blend<u32>(m, otherwise, permute<u32>(index, v));
}
inline __m512i _mm512_maskz_permutexvar_epi16(__mmask32 m, __m512i index, __m512i v) {
  return blend<u16>(m, zero<__m512i>(), permute<u16>(index, v));
}

// The same of shorter vectors.
inline __mmask32 _mm256_cmpgt_epu8_mask(__m256i a, __m256i b) {
  return static_cast<__mmask32>(_mm256_movemask_epi8(each<u8>(a, b, [](u8 x, u8 y) { return x > y ? 255 : 0; })));
}
inline __mmask32 _mm256_cmpge_epu8_mask(__m256i a, __m256i b) { return ~_mm256_cmpgt_epu8_mask(b, a); }
inline __mmask32 _mm256_cmpeq_epi8_mask(__m256i a, __m256i b) {
  return static_cast<__mmask32>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)));
}
inline __mmask16 _mm_test_epi8_mask(__m128i a, __m128i b) {
  return static_cast<__mmask16>(~_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(a, b), _mm_setzero_si128())));
}
inline __mmask32 _mm256_movepi8_mask(__m256i v) { return static_cast<__mmask32>(_mm256_movemask_epi8(v)); }
inline __m256i _mm256_mask_mov_epi8(__m256i a, __mmask32 m, __m256i v) { return blend<u8>(m, a, v); }
inline __m256i _mm256_maskz_mov_epi8(__mmask32 m, __m256i v) { return blend<u8>(m, zero<__m256i>(), v); }
inline __m256i _mm256_maskz_set1_epi8(__mmask32 m, char v) { return _mm256_maskz_mov_epi8(m, _mm256_set1_epi8(v)); }
inline __m256i _mm256_movm_epi8(__mmask32 m) { return _mm256_maskz_set1_epi8(m, -1); }
inline __m256i _mm256_maskz_sub_epi8(__mmask32 m, __m256i a, __m256i b) {
  return _mm256_maskz_mov_epi8(m, _mm256_sub_epi8(a, b));
}
inline __m256i _mm256_mask_add_epi8(__m256i otherwise, __mmask32 m, __m256i a, __m256i b) {
  return _mm256_mask_mov_epi8(otherwise, m, _mm256_add_epi8(a, b));
}
inline __m128i _mm_maskz_compress_epi8(__mmask16 m, __m128i v) { return compress_bytes(m, v); }

}  // namespace
}  // namespace laconic::slice

LACONIC_TARGET_REGION_END

// The kernels' own region is this one, and their processors need what those of AVX2 do.
#define LACONIC_EMULATED_AVX512
#undef LACONIC_TARGET_REGION
#define LACONIC_TARGET_REGION(features) LACONIC_EMULATION_REGION
// The type of its immediate is a global one, and would find that function.
#define _mm512_shuffle_epi32 shuffle_in_lanes
#define __builtin_cpu_supports(feature) (avx2_kernels() != nullptr)
