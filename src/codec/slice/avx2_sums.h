// Sums of whole chunks with at most 29 planes a block, in stages, and without going through integers: residuals are
// added as planes, bit by bit, four blocks at a time. Between the stages planes lie in memory, block after block, so
// that none waits for the lengths of the blocks before. Included by avx2.cc, after the plane coder that works block by
// block and handles everything else.

/// The planes of all blocks of a sum, lowest first, and of every plane which of its bytes are not zero. Planes of a
/// block where nothing is are not filled in. May be read from any plane of a block on.
struct PlaneSet {
  static constexpr int most = 32;
  alignas(64) std::uint64_t plane[chunk_blocks + 1][most];
  alignas(64) std::uint8_t nonzero[most][chunk_blocks];
  int used = 8;  ///< planes from the lowest on, a multiple of 4: the others are zero, or, beyond eight, not filled in
};

/// How the planes are split; the masks of every block's planes, lowest first.
struct Places {
  alignas(64) std::uint8_t codes[64];
  alignas(32) std::uint8_t dense[chunk_blocks];
  alignas(32) std::uint8_t sparse[chunk_blocks];
  alignas(64) std::uint8_t masks[chunk_blocks + 1][PlaneSet::most];
  std::size_t total = 0;     ///< bytes of all sections, but for planes of marks
  std::uint32_t marked = 0;  ///< blocks that have one
  std::uint64_t mark_plane[chunk_blocks];
};

/// Of planes 4 k .. 4 k + 3: all ones in those below the number that is in all bytes of n.
__attribute__((always_inline)) inline __m256i planes_below(__m256i n, int k) {
  const long long each = 0x0101010101010101;
  return _mm256_cmpgt_epi8(
      n, _mm256_setr_epi64x(4 * k * each, (4 * k + 1) * each, (4 * k + 2) * each, (4 * k + 3) * each));
}

/// Of whole vectors. A memset() of a few hundred bytes becomes an instruction that is slow to begin.
template <class T, std::size_t N>
__attribute__((always_inline)) inline void clear(T (&at)[N]) {
  constexpr std::size_t bytes = N * sizeof(T);
  static_assert(bytes % 32 == 0);
#pragma GCC unroll 32
  for (std::size_t i = 0; i < bytes; i += 32) store256(reinterpret_cast<std::uint8_t*>(at) + i, _mm256_setzero_si256());
}

struct PlaneSums {
  /// Most planes of an operand's block: sums have codes.
  static constexpr int most = max_code_width - 1;

  /// The next eight of n masks; zeros behind the last.
  static std::uint64_t some_masks(const std::uint8_t* at, std::ptrdiff_t n) {
    return _bzhi_u64(load<std::uint64_t>(at), static_cast<unsigned>(n < 8 ? 8 * n : 64));
  }

  /// A chunk whose sparse planes have been expanded, one after another; where the next block's are.
  struct Operand {
    const Parsed* chunk;
    const std::uint8_t* dense;
    const std::uint64_t* sparse;
    Following::Lines following;
    bool raised = false;  ///< differences of its residuals are meant

    /// Planes of each block: sparse ones, and marks.
    alignas(32) std::uint8_t expanded[chunk_blocks];
    alignas(64) std::uint64_t planes[PlaneSet::most * (1 + chunk_blocks + 2)];
    alignas(64) std::uint64_t before[PlaneSet::most];  ///< of one that is raised: the planes of the block before

    void open(const Parsed& c) {
      chunk = &c;
      following = c.following.begin();
      dense = c.in.dense;
      sparse = planes + PlaneSet::most;
      std::memcpy(expanded, c.sparse, sizeof expanded);
      for (std::uint32_t m = c.fill_blocks; m != 0; m &= m - 1) ++expanded[_tzcnt_u32(m)];
      const std::ptrdiff_t n = c.in.bytes - c.in.masks;
      const std::uint8_t* at = c.in.bytes;
      const auto expand = [&](std::ptrdiff_t i, std::uint64_t mask) __attribute__((always_inline)) {
        store64(planes + PlaneSet::most + i, _mm_shuffle_epi8(load64(at), load64(expand_shuffles.of(mask))));
        at += _mm_popcnt_u64(mask);
      };
      std::ptrdiff_t i = 0;
      for (; i + 8 <= n; i += 8) {
#pragma GCC unroll 8
        for (int r = 0; r < 8; ++r) expand(i + r, c.in.masks[i + r]);
      }
      const std::uint64_t rest = some_masks(c.in.masks + i, n - i);
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) expand(i + r, rest >> (8 * r) & 255);
    }
    void pass(int b) {
      dense += 8 * chunk->dense[b];
      sparse += expanded[b];
    }
    /// Its first difference is zero.
    void raise() {
      raised = true;
      clear(before);
      const int d = chunk->dense[0];
      for (int r = 0; r < planes_of(0); ++r)
        before[r] = (r < d ? load<std::uint64_t>(dense + 8 * r) : sparse[r - d]) << 63;
    }
    /// Passes over blocks b to b + 3, which have no planes.
    void pass_empty(int b) {
      for (int j = 0; j < 4; ++j) pass(b + j);
      if (raised) clear(before);
    }
    /// Of all blocks.
    [[nodiscard]] __m256i planes_needed() const {
      const __m256i own = _mm256_add_epi8(load256(chunk->dense), load256(chunk->sparse));
      if (!raised) return own;
      const __m256i lane_before = _mm256_permute2x128_si256(own, own, 0x08);
      const __m256i with_before = _mm256_max_epu8(own, _mm256_alignr_epi8(own, lane_before, 15));
      const __m256i some = _mm256_cmpgt_epi8(with_before, _mm256_setzero_si256());
      return _mm256_sub_epi8(with_before, some);
    }
    [[nodiscard]] int planes_of(int b) const { return chunk->dense[b] + chunk->sparse[b]; }
    /// Positions of block b, the next one, whose residuals are not zero.
    [[nodiscard]] std::uint64_t any(int b) const {
      std::uint64_t all = 0;
      for (int r = 0; r < chunk->dense[b]; ++r) all |= load<std::uint64_t>(dense + 8 * r);
      for (int r = 0; r < chunk->sparse[b]; ++r) all |= sparse[r];
      return all;
    }
  };

  static void transpose(__m256i* x) {
    const __m256i a = _mm256_unpacklo_epi64(x[0], x[1]);
    const __m256i b = _mm256_unpackhi_epi64(x[0], x[1]);
    const __m256i c = _mm256_unpacklo_epi64(x[2], x[3]);
    const __m256i d = _mm256_unpackhi_epi64(x[2], x[3]);
    x[0] = _mm256_permute2x128_si256(a, c, 0x20);
    x[1] = _mm256_permute2x128_si256(b, d, 0x20);
    x[2] = _mm256_permute2x128_si256(a, c, 0x31);
    x[3] = _mm256_permute2x128_si256(b, d, 0x31);
  }

  template <int Planes>
  __attribute__((always_inline)) static void transpose_all(__m256i* x) {
#pragma GCC unroll 8
    for (int k = 0; k < Planes / 4; ++k) transpose(x + 4 * k);
  }

  /// The lowest planes of the next four blocks, b on; planes 4 k on of block b + j in register 4 k + j.
  template <int Planes>
  __attribute__((always_inline)) static void rows(Operand& o, int b, __m256i* x) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const int d = o.chunk->dense[b + j];
      const std::uint64_t* sparse = o.sparse - d;
      const __m256i dense_planes = all_bytes(o.chunk->dense[b + j]);
      const __m256i used_planes = _mm256_add_epi8(dense_planes, all_bytes(o.chunk->sparse[b + j]));
#pragma GCC unroll 8
      for (int k = 0; k < Planes / 4; ++k) {
        // No further past the end of a chunk than may be read.
        const int at = Planes <= 16 || 4 * k < d ? 32 * k : 0;
        const __m256i planes =
            _mm256_blendv_epi8(load256(sparse + 4 * k), load256(o.dense + at), planes_below(dense_planes, k));
        x[4 * k + j] = _mm256_and_si256(planes, planes_below(used_planes, k));
      }
      o.pass(b + j);
    }
  }
  /// The same plane of all four in one register.
  template <int Planes>
  __attribute__((always_inline)) static void take(Operand& o, int b, __m256i* x) {
    rows<Planes>(o, b, x);
    transpose_all<Planes>(x);
  }

  /// The same of each residual's difference to the one before it.
  template <int Planes>
  __attribute__((always_inline)) static void take_raised(Operand& o, int b, __m256i* x) {
    __m256i before[Planes];
    rows<Planes>(o, b, x);
#pragma GCC unroll 8
    for (int k = 0; k < PlaneSet::most / 4; ++k) {
      if (k >= Planes / 4) {
        store256(o.before + 4 * k, _mm256_setzero_si256());
        continue;
      }
      __m256i row = load256(o.before + 4 * k);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        before[4 * k + j] = or_of(_mm256_slli_epi64(x[4 * k + j], 1), _mm256_srli_epi64(row, 63));
        row = x[4 * k + j];
      }
      store256(o.before + 4 * k, row);
    }
    transpose_all<Planes>(x);
    transpose_all<Planes>(before);
    add<Planes, true>(x, before);
  }

  /// x += y, or x -= y, where the topmost plane of both is zero, so that the result fits. Bit r of a number is its
  /// zigzag plane r + 1 where it is not negative, the inverse where it is; plane 0 is the sign.
  template <int Planes, bool Subtract = false>
  __attribute__((always_inline)) static void add(__m256i* x, const __m256i* y) {
    const __m256i sign_x = x[0];
    const __m256i sign_y = y[0];
    __m256i carry = _mm256_setzero_si256();
#pragma GCC unroll 32
    for (int r = 0; r + 1 < Planes; ++r) {
      const __m256i a = _mm256_xor_si256(x[r + 1], sign_x);
      const __m256i b = _mm256_xor_si256(y[r + 1], sign_y);
      const __m256i differ = _mm256_xor_si256(a, b);
      x[r] = _mm256_xor_si256(differ, carry);
      carry = Subtract ? or_of(_mm256_andnot_si256(a, b), _mm256_andnot_si256(differ, carry))
                       : or_of(_mm256_and_si256(a, b), _mm256_and_si256(differ, carry));
    }
    const __m256i sign = _mm256_xor_si256(_mm256_xor_si256(sign_x, sign_y), carry);
#pragma GCC unroll 32
    for (int r = Planes - 1; r > 0; --r) x[r] = _mm256_xor_si256(x[r - 1], sign);
    x[0] = sign;
  }

  template <int Planes>
  __attribute__((always_inline)) static void keep(__m256i* x, PlaneSet& s, int b) {
#pragma GCC unroll 32
    for (int r = 0; r < Planes; ++r) {
      const auto zero = _mm256_movemask_epi8(_mm256_cmpeq_epi8(x[r], _mm256_setzero_si256()));
      store(s.nonzero[r] + b, ~static_cast<std::uint32_t>(zero));
    }
#pragma GCC unroll 8
    for (int k = 0; k < Planes / 4; ++k) {
      transpose(x + 4 * k);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) store256(s.plane[b + j] + 4 * k, x[4 * k + j]);
    }
  }

  /// Residuals of local integers as planes, lowest first.
  struct Local {
    alignas(64) std::uint64_t plane[chunk_blocks][PlaneSet::most];  // what lies above a block's planes is undefined
    alignas(32) std::uint8_t planes[chunk_blocks];
  };

  template <Predictor P>
  static void from_integers(const LocalTerm& local, Local& to) {
    for (int b = 0; b < chunk_blocks; ++b) {
      local.ahead.fetch(b);
      const Block64 r = Avx2::residual<P>(local.q->q + 64 * b, local.base);
      Bytes64 plane[4];
      const int groups = Avx2::narrow_planes(r, plane[0]) ? 1 : Avx2::wide_planes(r, plane);
      int w = 0;
      for (int g = 0; g < groups; ++g) {
        store256(to.plane[b] + 8 * g, plane[g].a);
        store256(to.plane[b] + 8 * g + 4, plane[g].b);
        const std::uint64_t nonzero = nonzero_bytes(plane[g]);
        w = nonzero != 0 ? 8 * g + used_planes(nonzero) : w;
      }
      to.planes[b] = static_cast<std::uint8_t>(w);
    }
  }

  template <int Planes>
  __attribute__((always_inline)) static void take(const Local& local, int b, __m256i* x) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
#pragma GCC unroll 8
      for (int k = 0; k < Planes / 4; ++k)
        x[4 * k + j] =
            _mm256_and_si256(load256(local.plane[b + j] + 4 * k), planes_below(all_bytes(local.planes[b + j]), k));
    transpose_all<Planes>(x);
  }

  /// The next four blocks of all terms, b on: local ones, if there are any, and n operands', of which, without, the
  /// first is not raised.
  template <int Planes>
  static void four_blocks(const Local* local, Operand* x, int n, int b, PlaneSet& s) {
    __m256i sum[Planes];
    __m256i one[Planes];
    int i = 0;
    if (local != nullptr) {
      take<Planes>(*local, b, sum);
    } else {
      take<Planes>(x[i++], b, sum);
    }
    for (; i < n; ++i) {
      x[i].raised ? take_raised<Planes>(x[i], b, one) : take<Planes>(x[i], b, one);
      add<Planes>(sum, one);
    }
    keep<Planes>(sum, s, b);
  }

  /// Of unsigned bytes.
  static int largest(__m256i bytes) {
    __m128i m = _mm_max_epu8(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    m = _mm_max_epu8(m, _mm_srli_epi16(m, 8));
    // The smallest of eight words is what one instruction finds.
    const __m128i low = _mm_set1_epi16(255);
    return 255 - (_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_sub_epi16(low, _mm_and_si128(m, low)))) & 255);
  }

  /// Planes that the sum of n operands' blocks, and local ones, may have; 0 where no term has any.
  struct Needs {
    alignas(32) std::uint8_t planes[chunk_blocks];
    int most = 0;
    Needs(const Local* local, const Operand* x, int n) {
      __m256i widest = local != nullptr ? load256(local->planes) : _mm256_setzero_si256();
      for (int i = 0; i < n; ++i) widest = _mm256_max_epu8(widest, x[i].planes_needed());
      const int terms = n + (local != nullptr ? 1 : 0);
      const auto more = static_cast<char>(32 - _lzcnt_u32(static_cast<unsigned>(terms - 1)));
      const __m256i sums = _mm256_andnot_si256(_mm256_cmpeq_epi8(widest, _mm256_setzero_si256()),
                                               _mm256_add_epi8(widest, _mm256_set1_epi8(more)));
      store256(planes, sums);
      most = largest(sums);
    }
  };

  /// False: the sum may have more planes than a code can say.
  static bool from_operands(const Local* local, Operand* x, int n, PlaneSet& s) {
    const Needs needs(local, x, n);
    if (needs.most > max_code_width) return false;
    s.used = (needs.most + 3) / 4 * 4;
    for (int r = 8; r < s.used; ++r) clear(s.nonzero[r]);
    for (int b = 0; b < chunk_blocks; b += 4) {
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < 4; ++j) x[i].following.fetch();
      const auto w = load<std::uint32_t>(needs.planes + b);
      const auto none_above = [w](std::uint32_t most) { return ((w + (127 - most) * 0x01010101U) & 0x80808080U) == 0; };
      if (none_above(4))
        for (int r = w == 0 ? 0 : 4; r < 8; ++r) store(s.nonzero[r] + b, std::uint32_t{0});
      if (w == 0) {
        for (int i = 0; i < n; ++i) x[i].pass_empty(b);
      } else if (none_above(4)) {
        four_blocks<4>(local, x, n, b, s);
      } else if (none_above(8)) {
        four_blocks<8>(local, x, n, b, s);
      } else if (none_above(12)) {
        four_blocks<12>(local, x, n, b, s);
      } else if (none_above(16)) {
        four_blocks<16>(local, x, n, b, s);
      } else if (none_above(24)) {
        four_blocks<24>(local, x, n, b, s);
      } else {
        four_blocks<32>(local, x, n, b, s);
      }
    }
    return true;
  }

  /// The same for chunks, and local integers. All have marks in the blocks of `fill`: those given, of local integers,
  /// or, without, those that it gets. False also where they differ.
  template <Predictor P, bool HasLocal>
  static bool from_terms(const LocalTerm* term, const Parsed* chunk, int n, std::uint32_t raised, Fill& fill,
                         PlaneSet& s) {
    Operand x[most_terms];
    const auto first = static_cast<int>(_tzcnt_u32(~raised));  // of the others, where one must be
    for (int i = 0; i < n; ++i) {
      const int k = i + first < n ? i + first : i + first - n;
      x[i].open(chunk[k]);
      if ((raised >> k & 1) != 0) x[i].raise();
    }
    if (fill.blocks != 0 && !same_marks(x, n, HasLocal, fill)) return false;
    if constexpr (!HasLocal) return from_operands(nullptr, x, n, s);
    Local local;
    from_integers<P>(*term, local);
    return from_operands(&local, x, n, s);
  }

  /// Whether the operands have the same marks in the blocks of `fill`, which all have marked: those that it has, or,
  /// without any, those that it gets. Which blocks they are, no branch can foresee.
  static bool same_marks(const Operand* x, int n, bool given, Fill& fill) {
    std::uint64_t plane[chunk_blocks];
    std::uint64_t marked[chunk_blocks];  // all ones where the block is
    for (int b = 0; b < chunk_blocks; ++b) {
      marked[b] = 0 - static_cast<std::uint64_t>(fill.blocks >> b & 1);
      if (given) plane[b] = mark_plane(fill.marks[b]);
    }
    std::uint64_t wrong = 0;
    for (int i = 0; i < n; ++i) {
      const std::uint64_t* at = x[i].sparse;
      for (int b = 0; b < chunk_blocks; ++b) {
        const std::uint64_t own = at[x[i].chunk->sparse[b]];
        at += x[i].expanded[b];
        if (i == 0 && !given) plane[b] = own;
        wrong |= ((own ^ plane[b]) | static_cast<std::uint64_t>(own == 0)) & marked[b];
      }
    }
    if (wrong != 0) return false;
    if (!given)
      for (int b = 0; b < chunk_blocks; ++b) fill.marks[b] = marks_of(plane[b]);
    return true;
  }

  /// Numbers of bits of the bytes.
  static __m256i bit_counts(__m256i v) {
    const __m256i of_nibble =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m256i nibble = _mm256_set1_epi8(15);
    return _mm256_add_epi8(_mm256_shuffle_epi8(of_nibble, _mm256_and_si256(v, nibble)),
                           _mm256_shuffle_epi8(of_nibble, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble)));
  }

  /// All blocks at a time, a byte for each.
  static Places place(const PlaneSet& s, const Fill& fill) {
    Places at;
    at.marked = fill.blocks;
    for (std::uint32_t m = fill.blocks; m != 0; m &= m - 1) {
      const auto b = _tzcnt_u32(m);
      at.mark_plane[b] = mark_plane(fill.marks[b]);
    }
    const __m256i zero = _mm256_setzero_si256();
    __m256i w = zero;
    __m256i d = zero;
    __m256i run = _mm256_set1_epi8(-1);  // blocks whose planes have all been dense
    for (int r = 0; r < s.used; ++r) {
      const __m256i mask = load256(s.nonzero[r]);
      w = _mm256_max_epu8(
          w, _mm256_andnot_si256(_mm256_cmpeq_epi8(mask, zero), _mm256_set1_epi8(static_cast<char>(r + 1))));
      const __m256i zeros = _mm256_xor_si256(mask, _mm256_set1_epi8(-1));
      const __m256i but_one = _mm256_and_si256(zeros, _mm256_add_epi8(zeros, _mm256_set1_epi8(-1)));
      run = _mm256_and_si256(run, _mm256_cmpeq_epi8(but_one, zero));
      d = _mm256_sub_epi8(d, run);
    }
    // What a code can count, as dense_planes() says.
    const __m256i six = _mm256_set1_epi8(6);
    const __m256i fewer = _mm256_andnot_si256(_mm256_cmpgt_epi8(w, _mm256_add_epi8(d, d)), _mm256_sub_epi8(w, six));
    d = _mm256_blendv_epi8(d, fewer, _mm256_cmpgt_epi8(_mm256_sub_epi8(w, d), six));
    const __m256i sparse = _mm256_sub_epi8(w, d);
    const __m256i top = _mm256_min_epu8(sparse, _mm256_set1_epi8(7));  // more than six only where none is dense
    store256(at.codes, or_of(w, _mm256_slli_epi16(top, 5)));
    store256(at.dense, d);
    store256(at.sparse, sparse);
    __m256i bytes = zero;
    for (int r = 0; r < s.used; ++r) {
      const __m256i dense = _mm256_cmpgt_epi8(d, _mm256_set1_epi8(static_cast<char>(r)));
      const __m256i counts = bit_counts(_mm256_andnot_si256(dense, load256(s.nonzero[r])));
      bytes = _mm256_add_epi64(bytes, _mm256_sad_epu8(counts, zero));
    }
    const __m256i of_planes = _mm256_sad_epu8(_mm256_add_epi8(sparse, _mm256_slli_epi16(d, 3)), zero);
    at.total = sum64(_mm256_add_epi64(bytes, of_planes));
    for (int r = 0; r < s.used; r += 8) masks_by_block(s.nonzero + r, at.masks[0] + r);
    return at;
  }
  static std::size_t sum64(__m256i v) {
    const __m128i q = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return static_cast<std::size_t>(_mm_cvtsi128_si64(q) + _mm_extract_epi64(q, 1));
  }

  /// Eight bytes of every block, from one row for each.
  static void masks_by_block(const std::uint8_t (*row)[chunk_blocks], std::uint8_t* to) {
    __m256i half[8];
    __m256i quarter[8];
    for (int r = 0; r < 8; r += 2) {
      half[r] = _mm256_unpacklo_epi8(load256(row[r]), load256(row[r + 1]));
      half[r + 1] = _mm256_unpackhi_epi8(load256(row[r]), load256(row[r + 1]));
    }
    // half[2 k + h]: planes 2 k and 2 k + 1 of blocks 8 h on, and of 16 + 8 h on.
    for (int h = 0; h < 2; ++h)
      for (int k = 0; k < 2; ++k) {
        quarter[4 * h + 2 * k] = _mm256_unpacklo_epi16(half[4 * k + h], half[4 * k + 2 + h]);
        quarter[4 * h + 2 * k + 1] = _mm256_unpackhi_epi16(half[4 * k + h], half[4 * k + 2 + h]);
      }
    // quarter[4 h + 2 k + i]: planes 4 k .. 4 k + 3 of blocks 8 h + 4 i on, and 16 more.
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < 2; ++i)
        for (int two = 0; two < 2; ++two) {
          const __m256i low = quarter[4 * h + i];
          const __m256i high = quarter[4 * h + 2 + i];
          const __m256i x = two == 0 ? _mm256_unpacklo_epi32(low, high) : _mm256_unpackhi_epi32(low, high);
          std::uint8_t* at = to + static_cast<std::ptrdiff_t>((8 * h + 4 * i + 2 * two) * PlaneSet::most);
          const __m128i later = _mm256_extracti128_si256(x, 1);
          store64(at, _mm256_castsi256_si128(x));
          store64(at + PlaneSet::most, _mm_unpackhi_epi64(_mm256_castsi256_si128(x), later));
          store64(at + 16 * PlaneSet::most, later);
          store64(at + 17 * PlaneSet::most, _mm_unpackhi_epi64(later, later));
        }
  }

  static std::uint64_t plane(const PlaneSet& s, int b, int r) { return s.plane[b][r]; }

  /// Copies n words, rounded up to eight, and no fewer than that.
  static void copy_words(void* to, const std::uint64_t* from, int n) {
    auto* at = static_cast<std::uint8_t*>(to);
    for (int i = 0; i == 0 || __builtin_expect(i < n, 0); i += 8) {
      store256(at + 8 * i, load256(from + i));
      store256(at + 8 * i + 32, load256(from + i + 4));
    }
  }

  /// The three sections.
  template <bool Marked>
  static std::uint8_t* write_sections(const PlaneSet& s, const Places& at, std::uint8_t* to) {
    alignas(64) std::uint64_t sparse[PlaneSet::most * (chunk_blocks + 1) + chunk_blocks];
    for (int b = 0; b < chunk_blocks; ++b) {
      copy_words(to, s.plane[b], at.dense[b]);
      to += 8 * at.dense[b];
    }
    const std::uint8_t* masks = to;
    std::uint64_t* end = sparse;
    for (int b = 0; b < chunk_blocks; ++b) {
      const int n = at.sparse[b];
      copy_words(end, s.plane[b] + at.dense[b], n);
      for (int i = 0; i == 0 || __builtin_expect(i < n, 0); i += 8)
        store(to + i, load<std::uint64_t>(at.masks[b] + at.dense[b] + i));
      end += n;
      to += n;
      if (Marked && (at.marked >> b & 1) != 0) {
        *end++ = at.mark_plane[b];
        *to++ = Avx2::mask_of(at.mark_plane[b]);
      }
    }
    return write_bytes(sparse, masks, end - sparse, to);
  }
  /// The bytes of n planes that are not zero.
  static std::uint8_t* write_bytes(const std::uint64_t* plane, const std::uint8_t* masks, std::ptrdiff_t n,
                                   std::uint8_t* to) {
    const auto compress = [&](std::ptrdiff_t i, std::uint64_t mask) __attribute__((always_inline)) {
      store64(to, _mm_shuffle_epi8(load64(plane + i), load64(compress_shuffles.of(mask))));
      to += _mm_popcnt_u64(mask);
    };
    std::ptrdiff_t i = 0;
    for (; i + 8 <= n; i += 8) {
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) compress(i + r, masks[i + r]);
    }
    const std::uint64_t rest = some_masks(masks + i, n - i);
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) compress(i + r, rest >> (8 * r) & 255);
    return to;
  }
};
