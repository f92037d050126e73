// From planes to residuals and on to integers: what Avx512xPlanes reads with. Included by avx512x.cc inside its target
// region, after its tables.

struct Avx512xReader : Avx512Base {
  /// How many of the first n planes fall into the g-th group of eight.
  static int below(int n, int g) {
    const int rest = n > 8 * g ? n - 8 * g : 0;
    return rest < 8 ? rest : 8;
  }

  /// Up to eight planes, as they lie in the chunk: bytes of the dense ones, and of the sparse ones bits in all masks,
  /// both eight a plane. As such, and in the width of an address, they go into instructions without more ado.
  struct Stored {
    std::size_t dense_bytes;
    std::size_t mask_bits;
    Stored(std::size_t bytes, std::size_t bits) : dense_bytes(bytes), mask_bits(bits) {}
    static Stored planes(int dense, int sparse) {
      return {8 * static_cast<std::size_t>(dense), 8 * static_cast<std::size_t>(sparse)};
    }
  };
  /// Dense planes, so many bytes of them, and above those the sparse ones of which a mask says where their bytes go.
  __attribute__((always_inline)) static __m512i stored(const std::uint8_t* dense, std::size_t dense_bytes,
                                                       std::uint64_t mask, const std::uint8_t* bytes) {
    const __m512i low =
        _mm512_and_si512(_mm512_loadu_si512(dense), _mm512_load_si512(at_hand().lowest + 8 * dense_bytes));
    // With eight dense planes there is no mask, so the shift by 64 that the & avoids does not matter.
    return _mm512_mask_expand_epi8(low, mask << (dense_bytes & 63), _mm512_loadu_si512(bytes));
  }
  __attribute__((always_inline)) static __m512i read_stored(In& in, Stored at) {
    const std::uint64_t mask = _bzhi_u64(load<std::uint64_t>(in.masks), static_cast<unsigned>(at.mask_bits));
    const __m512i plane = stored(in.dense, at.dense_bytes, mask, in.bytes);
    in.dense += at.dense_bytes;
    in.masks += at.mask_bits / 8;
    in.bytes += _mm_popcnt_u64(mask);
    return plane;
  }

  /// The same as 64 bytes in value order; with `reversal`, value 8g+7-r at byte 8g+r.
  __attribute__((always_inline)) static __m512i read_planes(In& in, Stored at, std::uint64_t order = identity) {
    const __m512i plane = read_stored(in, at);
    return transpose(_mm512_permutexvar_epi8(_mm512_load_si512(tables.from_planes), plane), order);
  }
  __attribute__((always_inline)) static __m512i read_planes(In& in, int dense, int sparse,
                                                            std::uint64_t order = identity) {
    return read_planes(in, Stored::planes(dense, sparse), order);
  }

  static __m512i signed_bytes(__m512i zigzag_bytes) { return affine(zigzag_bytes, from_zigzag); }

  struct Got {
    Block64 block;
    In in;
  };
  __attribute__((always_inline)) static __m512i read_group(In& in, int dense, int sparse, int g) {
    const int dense_here = below(dense, g);
    return read_planes(in, dense_here, below(dense + sparse, g) - dense_here);
  }

  __attribute__((always_inline)) static Got get_wide(In in, int dense, int sparse) {
    const __m512i low = read_group(in, dense, sparse, 0);
    const __m512i high = read_group(in, dense, sparse, 1);
    __m512i word[2];
    for (int half = 0; half < 2; ++half)
      word[half] = _mm512_permutex2var_epi8(low, _mm512_load_si512(tables.interleave[half]), high);
    if (__builtin_expect(dense + sparse <= 16, 1)) {
      for (auto& v : word) {
        const __m512i sign = _mm512_sub_epi16(_mm512_setzero_si512(), _mm512_and_si512(v, _mm512_set1_epi16(1)));
        v = _mm512_xor_si512(_mm512_srli_epi16(v, 1), sign);
      }
      return {{{_mm512_cvtepi16_epi32(_mm512_castsi512_si256(word[0])),
                _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(word[0], 1)),
                _mm512_cvtepi16_epi32(_mm512_castsi512_si256(word[1])),
                _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(word[1], 1))}},
              in};
    }
    const __m512i third = read_group(in, dense, sparse, 2);
    const __m512i fourth = read_group(in, dense, sparse, 3);
    Block64 r;
    for (int k = 0; k < 4; ++k) {
      const int half = k / 2;
      const __m512i upper = _mm512_permutex2var_epi8(third, _mm512_load_si512(tables.interleave[half]), fourth);
      const __m512i lo = k % 2 == 0 ? _mm512_cvtepu16_epi32(_mm512_castsi512_si256(word[half]))
                                    : _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(word[half], 1));
      const __m512i up = k % 2 == 0 ? _mm512_cvtepu16_epi32(_mm512_castsi512_si256(upper))
                                    : _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(upper, 1));
      const __m512i v = _mm512_or_si512(lo, _mm512_slli_epi32(up, 16));
      const __m512i sign = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_and_si512(v, _mm512_set1_epi32(1)));
      r.v[k] = _mm512_xor_si512(_mm512_srli_epi32(v, 1), sign);
    }
    return {r, in};
  }

  static Block64 widen(__m512i bytes) {
    return {{_mm512_cvtepi8_epi32(_mm512_castsi512_si128(bytes)),
             _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 1)),
             _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 2)),
             _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 3))}};
  }

  __attribute__((always_inline)) static Block64 get(In& in, int dense, int sparse) {
    if (__builtin_expect(dense + sparse > 8, 0)) {
      const Got got = get_wide(in, dense, sparse);
      in = got.in;
      return got.block;
    }
    return widen(signed_bytes(read_planes(in, dense, sparse)));
  }

  /// 64 residuals as digits of a byte each, lowest first, all signed: of at most 8 planes, or, in two, 15 (32767 would
  /// need an upper digit of 128).
  template <int Groups>
  struct Digits {
    __m512i digit[Groups];
    /// The sum of each four values times four unsigned bytes, and more.
    [[nodiscard]] __m512i product(__m512i plus, __m512i bytes) const {
      const __m512i low = _mm512_dpbusd_epi32(plus, bytes, digit[0]);
      if constexpr (Groups == 1) return low;
      return _mm512_add_epi32(
          low, _mm512_slli_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), bytes, digit[Groups - 1]), 8));
    }
    /// Fours in another order.
    [[nodiscard]] Digits of(__m512i order) const {
      Digits d;
      for (int g = 0; g < Groups; ++g) d.digit[g] = _mm512_permutexvar_epi32(order, digit[g]);
      return d;
    }
  };

  /// The low and high bytes of 64 residuals of at most 16 planes.
  struct Halves {
    __m512i low;
    __m512i high;
  };
  /// A chunk's blocks in order, their planes in two groups of eight. Where they lie is found for all at once, so that
  /// loads are what is left to each, and one cursor: how many bytes a block has, its masks tell.
  struct Blocks {
    alignas(64) std::uint16_t dense_at[chunk_blocks];  // bytes from `start` on
    alignas(64) std::uint16_t masks_at[chunk_blocks];
    alignas(32) std::uint8_t dense_bytes[2][chunk_blocks];
    alignas(32) std::uint8_t mask_bits[2][chunk_blocks];
    const std::uint8_t* start;
    Blocks() = default;
    /// Blocks of more than sixteen planes are of no meaning.
    explicit Blocks(const Sections& c) : start(c.in.dense) {
      const __m256i eight = _mm256_set1_epi8(8);
      const __m256i d = _mm256_load_si256(reinterpret_cast<const __m256i*>(c.dense));
      const __m256i s = _mm256_load_si256(reinterpret_cast<const __m256i*>(c.sparse));
      const __m256i w = _mm256_add_epi8(d, s);
      const __m256i low_d = _mm256_min_epu8(d, eight);
      const __m256i low_w = _mm256_min_epu8(w, eight);
      const __m256i high_d = _mm256_sub_epi8(d, low_d);
      keep(dense_bytes[0], low_d);
      keep(mask_bits[0], _mm256_sub_epi8(low_w, low_d));
      keep(dense_bytes[1], high_d);
      keep(mask_bits[1], _mm256_sub_epi8(_mm256_sub_epi8(w, low_w), high_d));
      const __m256i masks = _mm256_sub_epi8(s, _mm256_movm_epi8(c.fill_blocks));
      _mm512_store_si512(dense_at, _mm512_slli_epi16(before(_mm512_cvtepu8_epi16(d)), 3));
      _mm512_store_si512(masks_at, _mm512_add_epi16(before(_mm512_cvtepu8_epi16(masks)),
                                                    _mm512_set1_epi16(static_cast<short>(c.in.masks - c.in.dense))));
    }

    /// Planes of a group; of the lower one first. `bytes` begins as the chunk's.
    __attribute__((always_inline)) __m512i planes(int g, int b, const std::uint8_t*& bytes) const {
      const std::size_t dense = dense_bytes[g][b];
      const std::uint8_t* masks = start + masks_at[b] + (g == 0 ? 0 : mask_bits[0][b] / 8);
      const std::uint8_t* from = start + dense_at[b] + (g == 0 ? 0 : dense_bytes[0][b]);
      const std::uint64_t mask = _bzhi_u64(load<std::uint64_t>(masks), mask_bits[g][b]);
      const __m512i plane = stored(from, dense, mask, bytes);
      bytes += _mm_popcnt_u64(mask);
      return transpose(_mm512_permutexvar_epi8(_mm512_load_si512(tables.from_planes), plane), reversal);
    }
    /// The plane of marks behind those.
    std::uint64_t marks(int b, const std::uint8_t*& bytes) const {
      In in{nullptr, start + masks_at[b] + (mask_bits[0][b] + mask_bits[1][b]) / 8, bytes};
      const std::uint64_t plane = get_plane(in);
      bytes = in.bytes;
      return plane;
    }

   private:
    static void keep(std::uint8_t* to, __m256i planes) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm256_slli_epi16(planes, 3));  // no bit leaves its byte
    }
    /// Of each word the sum of those before it.
    static __m512i before(__m512i words) {
      __m512i sum = _mm512_add_epi16(words, _mm512_bslli_epi128(words, 2));
      sum = _mm512_add_epi16(sum, _mm512_bslli_epi128(sum, 4));
      sum = _mm512_add_epi16(sum, _mm512_bslli_epi128(sum, 8));
      const auto last_of = [&](int lane, __mmask32 to) {
        return _mm512_maskz_permutexvar_epi16(to, _mm512_set1_epi16(static_cast<short>(8 * lane + 7)), sum);
      };
      const __m512i lanes = _mm512_add_epi16(_mm512_add_epi16(last_of(0, ~0U << 8), last_of(1, ~0U << 16)),
                                             _mm512_sub_epi16(last_of(2, ~0U << 24), words));
      return _mm512_add_epi16(sum, lanes);
    }
  };

  __attribute__((always_inline)) static Halves read_halves(In& in, Stored lower, Stored upper,
                                                           std::uint64_t order = identity) {
    const __m512i low = read_planes(in, lower, order);
    return signed_halves(low, read_planes(in, upper, order));
  }
  /// Of zigzag bytes.
  static Halves signed_halves(__m512i low, __m512i high) {
    return {_mm512_xor_si512(signed_bytes(low), affine(high, zigzag_maps.carry_down)),
            _mm512_xor_si512(affine(high, zigzag_maps.shift_down), affine(low, zigzag_maps.sign_down))};
  }
  __attribute__((always_inline)) static Halves read_halves(In& in, int dense, int sparse,
                                                           std::uint64_t order = identity) {
    const int d = dense < 8 ? dense : 8;
    const int w = dense + sparse < 8 ? dense + sparse : 8;
    return read_halves(in, Stored::planes(d, w - d), Stored::planes(dense - d, sparse + d - w), order);
  }

  static Halves sum_halves(const Halves& x, const Halves& y) {
    const __m512i low = _mm512_add_epi8(x.low, y.low);
    const __mmask64 carry = _mm512_cmplt_epu8_mask(low, x.low);
    const __m512i high = _mm512_add_epi8(x.high, y.high);
    return {low, _mm512_mask_sub_epi8(high, carry, high, _mm512_set1_epi8(-1))};
  }

  template <int Groups>
  __attribute__((always_inline)) static Digits<Groups> read_digits(In& in, int dense, int sparse) {
    if constexpr (Groups == 1) {
      return {{signed_bytes(read_planes(in, dense, sparse))}};
    } else {
      const Halves h = read_halves(in, dense, sparse);
      // The upper digit takes the lower one's sign.
      return {{h.low, _mm512_add_epi8(h.high, affine(h.low, zigzag_maps.sign_to_one))}};
    }
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
    __attribute__((always_inline)) void next(In& in, int dense, int sparse, Sink sink) {
      if (P != Predictor::second && dense + sparse == 0) {
        for (int k = 0; k < 4; ++k) sink.put(k, last);
        return;
      }
      if (P != Predictor::none && dense + sparse <= 8) return follow(read_digits<1>(in, dense, sparse), sink);
      if (P != Predictor::none && dense + sparse <= 15) return follow(read_digits<2>(in, dense, sparse), sink);
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

    /// Sums in two levels: over groups of four values by one product of bytes with ones, then along the sixteen groups,
    /// then within each group by a product with a triangle.
    template <int Groups, class Sink>
    __attribute__((always_inline)) void follow(Digits<Groups> r, Sink sink) {
      const __m512i zero = _mm512_setzero_si512();
      const __m512i change = r.product(zero, _mm512_set1_epi8(1));
      const __m512i through = _mm512_add_epi32(prefix(change), P == Predictor::first ? last : slope);
      const __m512i before = _mm512_sub_epi32(through, change);
      if constexpr (P == Predictor::first) {
        last = top(through);
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          const __m512i own = _mm512_load_si512(tables.fours[k]);
          sink.put(k, r.of(own).product(_mm512_permutexvar_epi32(own, before), _mm512_load_si512(tables.triangle)));
        }
      } else {
        const __m512i move = r.product(_mm512_slli_epi32(before, 2), _mm512_set1_epi32(0x01020304));
        const __m512i reached = _mm512_add_epi32(prefix(move), last);
        const __m512i start = _mm512_sub_epi32(reached, move);
        last = top(reached);
        slope = top(through);
        const __m512i steps = _mm512_broadcast_i32x4(_mm_setr_epi32(1, 2, 3, 4));
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          const __m512i own = _mm512_load_si512(tables.fours[k]);
          const __m512i at = _mm512_permutexvar_epi32(own, start);
          sink.put(k, _mm512_add_epi32(r.of(own).product(at, _mm512_load_si512(tables.wedge)),
                                       _mm512_mullo_epi32(_mm512_permutexvar_epi32(own, before), steps)));
        }
      }
    }
    void next(In& in, int dense, int sparse, std::int32_t* q) { next(in, dense, sparse, ToIntegers{q}); }
  };
};
