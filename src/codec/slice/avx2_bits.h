// Bit matrices of 64 bytes in two AVX2 registers, transposed by exchanging bits between them. Included inside avx2.cc's
// target region and anonymous namespace.
//
// Where a byte lies has six bits: register, lane, and four within the lane. Each stands for one bit of the value's
// number (v5..v0, group of eight = v5 v4 v3) or, once exchanged, of the plane's (r2 r1 r0). Orders are written
// [register lane b3 b2 b1 b0].

/// 64 bytes.
struct Bytes64 {
  __m256i a, b;
};

/// Byte masks and multipliers.
struct Tables {
  alignas(64) std::uint8_t first[64 + 64];   // from byte 64 - n on: n ones, then zeros
  alignas(32) std::uint8_t triangle[2][32];  // byte 4g+t counts in the sums of lanes 4g+t and above
  alignas(32) std::uint8_t wedge[2][32];     // and as often as there are lanes from it on: sums of sums

  constexpr Tables() : first(), triangle(), wedge() {
    for (int i = 0; i < 64; ++i) first[i] = 255;
    for (int g = 0; g < 2; ++g)
      for (int j = 0; j < 8; ++j)
        for (int t = 0; t < 4; ++t) {
          triangle[g][j * 4 + t] = 4 * g + t <= j;
          wedge[g][j * 4 + t] = static_cast<std::uint8_t>(4 * g + t <= j ? j - (4 * g + t) + 1 : 0);
        }
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

/// Planes [r2 r1 r0 v5 v4 v3] to [v0 v2 v1 v5 v4 v3].
inline Bytes64 mixed_of_planes(Bytes64 x) {
  x = swap_lanes(swap_bits<4>(x));
  x = swap_halves(swap_bits<2>(x));
  return swap_bits<1>(x);
}

/// [v0 v2 v1 v5 v4 v3] to [v5 v2 v1 v0 v4 v3]: each dword holds one value of four consecutive groups.
inline Bytes64 columns_of_mixed(Bytes64 x) { return swap_halves(zip_dwords(x)); }

/// [v0 v2 v1 v5 v4 v3] to [v5 v2 v4 v3 v1 v0]: each dword holds four consecutive values.
inline Bytes64 quads_of_mixed(Bytes64 x) {
  x = {_mm256_unpacklo_epi8(x.a, x.b), _mm256_unpackhi_epi8(x.a, x.b)};
  return {_mm256_unpacklo_epi16(x.a, x.b), _mm256_unpackhi_epi16(x.a, x.b)};
}

/// [v5 v4 v3 v2 v1 v0], value order, to [v5 v2 v1 v0 v4 v3].
inline __m256i columns_of_values(__m256i x) {
  const __m256i pairs =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  const __m256i quads =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(_mm256_shuffle_epi8(x, pairs), 0xD8), quads);
}
/// [v5 v2 v4 v3 v1 v0] to [v5 v4 v3 v2 v1 v0], value order.
inline __m256i values_of_quads(__m256i x) {
  return _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

inline __m256i zigzag_bytes(__m256i r) {
  return _mm256_xor_si256(_mm256_add_epi8(r, r), _mm256_cmpgt_epi8(_mm256_setzero_si256(), r));
}
inline __m256i signed_bytes(__m256i z) {
  const __m256i sign = _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_and_si256(z, _mm256_set1_epi8(1)));
  return _mm256_xor_si256(_mm256_and_si256(_mm256_srli_epi16(z, 1), _mm256_set1_epi8(127)), sign);
}

inline std::uint64_t nonzero_bytes(Bytes64 x) {
  const __m256i zero = _mm256_setzero_si256();
  const auto a = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(x.a, zero)));
  const auto b = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(x.b, zero)));
  return ~(std::uint64_t{b} << 32 | a);
}
