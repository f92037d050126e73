// The choice of a chunk's predictor with AVX-512, in registers: what has just been stored cannot be loaded again a lane
// off without waiting until it has reached the cache. The definition is choose_predictor() in chunk_writer.cc. Included
// by avx512_policy.h.

/// Residuals of 16 integers that come after `before`. `base`: what Predictor::none takes from all.
template <Predictor P>
__m512i residual_after(__m512i before, __m512i q, __m512i base) {
  if constexpr (P == Predictor::none) return _mm512_sub_epi32(q, base);
  const __m512i one = _mm512_alignr_epi32(q, before, 15);
  const __m512i d = _mm512_sub_epi32(q, one);
  if constexpr (P == Predictor::first) return d;
  return _mm512_sub_epi32(d, _mm512_sub_epi32(one, _mm512_alignr_epi32(q, before, 14)));
}

/// The sum of all lanes, in each of them.
inline __m512i sum_everywhere(__m512i v) {
  v = _mm512_add_epi32(v, _mm512_shuffle_i64x2(v, v, 0x4E));
  v = _mm512_add_epi32(v, _mm512_shuffle_i64x2(v, v, 0xB1));
  v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
  return _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_CDAB));
}

/// The integers of a chunk that the choice looks at. They may have a bias.
struct ChoiceSample {
  static constexpr int blocks[2] = {4, 20};        ///< those whose cost counts
  static constexpr int mean_blocks[2] = {12, 28};  ///< with those, the ones that the mean is of
  __m512i first;                                   ///< lane 0 is the chunk's first integer
  __m512i before[2];                               ///< of `blocks`, the 16 before each
  Block64 block[2];
  __m512i sum = _mm512_setzero_si512();  ///< of the four blocks

  /// at(i): the 16 integers from position i on.
  template <class At>
  explicit ChoiceSample(At at) {
    first = at(0);
    for (int j = 0; j < 2; ++j) {
      before[j] = at(64 * blocks[j] - 16);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        block[j].v[k] = at(64 * blocks[j] + 16 * k);
        sum = _mm512_add_epi32(sum, _mm512_add_epi32(block[j].v[k], at(64 * mean_blocks[j] + 16 * k)));
      }
    }
  }

  /// The sampled mean, biased as they are, in all lanes.
  [[nodiscard]] __m512i mean(std::int32_t bias) const {
    const __m512i unbiased = _mm512_sub_epi32(sum_everywhere(sum), _mm512_slli_epi32(_mm512_set1_epi32(bias), 8));
    return _mm512_add_epi32(_mm512_srai_epi32(_mm512_add_epi32(unbiased, _mm512_set1_epi32(128)), 8),
                            _mm512_set1_epi32(bias));
  }

  [[nodiscard]] Choice<std::int32_t> choose(std::int32_t bias) const {
    const __m512i m = mean(bias);
    const __m512i none = zeros<Predictor::none>(m);
    const __m512i first_difference = zeros<Predictor::first>(m);
    const __m512i second_difference = zeros<Predictor::second>(m);
    // More zeros are less cost. The sums of even lanes (odd ones repeat them) need ten bits each, so one reduction
    // does.
    const __m512i three = _mm512_or_si512(
        none, _mm512_or_si512(_mm512_slli_epi32(first_difference, 10), _mm512_slli_epi32(second_difference, 20)));
    const auto sums =
        static_cast<std::uint64_t>(_mm512_reduce_add_epi64(_mm512_and_si512(three, _mm512_set1_epi64(0xFFFFFFFFLL))));
    Choice<std::int32_t> c{Predictor::first, lane(first)};
    std::uint64_t best = sums >> 10 & 1023;
    if ((sums & 1023) > best) {
      c = {Predictor::none, lane(m)};
      best = sums & 1023;
    }
    if ((sums >> 20 & 1023) > best) c = {Predictor::second, lane(first)};
    return c;
  }

 private:
  static std::int32_t lane(__m512i v) { return _mm_cvtsi128_si32(_mm512_castsi512_si128(v)); }

  /// Leading zero bits of the OR of each of a block's eight groups of eight zigzag residuals, twice; of both blocks. v
  /// ^ 2v has as many as the zigzag of v.
  template <Predictor P>
  [[nodiscard]] __m512i zeros(__m512i base) const {
    __m512i all = _mm512_setzero_si512();
    for (int j = 0; j < 2; ++j) {
      __m512i z[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const __m512i r = residual_after<P>(k == 0 ? before[j] : block[j].v[k - 1], block[j].v[k], base);
        z[k] = _mm512_xor_si512(r, _mm512_add_epi32(r, r));
      }
      const __m512i a = _mm512_or_si512(_mm512_shuffle_i32x4(z[0], z[1], 0x88), _mm512_shuffle_i32x4(z[0], z[1], 0xDD));
      const __m512i b = _mm512_or_si512(_mm512_shuffle_i32x4(z[2], z[3], 0x88), _mm512_shuffle_i32x4(z[2], z[3], 0xDD));
      const __m512i c = _mm512_or_si512(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
      all = _mm512_add_epi32(all, _mm512_lzcnt_epi32(_mm512_or_si512(c, _mm512_shuffle_epi32(c, _MM_PERM_CDAB))));
    }
    return all;
  }
};
