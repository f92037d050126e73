// Whole chunks with at most 16 planes a block, in stages: all blocks through one before the next. A block's way from
// integers to bytes is one long chain of dependent instructions; block by block it fills the processor's scheduler with
// instructions that wait. Encoding knows marks of fill values here, sums and decoding do not. Included by avx512x.cc,
// after the plane coder that works block by block and handles everything else.

struct PlaneMaps {
  std::uint64_t zigzag = plane_matrix(zigzag_bits);
  std::uint64_t shift_up = plane_matrix(bits_up);
  std::uint64_t sign_up = plane_matrix(sign_to_all_bits);
  std::uint64_t sign_to_one = plane_matrix(sign_to_one_bit);
};
constexpr PlaneMaps maps;

struct Stages : StagedSections {
  static constexpr int most = 15;  ///< planes of a block that is added to another
  using Plane = Avx512xPlanes;
  using Halves = Plane::Halves;

  /// The bytes' value 8g+7-r stands at 8g+r before they are transposed.
  static void keep(PlaneSet& s, int g, int b, __m512i transposed_bytes) {
    const __m512i plane = _mm512_permutexvar_epi8(_mm512_load_si512(tables.to_planes), transposed_bytes);
    _mm512_store_si512(s.plane[group_at(g, b)], plane);
    s.nonzero[group_at(g, b)] = _mm512_test_epi8_mask(plane, plane);
  }
  static void keep_bytes(PlaneSet& s, int b, __m512i bytes) {
    keep(s, 0, b, transpose(bytes, maps.zigzag));
    s.nonzero[group_at(1, b)] = 0;
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
      ahead.fetch_first(b);
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

  /// Planes that a sum's blocks may have, local residuals aside. Of raised chunks also the block before counts.
  struct Needs {
    alignas(32) std::uint8_t planes[chunk_blocks];
    template <class IsRaised>
    Needs(const Parsed* c, int n, IsRaised is_raised, int more) {
      __m256i widest = _mm256_setzero_si256();
      for (int i = 0; i < n; ++i) {
        __m256i own = _mm256_add_epi8(load256(c[i].dense), load256(c[i].sparse));
        if (is_raised(i)) {
          const __m256i lane_before = _mm256_permute2x128_si256(own, own, 0x08);
          own = _mm256_add_epi8(_mm256_max_epu8(own, _mm256_alignr_epi8(own, lane_before, 15)), _mm256_set1_epi8(1));
        }
        widest = _mm256_max_epu8(widest, own);
      }
      _mm256_store_si256(reinterpret_cast<__m256i*>(planes),
                         _mm256_add_epi8(widest, _mm256_set1_epi8(static_cast<char>(more))));
    }
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

  /// Residuals as differences of those of the predictor below, block after block; the first one is zero.
  struct Raising {
    Halves before;  ///< the block before
    bool wide = true;

    void start(const Halves& first) {
      before.low = _mm512_permutexvar_epi8(_mm512_set1_epi8(7), first.low);
      before.high = _mm512_permutexvar_epi8(_mm512_set1_epi8(7), first.high);
    }
    /// Of each value the one before it.
    static __m512i shift(__m512i now, __m512i before) {
      return _mm512_permutex2var_epi8(now, _mm512_load_si512(tables.value_before), before);
    }
    /// Where the block before has no more than eight planes, either.
    __m512i bytes(__m512i now) {
      const __m512i r = _mm512_sub_epi8(now, shift(now, before.low));
      before.low = now;
      wide = false;
      return r;
    }
    Halves halves(const Halves& now) {
      if (!wide) before.high = _mm512_movm_epi8(_mm512_movepi8_mask(before.low));
      const __m512i low = shift(now.low, before.low);
      const __m512i high = _mm512_sub_epi8(now.high, shift(now.high, before.high));
      const __mmask64 borrow = _mm512_cmplt_epu8_mask(now.low, low);
      before = now;
      wide = true;
      return {_mm512_sub_epi8(now.low, low), _mm512_mask_add_epi8(high, borrow, high, _mm512_set1_epi8(-1))};
    }
  };

  /// Sums of n chunks' residuals, and of local ones. N: n where it is known, else 0. Raised: some chunks are, of two
  /// the second. (A function of its own: in pieces, as compilers like to inline it, it is a fifth slower.)
  template <Predictor P, bool HasLocal, bool Marked, int N, bool Raised = false>
  __attribute__((noinline)) static bool sum_terms(const LocalTerm* local, const Parsed* c, int given_n,
                                                  std::uint32_t raised, Fill& fill, PlaneSet& s) {
    const int n = N != 0 ? N : given_n;
    const int more = 32 - static_cast<int>(_lzcnt_u32(static_cast<unsigned>(n - (HasLocal ? 0 : 1))));
    const auto is_raised = [&](int i) { return Raised && (N == 2 ? i == 1 : (raised >> i & 1) != 0); };
    const Needs needs(c, n, is_raised, more);
    Plane::Blocks x[N != 0 ? N : most_terms];
    const std::uint8_t* cursor[N != 0 ? N : most_terms];
    Following::Lines following[N != 0 ? N : most_terms];
    for (int i = 0; i < n; ++i) {
      x[i] = Plane::Blocks(c[i]);
      cursor[i] = c[i].in.bytes;
      following[i] = c[i].following.begin();
    }
    Raising raising[!Raised ? 1 : N != 0 ? N : most_terms];
    if constexpr (Raised) {
      if (needs.planes[0] > 16) return false;
      for (int i = 0; i < n; ++i) {
        if (!is_raised(i)) continue;
        const std::uint8_t* at = cursor[i];
        const __m512i low = x[i].planes(0, 0, at);
        raising[i].start(Plane::signed_halves(low, x[i].planes(1, 0, at)));
      }
    }
    for (int b = 0; b < chunk_blocks; ++b) {
      for (int i = 0; i < n; ++i) following[i].fetch();
      const auto bytes = [&](int i) {
        const __m512i r = Plane::signed_bytes(x[i].planes(0, b, cursor[i]));
        return is_raised(i) ? raising[i].bytes(r) : r;
      };
      const auto halves = [&](int i) {
        const __m512i low = x[i].planes(0, b, cursor[i]);
        const Halves r = Plane::signed_halves(low, x[i].planes(1, b, cursor[i]));
        return is_raised(i) ? raising[i].halves(r) : r;
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
  static bool from_terms(const LocalTerm* local, const Parsed* c, int n, std::uint32_t raised, Fill& fill,
                         PlaneSet& s) {
    constexpr int usual = HasLocal ? 1 : 2;
    if (__builtin_expect(n != usual, 0)) return from_terms_of<P, HasLocal, 0>(local, c, n, raised, fill, s);
    return from_terms_of<P, HasLocal, usual>(local, c, n, raised, fill, s);
  }
  template <Predictor P, bool HasLocal, int N>
  static bool from_terms_of(const LocalTerm* local, const Parsed* c, int n, std::uint32_t raised, Fill& fill,
                            PlaneSet& s) {
    const auto sum = [&](auto raises, const Parsed* terms) {
      return __builtin_expect(fill.blocks != 0, 0)
                 ? sum_terms<P, HasLocal, true, N, raises.value>(local, terms, n, raised, fill, s)
                 : sum_terms<P, HasLocal, false, N, raises.value>(local, terms, n, raised, fill, s);
    };
    if constexpr (HasLocal ? N == 0 && P != Predictor::none : true) {  // else there is nothing to raise
      if (raised == 1 && N == 2) {
        const Parsed turned[] = {c[1], c[0]};
        return sum(std::true_type(), turned);
      }
      if (raised != 0) return sum(std::true_type(), c);
    }
    return sum(std::false_type(), c);
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
