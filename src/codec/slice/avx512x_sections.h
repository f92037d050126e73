// From planes to bytes, for the stages of avx512x_stages.h: where the planes of all blocks of a chunk go, and the
// passes that put them there. Included by avx512x.cc, before those.

/// The planes of all blocks, in two groups of eight, and which of their bytes are not zero. Where none of the upper
/// group is, its planes are not filled in. Group g of block b lies at chunk_blocks * g + b.
struct PlaneSet {
  alignas(64) std::uint8_t plane[2 * chunk_blocks][64];
  alignas(64) std::uint64_t nonzero[2 * chunk_blocks];
  int groups = 1;  ///< how many are used
};

constexpr int group_at(int g, int b) { return chunk_blocks * g + b; }

/// How the planes are split, and what each block takes in the three sections.
struct Places {
  alignas(64) std::uint64_t mask[2 * chunk_blocks];    ///< of the sparse planes, lowest first
  alignas(64) std::uint64_t sparse[2 * chunk_blocks];  ///< the same at the planes' own bytes
  alignas(64) std::uint8_t dense_bytes[2 * chunk_blocks];
  alignas(64) std::uint8_t mask_bytes[2 * chunk_blocks];
  alignas(64) std::uint8_t byte_bytes[2 * chunk_blocks];
  alignas(64) std::uint8_t codes[64];
  std::uint8_t used[2 * chunk_blocks + 16];  ///< groups that are written, in the order of blocks: all lower ones, and
  int used_groups = 0;                       ///< upper ones that have planes
  std::size_t total = 0;                     ///< bytes of all sections
  /// The planes of marks, one more for each block in the bitmap.
  std::uint32_t marked = 0;
  std::uint64_t mark_plane[chunk_blocks];
};

struct StagedSections {
  static std::uint64_t plane(const PlaneSet& s, int b, int r) {
    return load<std::uint64_t>(s.plane[group_at(r / 8, b)] + static_cast<std::ptrdiff_t>(8 * (r % 8)));
  }

  /// The planes of a group, also of one that is not filled in.
  static __m512i group(const PlaneSet& s, int g, int b) {
    return _mm512_maskz_loadu_epi8(s.nonzero[group_at(g, b)], s.plane[group_at(g, b)]);
  }
  /// All planes of block b in one.
  static std::uint64_t any_plane(const PlaneSet& s, int b) {
    __m512i all = _mm512_load_si512(s.plane[group_at(0, b)]);
    if (s.groups == 2) all = _mm512_or_si512(all, group(s, 1, b));
    return static_cast<std::uint64_t>(_mm512_reduce_or_epi64(all));
  }
  /// Positions of block b whose bits differ from those of the position before in any plane.
  static std::uint64_t any_change(const PlaneSet& s, int b) {
    __m512i changes = _mm512_setzero_si512();
    for (int g = 0; g < s.groups; ++g) {
      const __m512i now = group(s, g, b);
      const __m512i before = b == 0 ? _mm512_slli_epi64(now, 63) : group(s, g, b - 1);
      changes = _mm512_or_si512(changes, _mm512_xor_si512(now, _mm512_shldi_epi64(now, before, 1)));
    }
    return static_cast<std::uint64_t>(_mm512_reduce_or_epi64(changes));
  }

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

  /// Of eight blocks from b on, those in `upper` have planes in the upper group.
  static void use(int b, __mmask8 upper, Places& to) {
    const __m128i groups =
        _mm_setr_epi8(0, chunk_blocks, 1, chunk_blocks + 1, 2, chunk_blocks + 2, 3, chunk_blocks + 3, 4,
                      chunk_blocks + 4, 5, chunk_blocks + 5, 6, chunk_blocks + 6, 7, chunk_blocks + 7);
    const auto used = static_cast<__mmask16>(_pdep_u32(upper, 0xAAAA) | 0x5555);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to.used + to.used_groups),
                     _mm_maskz_compress_epi8(used, _mm_add_epi8(groups, _mm_set1_epi8(static_cast<char>(b)))));
    to.used_groups += static_cast<int>(_mm_popcnt_u32(used));
  }

  template <int Groups>
  static void place(const PlaneSet& s, Places& to) {
    __m512i total = _mm512_setzero_si512();
    for (int b = 0; b < chunk_blocks; b += 8) {
      __m512i nonzero[Groups];
      __m512i w = _mm512_setzero_si512();
      __m512i d = _mm512_setzero_si512();
      for (int g = 0; g < Groups; ++g) {
        nonzero[g] = _mm512_load_si512(s.nonzero + group_at(g, b));
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
        const int at = group_at(g, b);
        _mm512_store_si512(to.mask + at, mask);
        _mm512_store_si512(to.sparse + at, sparse);
        store_bytes(to.dense_bytes + at, dense_bytes);
        const __m512i masks = _mm512_sub_epi64(planes_here, dense_here);
        const __m512i bytes = _mm512_popcnt_epi64(mask);
        store_bytes(to.mask_bytes + at, masks);
        store_bytes(to.byte_bytes + at, bytes);
        total = _mm512_add_epi64(_mm512_add_epi64(total, dense_bytes), _mm512_add_epi64(masks, bytes));
      }
      if constexpr (Groups == 2) use(b, _mm512_cmpgt_epi64_mask(w, all64(8)), to);
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
  static bool are_short(const std::uint8_t* bytes) {
    __m256i longest = load256(bytes);
    for (int g = 1; g < Groups; ++g) longest = _mm256_max_epu8(longest, load256(bytes + group_at(g, 0)));
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
  /// put(group) for the groups that are written in order, fetch(b) meanwhile for each block, and end(b) behind those of
  /// a block where there may be marks. Of upper groups there are often few; which of them, no branch can foresee.
  /// All have to be inline: gcc drops a function that only fetches, and keeps what others change in memory.
  template <int Groups, bool Marked, class Fetch, class Put, class End>
  __attribute__((always_inline)) static void each_used(const Places& at, Fetch fetch, Put put, End end) {
    if constexpr (Groups == 2 && !Marked) {
      for (int k = 0; k < chunk_blocks; ++k) {
        fetch(k);
        put(at.used[k]);
      }
      for (int k = chunk_blocks; k < at.used_groups; ++k) put(at.used[k]);
    } else {
      for (int b = 0; b < chunk_blocks; ++b) {
        fetch(b);
        for (int g = 0; g < Groups; ++g) put(group_at(g, b));
        if (Marked && (at.marked >> b & 1) != 0) end(b);
      }
    }
  }
  static void nothing(int) {}

  template <int Groups, bool Short, class Fetch>
  static std::uint8_t* write_dense(const PlaneSet& s, const Places& at, std::uint8_t* to, Fetch ahead) {
    const auto put = [&](int i) __attribute__((always_inline)) {
      store_planes<Short>(to, _mm512_load_si512(s.plane[i]));
      to += at.dense_bytes[i];
    };
    each_used<Groups, false>(at, [&](int b) __attribute__((always_inline)) { ahead.fetch_line(b, 2); }, put, nothing);
    return to;
  }
  template <int Groups, bool Marked>
  static std::uint8_t* write_masks(const Places& at, std::uint8_t* to) {
    const auto put = [&](int i) __attribute__((always_inline)) {
      store(to, at.mask[i]);
      to += at.mask_bytes[i];
    };
    each_used<Groups, Marked>(at, nothing, put,
                              [&](int b) __attribute__((always_inline)) { *to++ = mask_of(at.mark_plane[b]); });
    return to;
  }
  template <int Groups, bool Marked, bool Short, class Fetch>
  static std::uint8_t* write_bytes(const PlaneSet& s, const Places& at, std::uint8_t* to, Fetch ahead) {
    const auto put = [&](int i) __attribute__((always_inline)) {
      store_planes<Short>(to, _mm512_maskz_compress_epi8(at.sparse[i], _mm512_load_si512(s.plane[i])));
      to += at.byte_bytes[i];
    };
    const auto put_marks = [&](int b) __attribute__((always_inline)) {
      const std::uint8_t mask = mask_of(at.mark_plane[b]);
      store(to, _pext_u64(at.mark_plane[b], Avx512Base::spread(mask)));
      to += _mm_popcnt_u32(mask);
    };
    each_used<Groups, Marked>(
        at, [&](int b) __attribute__((always_inline)) { ahead.fetch_line(b, 3); }, put, put_marks);
    return to;
  }

  /// The three sections. Stores run up to 64 bytes over, so a section is complete before the next begins.
  template <int Groups, bool Marked, class Fetch>
  static std::uint8_t* write_groups(const PlaneSet& s, const Places& at, std::uint8_t* to, Fetch ahead) {
    to = are_short<Groups>(at.dense_bytes) ? write_dense<Groups, true>(s, at, to, ahead)
                                           : write_dense<Groups, false>(s, at, to, ahead);
    to = write_masks<Groups, Marked>(at, to);
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
  static constexpr bool writes_fetch = true;
  template <bool Marked, class Fetch = FetchNothing>
  static std::uint8_t* write_sections(const PlaneSet& s, const Places& at, std::uint8_t* to, Fetch ahead = {}) {
    return s.groups == 1 ? write_groups<1, Marked>(s, at, to, ahead) : write_groups<2, Marked>(s, at, to, ahead);
  }

 protected:
  static __m256i load256(const std::uint8_t* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
};
