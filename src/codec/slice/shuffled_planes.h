// The plane coder's parts on 64-bit words and shuffles of eight bytes, for x86 sets that cannot compress and expand
// bytes in one instruction. Included inside a target region and an anonymous namespace, after fast_codec.h's types.

inline __m128i load64(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
inline void store64(void* p, __m128i v) { _mm_storel_epi64(static_cast<__m128i*>(p), v); }

/// The planes among eight that are not stored sparsely: the run from the bottom with at least 7 of 8 bytes not zero.
inline int full_planes(std::uint64_t nonzero) {
  const std::uint64_t zeros = ~nonzero;
  const std::uint64_t two_zeros = zeros & ((zeros | 0x8080808080808080ULL) - 0x0101010101010101ULL);
  return static_cast<int>(_tzcnt_u64(two_zeros)) / 8;
}

/// Planes up to the topmost that is not zero.
inline int used_planes(std::uint64_t nonzero) { return 8 - static_cast<int>(_lzcnt_u64(nonzero)) / 8; }

/// How many of the first n planes fall into the g-th group of eight.
inline int below(int n, int g) { return _mm_popcnt_u32(_bzhi_u32(~0U, static_cast<unsigned>(n)) >> (8 * g) & 255); }

/// Shifts by n bytes, n <= 8.
inline std::uint64_t bytes_up(std::uint64_t v, int n) { return v << (4 * n) << (4 * n); }
inline std::uint64_t bytes_down(std::uint64_t v, int n) { return v >> (4 * n) >> (4 * n); }

/// Of the eight planes that have been stored at o.dense, keeps `dense` and appends the other's masks and non-zero
/// bytes; `planes` count.
__attribute__((always_inline)) inline void put_stored_planes(Out& o, std::uint64_t nonzero, int planes, int dense) {
  const std::uint64_t sparse = bytes_down(nonzero, dense);
  store(o.masks, sparse);
  // The masks in their planes' places: those of dense planes are zero, so four or eight can be written alike.
  const std::uint64_t mask = bytes_up(sparse, dense);
  std::uint8_t* to = o.bytes;
  const auto put_four = [&](const std::uint8_t* at, std::uint32_t masks) {
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t m = masks >> (8 * r) & 255;
      store64(to, _mm_shuffle_epi8(load64(at + 8 * r), load64(compress_shuffles.of(m))));
      to += _mm_popcnt_u32(m);
    }
  };
  put_four(o.dense, static_cast<std::uint32_t>(mask));
  if (planes > 4) put_four(o.dense + 32, static_cast<std::uint32_t>(mask >> 32));
  o.dense += 8 * dense;
  o.masks += planes - dense;
  o.bytes = to;
}

/// Up to eight planes whose low `dense` ones are left zero, in pairs.
struct SparsePlanes {
  __m128i pair[4];
};
__attribute__((always_inline)) inline SparsePlanes get_sparse_planes(In& in, int dense, int sparse) {
  const std::uint64_t packed = _bzhi_u64(load<std::uint64_t>(in.masks), static_cast<unsigned>(8 * sparse));
  const std::uint64_t mask = bytes_up(packed, dense);
  const std::uint8_t* at = in.bytes;
  const auto get_four = [&](std::uint32_t masks, __m128i* pair) {
    __m128i plane[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const std::uint32_t m = masks >> (8 * r) & 255;
      plane[r] = _mm_shuffle_epi8(load64(at), load64(expand_shuffles.of(m)));
      at += _mm_popcnt_u32(m);
    }
    pair[0] = _mm_unpacklo_epi64(plane[0], plane[1]);
    pair[1] = _mm_unpacklo_epi64(plane[2], plane[3]);
  };
  SparsePlanes s;
  get_four(static_cast<std::uint32_t>(mask), s.pair);
  if (dense + sparse > 4) {
    get_four(static_cast<std::uint32_t>(mask >> 32), s.pair + 2);
  } else {
    s.pair[2] = s.pair[3] = _mm_setzero_si128();
  }
  in.masks += sparse;
  in.bytes = at;
  return s;
}
