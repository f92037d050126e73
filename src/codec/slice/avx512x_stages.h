// Whole chunks with at most 16 planes a block, in stages: all blocks through one before the next. A block's way from
// integers to bytes is one long chain of dependent instructions; block by block it fills the processor's scheduler with
// instructions that wait. Encoding knows marks of fill values here, sums and decoding do not. Included by avx512x.cc,
// after the plane coder that works block by block and handles everything else.

/// The planes of all blocks, in two groups of eight, and which of their bytes are not zero. Where none of the upper
/// group is, its planes are not filled in.
struct PlaneSet {
  alignas(64) std::uint8_t plane[2][chunk_blocks][64];
  alignas(64) std::uint64_t nonzero[2][chunk_blocks];
  int groups = 1;  ///< how many are used
};

/// How the planes are split, and what each block takes in the three sections.
struct Places {
  alignas(64) std::uint64_t mask[2][chunk_blocks];    ///< of the sparse planes, lowest first
  alignas(64) std::uint64_t sparse[2][chunk_blocks];  ///< the same at the planes' own bytes
  alignas(32) std::uint8_t dense_bytes[2][chunk_blocks];
  alignas(32) std::uint8_t mask_bytes[2][chunk_blocks];
  alignas(32) std::uint8_t byte_bytes[2][chunk_blocks];
  alignas(64) std::uint8_t codes[64];
  std::size_t total = 0;  ///< bytes of all sections
  /// The planes of marks, one more for each block in the bitmap.
  std::uint32_t marked = 0;
  std::uint64_t mark_plane[chunk_blocks];
};

struct PlaneMaps {
  std::uint64_t zigzag = plane_matrix(zigzag_bits);
  std::uint64_t shift_up = plane_matrix(bits_up);
  std::uint64_t sign_up = plane_matrix(sign_to_all_bits);
  std::uint64_t sign_to_one = plane_matrix(sign_to_one_bit);
};
constexpr PlaneMaps maps;

struct Stages {
  static constexpr int most = 15;  ///< planes of a block that is added to another
  using Plane = Avx512xPlanes;
  using Halves = Plane::Halves;

  /// The bytes' value 8g+7-r stands at 8g+r before they are transposed.
  static void keep(PlaneSet& s, int g, int b, __m512i transposed_bytes) {
    const __m512i plane = _mm512_permutexvar_epi8(_mm512_load_si512(tables.to_planes), transposed_bytes);
    _mm512_store_si512(s.plane[g][b], plane);
    s.nonzero[g][b] = _mm512_test_epi8_mask(plane, plane);
  }
  static void keep_bytes(PlaneSet& s, int b, __m512i bytes) {
    keep(s, 0, b, transpose(bytes, maps.zigzag));
    s.nonzero[1][b] = 0;
  }
  static void keep_halves(PlaneSet& s, int b, const Halves& h) {
    keep(s, 0, b, _mm512_xor_si512(transpose(h.low, maps.shift_up), transpose(h.high, maps.sign_up)));
    keep(s, 1, b, _mm512_xor_si512(transpose(h.high, maps.zigzag), transpose(h.low, maps.sign_to_one)));
    s.groups = 2;
  }

  // ------------------------------------------------------------------------------------------- where planes come from

  /// 64 residuals as 32-bit integers, saturated to 16 bits.
  struct Words {
    __m512i a;
    __m512i b;
    Words(__m512i first, __m512i second) : a(first), b(second) {}
    explicit Words(const Block64& r) : a(_mm512_packs_epi32(r.v[0], r.v[1])), b(_mm512_packs_epi32(r.v[2], r.v[3])) {}
    /// Whether all lie in -2^bits .. 2^bits - 1.
    [[nodiscard]] bool fit(int bits) const {
      const __m512i bias = _mm512_set1_epi16(static_cast<short>(1 << bits));
      const __m512i any = _mm512_or_si512(_mm512_add_epi16(a, bias), _mm512_add_epi16(b, bias));
      return _mm512_test_epi16_mask(any, _mm512_set1_epi16(static_cast<short>(~0U << (bits + 1)))) == 0;
    }
    /// Value 8g+7-r at byte 8g+r.
    [[nodiscard]] __m512i bytes() const { return ordered(_mm512_packs_epi16(a, b)); }
    [[nodiscard]] Halves halves() const {
      const __m512i byte = _mm512_set1_epi16(255);
      return {ordered(_mm512_packus_epi16(_mm512_and_si512(a, byte), _mm512_and_si512(b, byte))),
              ordered(_mm512_packus_epi16(_mm512_srli_epi16(a, 8), _mm512_srli_epi16(b, 8)))};
    }
    static __m512i ordered(__m512i packed) {
      return _mm512_permutexvar_epi8(_mm512_load_si512(tables.from_packed), packed);
    }
  };
  /// A block of residuals that need more than eight planes. False: more than sixteen. Out of line: gcc would else do
  /// part of its work for every block.
  __attribute__((noinline)) static bool keep_wide(PlaneSet& s, int b, __m512i r0, __m512i r1, __m512i r2, __m512i r3,
                                                  __m512i words_a, __m512i words_b) {
    if (!Plane::fit16(r0, r1, r2, r3)) return false;
    keep_halves(s, b, Words(words_a, words_b).halves());
    return true;
  }

  /// Residuals of the integers. False: some need more planes.
  template <Predictor P>
  static bool from_integers(const Integers& q, std::int32_t base, Ahead ahead, PlaneSet& s) {
    for (int b = 0; b < chunk_blocks; ++b) {
      ahead.fetch(b);
      const Block64 r = Avx512Base::residual<P>(q.q + 64 * b, base);
      const Words words(r);
      if (__builtin_expect(words.fit(7), 1)) {
        keep_bytes(s, b, words.bytes());
      } else if (!keep_wide(s, b, r.v[0], r.v[1], r.v[2], r.v[3], words.a, words.b)) {
        return false;
      }
    }
    return true;
  }

  using Quantiser = Quantiser32<Elements::f32>;

  enum class Found { all, unknown, exceptions, wide };

  /// Residuals straight from f32 elements: quantising and transposing keep different ports of the processor busy.
  template <Predictor P, class Seen>
  static Found from_elements(const Quantiser& z, const void* x, std::int32_t first, Ahead ahead, PlaneSet& s) {
    constexpr Found failed = std::is_same_v<Seen, Quantiser::Checked> ? Found::exceptions : Found::unknown;
    const __m512i base = _mm512_set1_epi32(first);
    __m512i before = base;
    Seen seen(z);
    s.groups = 1;
    for (int b = 0; b < chunk_blocks; ++b) {
      ahead.fetch_line(b, 0);
      ahead.fetch_line(b, 1);
      Block64 r;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const __m512i q = z.one(x, 64 * b + 16 * k, seen);
        r.v[k] = residual_after<P>(before, q, base);
        before = q;
      }
      const Words words(r);
      if (__builtin_expect(words.fit(7), 1)) {
        keep_bytes(s, b, words.bytes());
      } else if (!keep_wide(s, b, r.v[0], r.v[1], r.v[2], r.v[3], words.a, words.b)) {
        return seen.bad(z) != 0 ? failed : Found::wide;
      }
      if (b % 4 == 3 && seen.bad(z) != 0) return failed;
    }
    return Found::all;
  }
  /// The same with the predictor that suits them. The base keeps the bias of the integers.
  static Found from_elements(const Params& p, const void* x, Ahead ahead, Choice<std::int32_t>& choice, PlaneSet& s) {
    const FlushSubnormals guard;
    const Quantiser z(p);
    const ChoiceSample sample([&](int i) { return z.integer(Narrow<Elements::f32>::load16(x, i)); });
    choice = sample.choose(Avx512Base::bias(p));
    const auto with = [&](auto seen) {
      return with_predictor(choice.predictor, [&](auto k) {
        return from_elements<k.value, decltype(seen)>(z, x, choice.base, ahead, s);
      });
    };
    if (p.proven != 0) {
      const Found found = with(Quantiser::Proven(z));
      if (found != Found::unknown) return found;
      if (p.all_proven()) return Found::exceptions;
    }
    return with(Quantiser::Checked(z));
  }

  /// Planes that a sum's blocks may have, local residuals aside.
  struct Needs {
    alignas(32) std::uint8_t planes[chunk_blocks];
    Needs(const Parsed* c, int n, int more) {
      __m256i widest = _mm256_setzero_si256();
      for (int i = 0; i < n; ++i)
        widest = _mm256_max_epu8(widest, _mm256_add_epi8(load256(c[i].dense), load256(c[i].sparse)));
      _mm256_store_si256(reinterpret_cast<__m256i*>(planes),
                         _mm256_add_epi8(widest, _mm256_set1_epi8(static_cast<char>(more))));
    }
    static __m256i load256(const std::uint8_t* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
  };

  template <Predictor P, bool HasLocal>
  static Words local_words(const LocalTerm* local, int b) {
    if constexpr (HasLocal) {
      local->ahead.fetch_first(b);
      return Words(Avx512Base::residual<P>(local->q->q + 64 * b, local->base));
    }
    return {_mm512_setzero_si512(), _mm512_setzero_si512()};
  }

  /// Passes over the marks of block b in all chunks. False: they are not the same, or none.
  template <bool HasLocal>
  static bool same_marks(const Plane::Blocks* x, const std::uint8_t** bytes, int n, int b, Fill& fill) {
    const std::uint64_t plane = HasLocal ? mark_plane(fill.marks[b]) : x[0].marks(b, bytes[0]);
    for (int i = HasLocal ? 0 : 1; i < n; ++i)
      if (x[i].marks(b, bytes[i]) != plane) return false;
    fill.marks[b] = marks_of(plane);
    return plane != 0;
  }

  /// Sums of n chunks' residuals, and of local ones. N: n where it is known, else 0. (A function of its own: in pieces,
  /// as compilers like to inline it, it is a fifth slower.)
  template <Predictor P, bool HasLocal, bool Marked, int N>
  __attribute__((noinline)) static bool sum_terms(const LocalTerm* local, const Parsed* c, int given_n, Fill& fill,
                                                  PlaneSet& s) {
    const int n = N != 0 ? N : given_n;
    const int more = 32 - static_cast<int>(_lzcnt_u32(static_cast<unsigned>(n - (HasLocal ? 0 : 1))));
    const Needs needs(c, n, more);
    Plane::Blocks x[N != 0 ? N : most_terms];
    const std::uint8_t* cursor[N != 0 ? N : most_terms];
    Following::Lines following[N != 0 ? N : most_terms];
    for (int i = 0; i < n; ++i) {
      x[i] = Plane::Blocks(c[i]);
      cursor[i] = c[i].in.bytes;
      following[i] = c[i].following.begin();
    }
    for (int b = 0; b < chunk_blocks; ++b) {
      for (int i = 0; i < n; ++i) following[i].fetch();
      const auto bytes = [&](int i) { return Plane::signed_bytes(x[i].planes(0, b, cursor[i])); };
      const auto halves = [&](int i) {
        const __m512i low = x[i].planes(0, b, cursor[i]);
        return Plane::signed_halves(low, x[i].planes(1, b, cursor[i]));
      };
      const Words words = local_words<P, HasLocal>(local, b);
      constexpr int first = HasLocal ? 0 : 1;
      if (__builtin_expect(needs.planes[b] <= 8 && (!HasLocal || words.fit(7 - more)), 1)) {
        __m512i sum = HasLocal ? words.bytes() : bytes(0);
        for (int i = first; i < n; ++i) sum = _mm512_add_epi8(sum, bytes(i));
        keep_bytes(s, b, sum);
      } else if (needs.planes[b] <= 16 && (!HasLocal || words.fit(15 - more))) {
        Halves sum = HasLocal ? words.halves() : halves(0);
        for (int i = first; i < n; ++i) sum = Plane::sum_halves(sum, halves(i));
        keep_halves(s, b, sum);
      } else {
        return false;
      }
      if constexpr (Marked)
        if ((fill.blocks >> b & 1) != 0 && !same_marks<HasLocal>(x, cursor, n, b, fill)) return false;
    }
    return true;
  }

  /// All have marks in the blocks of `fill`: those given, of local integers, or, without, those that it gets. False:
  /// they differ, or a block may need more than sixteen planes.
  template <Predictor P, bool HasLocal>
  static bool from_terms(const LocalTerm* local, const Parsed* c, int n, Fill& fill, PlaneSet& s) {
    constexpr int usual = HasLocal ? 1 : 2;
    if (__builtin_expect(fill.blocks != 0, 0)) return sum_terms<P, HasLocal, true, 0>(local, c, n, fill, s);
    return n == usual ? sum_terms<P, HasLocal, false, usual>(local, c, n, fill, s)
                      : sum_terms<P, HasLocal, false, 0>(local, c, n, fill, s);
  }

  /// Positions of a block whose residuals are not zero.
  static std::uint64_t any(const PlaneSet& s, const Places&, int b) {
    std::uint64_t all = 0;
    for (int g = 0; g < s.groups; ++g)
      if (s.nonzero[g][b] != 0)
        all |= static_cast<std::uint64_t>(_mm512_reduce_or_epi64(_mm512_load_si512(s.plane[g][b])));
    return all;
  }

  // ------------------------------------------------------------------------------------------- where planes go

  /// Eight blocks' counts as eight bytes.
  static void store_bytes(std::uint8_t* to, __m512i counts) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm512_cvtepi64_epi8(counts));
  }
  static __m512i all64(long long v) { return _mm512_set1_epi64(v); }
  /// Of a group: planes up to the last that has a non-zero byte.
  static __m512i used_planes(__m512i nonzero) {
    return _mm512_srli_epi64(_mm512_sub_epi64(all64(71), _mm512_lzcnt_epi64(nonzero)), 3);
  }
  /// See Avx512xPlanes::full_planes.
  static __m512i full_planes(__m512i nonzero) {
    const __m512i ones = all64(-1);
    const __m512i low = all64(0x0101010101010101);
    const __m512i with_top =
        _mm512_ternarylogic_epi64(nonzero, all64(static_cast<long long>(0x8080808080808080ULL)), ones, 0xCF);
    const __m512i sparse = _mm512_andnot_si512(nonzero, _mm512_sub_epi64(with_top, low));
    const __m512i below = _mm512_andnot_si512(sparse, _mm512_add_epi64(sparse, ones));
    return _mm512_srli_epi64(_mm512_popcnt_epi64(below), 3);
  }

  /// How many of the first n planes fall into a group.
  static __m512i in_group(__m512i n, int g) {
    const __m512i rest = _mm512_max_epi64(_mm512_sub_epi64(n, all64(8 * g)), _mm512_setzero_si512());
    return _mm512_min_epi64(rest, all64(8));
  }

  template <int Groups>
  static void place(const PlaneSet& s, Places& to) {
    __m512i total = _mm512_setzero_si512();
    for (int b = 0; b < chunk_blocks; b += 8) {
      __m512i nonzero[Groups];
      __m512i w = _mm512_setzero_si512();
      __m512i d = _mm512_setzero_si512();
      for (int g = 0; g < Groups; ++g) {
        nonzero[g] = _mm512_load_si512(s.nonzero[g] + b);
        const __mmask8 any = _mm512_test_epi64_mask(nonzero[g], nonzero[g]);
        w = _mm512_mask_add_epi64(w, any, used_planes(nonzero[g]), all64(8 * g));
        d = _mm512_mask_add_epi64(d, _mm512_cmpeq_epi64_mask(d, all64(8 * g)), d, full_planes(nonzero[g]));
      }
      // What a code can count, as dense_planes() says. With eight planes in all, more than six sparse ones leave none
      // or one dense, so that is less than half of them.
      const __m512i six_less = _mm512_sub_epi64(w, all64(6));
      const __mmask8 countable = _mm512_cmpge_epi64_mask(d, six_less);
      if constexpr (Groups == 1) {
        d = _mm512_maskz_mov_epi64(countable, d);
      } else {
        const __mmask8 upper = _mm512_cmpge_epi64_mask(_mm512_add_epi64(d, d), w);
        d = _mm512_mask_mov_epi64(_mm512_maskz_mov_epi64(upper, six_less), countable, d);
      }
      const __m512i sparse_planes = _mm512_sub_epi64(w, d);
      const __mmask8 none_dense = _mm512_testn_epi64_mask(d, d);
      const __m512i s_field =
          _mm512_mask_mov_epi64(sparse_planes, none_dense, _mm512_min_epu64(sparse_planes, all64(7)));
      store_bytes(to.codes + b, _mm512_or_si512(w, _mm512_slli_epi64(s_field, 5)));
      for (int g = 0; g < Groups; ++g) {
        const __m512i dense_here = Groups == 1 ? d : in_group(d, g);
        const __m512i planes_here = Groups == 1 ? w : in_group(w, g);
        const __m512i dense_bytes = _mm512_slli_epi64(dense_here, 3);
        const __m512i mask = _mm512_srlv_epi64(nonzero[g], dense_bytes);
        const __m512i sparse = _mm512_sllv_epi64(mask, dense_bytes);
        _mm512_store_si512(to.mask[g] + b, mask);
        _mm512_store_si512(to.sparse[g] + b, sparse);
        store_bytes(to.dense_bytes[g] + b, dense_bytes);
        const __m512i masks = _mm512_sub_epi64(planes_here, dense_here);
        const __m512i bytes = _mm512_popcnt_epi64(mask);
        store_bytes(to.mask_bytes[g] + b, masks);
        store_bytes(to.byte_bytes[g] + b, bytes);
        total = _mm512_add_epi64(_mm512_add_epi64(total, dense_bytes), _mm512_add_epi64(masks, bytes));
      }
    }
    to.total = static_cast<std::size_t>(_mm512_reduce_add_epi64(total));
  }

  /// As the function of this name in fast_codec.h, by ranks in a set of 256 bits, and without a detour over memory.
  static std::uint8_t* put_codes(const std::uint8_t* codes, Word& word, std::uint8_t* p) {
    __m512i word_of[4];
    __m512i bit[4];
    __m512i set[4] = {};
    for (int i = 0; i < 4; ++i) {
      const __m512i c = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + 8 * i)));
      word_of[i] = _mm512_srli_epi64(c, 6);
      bit[i] = _mm512_sllv_epi64(all64(1), _mm512_and_si512(c, all64(63)));
      for (int j = 0; j < 4; ++j)
        set[j] = _mm512_mask_or_epi64(set[j], _mm512_cmpeq_epi64_mask(word_of[i], all64(j)), set[j], bit[i]);
    }
    long long present[4];
    long long before[4];
    long long k = 0;
    for (int j = 0; j < 4; ++j) {
      present[j] = _mm512_reduce_or_epi64(set[j]);
      before[j] = k;
      k += _mm_popcnt_u64(static_cast<std::uint64_t>(present[j]));
    }
    word.index_planes = index_planes_for(static_cast<int>(k));
    if (word.index_planes == Word::plain_codes) {
      std::memcpy(p, codes, chunk_blocks);
      return p + chunk_blocks;
    }
    word.dictionary = static_cast<std::uint32_t>(k);
    const __m512i sets = _mm512_setr_epi64(present[0], present[1], present[2], present[3], 0, 0, 0, 0);
    const __m512i counts = _mm512_setr_epi64(before[0], before[1], before[2], before[3], 0, 0, 0, 0);
    __m128i index[4];
    for (int i = 0; i < 4; ++i) {
      const __m512i lower =
          _mm512_and_si512(_mm512_permutexvar_epi64(word_of[i], sets), _mm512_sub_epi64(bit[i], all64(1)));
      index[i] = _mm512_cvtepi64_epi8(
          _mm512_add_epi64(_mm512_popcnt_epi64(lower), _mm512_permutexvar_epi64(word_of[i], counts)));
    }
    const __m256i all =
        _mm256_set_m128i(_mm_unpacklo_epi64(index[2], index[3]), _mm_unpacklo_epi64(index[0], index[1]));
    for (int j = 0; j < 4; ++j) store(p + 4 * j, _mm256_movepi8_mask(_mm256_slli_epi16(all, 7 - j)));
    p += 4 * word.index_planes;
    for (int j = 0; j < 4; ++j) {
      const __m512i of_word =
          _mm512_add_epi8(_mm512_load_si512(tables.ascending), _mm512_set1_epi8(static_cast<char>(64 * j)));
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(p + before[j]),
          _mm512_castsi512_si128(_mm512_maskz_compress_epi8(static_cast<std::uint64_t>(present[j]), of_word)));
    }
    store(p + k, std::uint32_t{0});
    return p + pad4(static_cast<std::size_t>(k));
  }

  /// Whether no block has more than 32: of stores half as long half as many cross a line.
  template <int Groups>
  static bool are_short(const std::uint8_t (&bytes)[2][chunk_blocks]) {
    __m256i longest = Needs::load256(bytes[0]);
    for (int g = 1; g < Groups; ++g) longest = _mm256_max_epu8(longest, Needs::load256(bytes[g]));
    return _mm256_cmpgt_epu8_mask(longest, _mm256_set1_epi8(32)) == 0;
  }
  template <bool Short>
  static void store_planes(std::uint8_t* to, __m512i v) {
    if constexpr (Short) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(v));
    } else {
      _mm512_storeu_si512(to, v);
    }
  }
  template <int Groups, bool Short, class Fetch>
  static std::uint8_t* write_dense(const PlaneSet& s, const Places& at, std::uint8_t* to, Fetch ahead) {
    for (int b = 0; b < chunk_blocks; ++b) {
      ahead.fetch_line(b, 2);
      for (int g = 0; g < Groups; ++g) {
        store_planes<Short>(to, _mm512_load_si512(s.plane[g][b]));
        to += at.dense_bytes[g][b];
      }
    }
    return to;
  }
  template <int Groups, bool Marked, bool Short, class Fetch>
  static std::uint8_t* write_bytes(const PlaneSet& s, const Places& at, std::uint8_t* to, Fetch ahead) {
    for (int b = 0; b < chunk_blocks; ++b) {
      ahead.fetch_line(b, 3);
      for (int g = 0; g < Groups; ++g) {
        store_planes<Short>(to, _mm512_maskz_compress_epi8(at.sparse[g][b], _mm512_load_si512(s.plane[g][b])));
        to += at.byte_bytes[g][b];
      }
      if (Marked && (at.marked >> b & 1) != 0) {
        const std::uint8_t mask = mask_of(at.mark_plane[b]);
        store(to, _pext_u64(at.mark_plane[b], Avx512Base::spread(mask)));
        to += _mm_popcnt_u32(mask);
      }
    }
    return to;
  }

  /// The three sections. Stores run up to 64 bytes over, so a section is complete before the next begins.
  template <int Groups, bool Marked, class Fetch>
  static std::uint8_t* write_groups(const PlaneSet& s, const Places& at, std::uint8_t* to, Fetch ahead) {
    to = are_short<Groups>(at.dense_bytes) ? write_dense<Groups, true>(s, at, to, ahead)
                                           : write_dense<Groups, false>(s, at, to, ahead);
    for (int b = 0; b < chunk_blocks; ++b) {
      for (int g = 0; g < Groups; ++g) {
        store(to, at.mask[g][b]);
        to += at.mask_bytes[g][b];
      }
      if (Marked && (at.marked >> b & 1) != 0) *to++ = mask_of(at.mark_plane[b]);
    }
    return are_short<Groups>(at.byte_bytes) ? write_bytes<Groups, Marked, true>(s, at, to, ahead)
                                            : write_bytes<Groups, Marked, false>(s, at, to, ahead);
  }
  /// Which bytes of a plane are not zero.
  static std::uint8_t mask_of(std::uint64_t plane) {
    const __m128i p = _mm_cvtsi64_si128(static_cast<long long>(plane));
    return static_cast<std::uint8_t>(_mm_test_epi8_mask(p, p));
  }

  static Places place(const PlaneSet& s, const Fill& fill) {
    Places at;
    s.groups == 1 ? place<1>(s, at) : place<2>(s, at);
    at.marked = fill.blocks;
    for (std::uint32_t m = fill.blocks; m != 0; m &= m - 1) {
      const auto b = _tzcnt_u32(m);
      at.mark_plane[b] = mark_plane(fill.marks[b]);
      at.total += 1 + static_cast<std::size_t>(_mm_popcnt_u32(mask_of(at.mark_plane[b])));
    }
    return at;
  }
  static void count_planes(const PlaneSet& s, const Places& at, std::size_t& dense, std::size_t& sparse) {
    for (int g = 0; g < s.groups; ++g)
      for (int b = 0; b < chunk_blocks; ++b) {
        dense += at.dense_bytes[g][b] / 8U;
        sparse += at.mask_bytes[g][b];
      }
  }
  static constexpr bool writes_fetch = true;
  template <bool Marked, class Fetch = FetchNothing>
  static std::uint8_t* write_sections(const PlaneSet& s, const Places& at, std::uint8_t* to, Fetch ahead = {}) {
    return s.groups == 1 ? write_groups<1, Marked>(s, at, to, ahead) : write_groups<2, Marked>(s, at, to, ahead);
  }

  // ------------------------------------------------------------------------------------------- from planes to integers

  /// All blocks' integers, to what `to` gives for each block. No block has more planes than so many digits can hold.
  /// Planes are read a block ahead of their sums: both are chains of their own, and take turns so that stores past the
  /// caches, which are slow, are spread evenly. Marked: `fill` gets the marks of its blocks.
  template <Predictor P, int Groups, bool Marked, class To>
  static void integers(const Parsed& c, To to, Fill& fill) {
    In in = c.in;
    Plane::Chain<P> chain(c.choice.base);
    Plane::Digits<Groups> ahead = read_digits<Groups, Marked>(in, c, 0, fill);
    for (int b = 0; b < chunk_blocks; ++b) {
      const Plane::Digits<Groups> now = ahead;
      if (b + 1 < chunk_blocks) ahead = read_digits<Groups, Marked>(in, c, b + 1, fill);
      if constexpr (Groups > 1) {
        if (has_two_digits(c, b)) {
          chain.follow(now, Plane::sink(to.block(b)));
          continue;
        }
      }
      chain.follow(Plane::Digits<1>{{now.digit[0]}}, Plane::sink(to.block(b)));
    }
  }
  static bool has_two_digits(const Parsed& c, int b) { return c.dense[b] + c.sparse[b] > 8; }
  /// Of block b. Only the lower ones where all are.
  template <int Groups, bool Marked>
  __attribute__((always_inline)) static Plane::Digits<Groups> read_digits(In& in, const Parsed& c, int b, Fill& fill) {
    Plane::Digits<Groups> d;
    if (Groups > 1 && has_two_digits(c, b)) {
      d = Plane::read_digits<Groups>(in, c.dense[b], c.sparse[b]);
    } else {
      d.digit[0] = Plane::read_digits<1>(in, c.dense[b], c.sparse[b]).digit[0];
    }
    if constexpr (Marked)
      if ((c.fill_blocks >> b & 1) != 0) fill.marks[b] = marks_of(Plane::get_plane(in));
    return d;
  }
};
