// A chunk's bytes: putting sections together behind a head, and finding them again, for integers I of 32 or 64 bits.
// Included by fast_codec.h, inside each SIMD target's anonymous namespace and target region.

/// Where the three sections of a chunk are being written, or read.
struct Out {
  std::uint8_t* dense;
  std::uint8_t* masks;
  std::uint8_t* bytes;
};
struct In {
  const std::uint8_t* dense;
  const std::uint8_t* masks;
  const std::uint8_t* bytes;
};

/// w planes, the low d of them dense; and the code that says so (of no meaning beyond max_code_width).
struct Split {
  int w;
  int d;
  std::uint8_t code;
  Split(int planes, int dense) : w(planes), d(dense), code(make_code(planes, dense)) {}
  Split(int planes, int dense, std::uint8_t c) : w(planes), d(dense), code(c) {}
};

/// The integers of a chunk with room before them for the two that a chain starts from.
struct alignas(64) Integers {
  std::int32_t before[16];
  std::int32_t q[chunk_values];
  std::int32_t after[16];
  void start(std::int32_t base) { before[14] = before[15] = base; }
};

/// A chunk's exceptions when all of them are one value.
struct Fill {
  std::uint32_t blocks = 0;
  std::uint64_t value = 0;  ///< as stored: element bits, or for sums those of a double
  std::uint64_t marks[chunk_blocks];
};
constexpr Fill no_fill{};

/// An element of e bytes, by its bits.
inline std::uint64_t element_at(const std::uint8_t* x, int i, int e) {
  const std::uint8_t* at = x + static_cast<std::ptrdiff_t>(i) * e;
  if (e == 4) return load<std::uint32_t>(at);
  return e == 8 ? load<std::uint64_t>(at) : load<std::uint16_t>(at);
}
inline void put_element(std::uint8_t* y, int i, int e, std::uint64_t bits) {
  std::uint8_t* at = y + static_cast<std::ptrdiff_t>(i) * e;
  if (e == 4) {
    store(at, static_cast<std::uint32_t>(bits));
  } else if (e == 8) {
    store(at, bits);
  } else {
    store(at, static_cast<std::uint16_t>(bits));
  }
}

/// Calls f(position) for every mark of block b.
template <class F>
void each_mark(std::uint64_t marks, int b, F f) {
  for (; marks != 0; marks &= marks - 1) f(64 * b + __builtin_ctzll(marks));
}

/// Positions of block b that a chunk of so many elements does not have.
inline std::uint64_t behind(int count, int b) {
  const int n = count - 64 * b;
  return n >= 64 ? 0 : n <= 0 ? ~std::uint64_t{0} : ~std::uint64_t{0} << n;
}

/// A fill value as a number.
inline double fill_as_double(const Params& p, std::uint64_t bits) {
  if (p.shape.sum) return __builtin_bit_cast(double, bits);
  if (p.grid.dtype == DType::f32) return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits));
  return element_value(p.grid.dtype, bits);
}

/// Whether a fill value is one by right: an operand's that an encoder would find on the grid counts as its grid point.
/// Most are beyond the grid.
inline bool is_exception(const Params& p, std::uint64_t fill) {
  if (p.shape.sum) return true;
  const double end = p.grid.step * static_cast<double>(std::int64_t{2} << p.grid.qbits);
  return !(__builtin_fabs(fill_as_double(p, fill)) <= end) || !is_on_grid(p, fill);
}

/// Row c has bit c set: the OR of rows is a set of codes, without a chain of dependent look-ups.
struct CodeSets {
  alignas(32) std::uint64_t row[256][4];
  constexpr CodeSets() : row() {
    for (unsigned c = 0; c < 256; ++c) row[c][c / 64] = std::uint64_t{1} << (c % 64);
  }
};
constexpr CodeSets code_sets;

/// The distinct codes in ascending order. Returns their number.
template <class V>
int find_codes(const std::uint8_t* codes, std::uint8_t* dictionary) {
  std::uint64_t present[4] = {};
  if constexpr (requires { V::find_set(codes, present); }) {
    V::find_set(codes, present);
  } else {
    for (int b = 0; b < chunk_blocks; ++b)
      for (int i = 0; i < 4; ++i) present[i] |= code_sets.row[codes[b]][i];
  }
  int k = 0;
  for (int i = 0; i < 4; ++i)
    for (std::uint64_t m = present[i]; m != 0; m &= m - 1)
      dictionary[k++] = static_cast<std::uint8_t>(64 * i + __builtin_ctzll(m));
  return k;
}

/// The 32 codes at p, as the word then says. Returns their end.
template <class V>
std::uint8_t* put_codes(const std::uint8_t* codes, Word& word, std::uint8_t* p) {
  std::uint8_t dictionary[chunk_blocks + 4];
  const int k = find_codes<V>(codes, dictionary);
  word.index_planes = index_planes_for(k);
  if (word.index_planes == Word::plain_codes) {
    std::memcpy(p, codes, chunk_blocks);
    return p + chunk_blocks;
  }
  word.dictionary = static_cast<std::uint32_t>(k);
  V::put_indices(codes, dictionary, k, p);
  p += 4 * word.index_planes;
  store(dictionary + k, std::uint32_t{0});
  std::memcpy(p, dictionary, 16);
  return p + pad4(static_cast<std::size_t>(k));
}

/// All that comes before the entries: the word, the base, the fill value, and the codes. Returns its end.
template <class V, class I>
std::uint8_t* write_head(Choice<I> choice, const Fill& fill, int fill_bytes, const std::uint8_t* codes,
                         std::uint8_t* to) {
  Word word{.predictor = choice.predictor, .long_base = !Word::fits(choice.base), .has_fill = fill.blocks != 0};
  word.base = word.long_base ? 0 : static_cast<std::int32_t>(choice.base);
  std::uint8_t* p = to + 4;
  if (word.long_base) {
    store(p, choice.base);
    p += sizeof(I);
  }
  if (word.has_fill) {
    store(p, fill.blocks);
    store(p + 4, fill.value);
    p += 4 + fill_bytes;
  }
  if constexpr (requires { V::put_codes(codes, word, p); }) {
    p = V::put_codes(codes, word, p);
  } else {
    p = put_codes<V>(codes, word, p);
  }
  store(to, word.pack());
  return p;
}

/// Pads a chunk that ends at p. Returns its size.
inline std::size_t close(std::uint8_t* to, std::uint8_t* p) {
  store(p, std::uint32_t{0});
  return pad4(static_cast<std::size_t>(p - to));
}

/// All codes are zero: with no marks, the chunk is constant.
inline bool flat(const std::uint8_t* codes) {
  return (load<std::uint64_t>(codes) | load<std::uint64_t>(codes + 8) | load<std::uint64_t>(codes + 16) |
          load<std::uint64_t>(codes + 24)) == 0;
}

/// All codes are the same.
inline bool alike(const std::uint8_t* codes) {
  const std::uint64_t first = codes[0] * std::uint64_t{0x0101010101010101};
  std::uint64_t other = 0;
  for (int b = 0; b < chunk_blocks; b += 8) other |= load<std::uint64_t>(codes + b) ^ first;
  return other == 0;
}

/// Collects codes and sections of integers of `bits`, then puts the chunk together.
template <int bits>
struct WriterOf {
  alignas(64) std::uint8_t codes[64];
  std::uint32_t entries[chunk_blocks];
  int entry_count = 0;
  alignas(64) std::uint8_t dense[chunk_blocks * bits * 8 + 64];
  alignas(64) std::uint8_t masks[chunk_blocks * (bits + 1) + 64];
  alignas(64) std::uint8_t bytes[chunk_blocks * (bits + 1) * 8 + 64];
  Out out{dense, masks, bytes};

  void put_code(int b, Split s) {
    codes[b] = s.code;
    if (__builtin_expect(s.w > max_code_width, 0)) put_entry(b, {s.w, s.d, Extra::wide, 0});
  }
  void put_entry(int b, Entry e) {
    codes[b] = code_extended;
    entries[entry_count++] = e.pack();
  }

  /// Bytes of the three sections.
  [[nodiscard]] std::size_t coded() const {
    return static_cast<std::size_t>((out.dense - dense) + (out.masks - masks) + (out.bytes - bytes));
  }

  template <class V, class I>
  std::size_t finish(Choice<I> choice, const Fill& fill, int fill_bytes, std::uint8_t* to) {
    std::uint8_t* p = write_head<V>(choice, fill, fill_bytes, codes, to);
    std::memcpy(p, entries, 4 * static_cast<std::size_t>(entry_count));
    p += 4 * entry_count;
    p = V::copy(p, dense, out.dense - dense);
    p = V::copy(p, masks, out.masks - masks);
    p = V::copy(p, bytes, out.bytes - bytes);
    return close(to, p);
  }
};
using Writer = WriterOf<32>;

template <class I>
std::size_t write_constant(I q, std::uint8_t* to) {
  const bool fits = Word::fits(q);
  store(to, Word{.kind = Kind::constant, .long_base = !fits, .base = fits ? static_cast<std::int32_t>(q) : 0}.pack());
  if (fits) return 4;
  store(to + 4, q);
  return 4 + sizeof q;
}

/// The elements as they are, of `bytes` in all.
inline std::size_t write_raw(const void* x, std::size_t bytes, std::uint8_t* to) {
  store(to, Word{.kind = Kind::raw}.pack());
  std::memcpy(to + 4, x, bytes);
  for (std::size_t i = bytes; i < pad4(bytes); ++i) to[4 + i] = 0;
  return 4 + pad4(bytes);
}

/// The elements of a chunk; in `buffer`, with the last one repeated, where they are fewer than a chunk has.
inline const void* repeat_last(const void* x, int count, int bytes, std::uint8_t* buffer) {
  if (count == chunk_values) return x;
  std::memcpy(buffer, x, static_cast<std::size_t>(count * bytes));
  for (int i = count; i < chunk_values; ++i)
    std::memcpy(buffer + i * bytes, buffer + (count - 1) * bytes, static_cast<std::size_t>(bytes));
  return buffer;
}

/// Where a raw chunk's elements lie. Null: it is none that is whole.
inline const std::uint8_t* raw_elements(const Params& p, ChunkBytes in, int count) {
  const std::size_t bytes = static_cast<std::size_t>(count * p.shape.element_bytes);
  if (p.shape.sum || in.size != 4 + pad4(bytes)) return nullptr;
  return Word::unpack(load<std::uint32_t>(in.data)).kind == Kind::raw ? in.data + 4 : nullptr;
}

/// What lies behind a chunk of a sum, most likely the next one: fetched while this one is worked on. Few lines can be
/// on their way at a time, and whatever comes after one too many waits: of long chunks each block fetches some.
struct Following {
  const std::uint8_t* at = nullptr;
  std::size_t size = 0;

  /// What each block fetches, one after the other.
  struct Lines {
    const std::uint8_t* at;
    std::size_t step;
    __attribute__((always_inline)) void fetch() {
      __builtin_prefetch(at);
      if (step > 64) __builtin_prefetch(at + 64);
      at += step;
    }
  };
  [[nodiscard]] __attribute__((always_inline)) Lines begin() const {
    if (size > fetched_at_once) return {at, (size + chunk_blocks - 1) / chunk_blocks};
    fetch_all();
    return {at, 0};
  }
  __attribute__((always_inline)) void fetch_all() const {
    for (std::size_t i = 0; i < size; i += 64) __builtin_prefetch(at + i);
  }
};

/// Where the next chunk is likely to be written, in as many bytes as this one, fetched in the two passes that write it.
struct FollowingRoom {
  const std::uint8_t* at;
  std::size_t step;
  FollowingRoom(const std::uint8_t* from, std::size_t size) : at(from), step(size / (2 * chunk_blocks) + 1) {}
  __attribute__((always_inline)) void fetch_line(int b, int line) const {
    __builtin_prefetch(at + step * static_cast<std::size_t>((line - 2) * chunk_blocks + b), 1);
  }
};

/// A coded chunk whose sections have been found to lie within its bytes.
struct Sections {
  Kind kind = Kind::coded;
  alignas(32) std::uint8_t dense[chunk_blocks];  // planes per block, dense and sparse
  alignas(32) std::uint8_t sparse[chunk_blocks];
  std::uint32_t fill_blocks = 0;
  std::uint64_t fill_value = 0;
  In in{};
  Following following;
};
template <class I>
struct ParsedAs : Sections {
  Choice<I> choice;
};
using Parsed = ParsedAs<std::int32_t>;

enum class Parse { ok, rare, corrupt };

/// The first residual: bit 0 of all planes of block 0. In a chain of differences it is zero.
inline std::int64_t first_residual(const Sections& c) {
  std::uint64_t z = 0;
  for (int r = 0; r < c.dense[0]; ++r) z |= std::uint64_t{c.in.dense[8 * r] & 1U} << r;
  const std::uint8_t* byte = c.in.bytes;
  for (int r = 0; r < c.sparse[0]; ++r) {
    if ((c.in.masks[r] & 1) != 0) z |= std::uint64_t{*byte & 1U} << (c.dense[0] + r);
    byte += __builtin_popcount(c.in.masks[r]);
  }
  return static_cast<std::int64_t>(z >> 1 ^ (0U - (z & 1)));
}

/// Planes of the block that has most, and how many blocks have none.
struct Extent {
  int widest = 0;
  int empty = 0;
  explicit Extent(const Sections& c) {
    std::uint8_t most = 0;
    std::uint8_t none = 0;
    for (int b = 0; b < chunk_blocks; ++b) {
      const auto w = static_cast<std::uint8_t>(c.dense[b] + c.sparse[b]);
      most = w > most ? w : most;
      none = static_cast<std::uint8_t>(none + (w == 0));
    }
    widest = most;
    empty = none;
  }
};

/// A stored fill value; in sums as adding its terms would leave it: no negative zero, and one NaN.
inline std::uint64_t read_fill_value(const Params& p, const std::uint8_t* at) {
  if (!p.shape.sum) return p.shape.element_bytes == 8 ? load<std::uint64_t>(at) : load<std::uint32_t>(at);
  const auto v = load<double>(at);
  if (v == 0) return 0;
  return v == v ? load<std::uint64_t>(at) : std::uint64_t{0x7FF8} << 48;
}

/// A chunk whose values are all exceptions: as if all blocks were marked, and nothing else.
inline Parse parse_fill(const Params& p, ChunkBytes in, Sections& c) {
  const bool eight = p.shape.sum || p.shape.element_bytes == 8;
  if (p.shape.exact_only || in.size != (eight ? 12U : 8U)) return Parse::corrupt;
  c.fill_value = read_fill_value(p, in.data + 4);
  if (p.shape.element_bytes == 2 && !eight && c.fill_value > 0xFFFF) return Parse::corrupt;
  c.fill_blocks = ~0U;
  return Parse::ok;
}

/// What the blocks of a chunk hold beside residuals and a fill value.
struct ExactParts {
  Extra extra[chunk_blocks];
  std::size_t bytes[chunk_blocks];       ///< of the block's part of the section
  const std::uint8_t* at[chunk_blocks];  ///< where that lies
  std::uint32_t whole = 0;               ///< blocks that are lossless or raw: no residuals
  std::uint32_t listed = 0;              ///< blocks with a plane of marks and values of their own: listed, or terms
};

/// Whether such a block may be in such a chunk (docs/format.md, section 7).
template <class I>
bool valid_extra(const Params& p, Predictor predictor, bool fill, const Entry& e) {
  const auto element = static_cast<std::size_t>(p.shape.element_bytes);
  if (fill || p.shape.exact_only || p.shape.sum != (e.extra == Extra::terms)) return false;
  if (e.extra != Extra::lossless && e.extra != Extra::raw) return e.extra <= Extra::raw;
  if (predictor == Predictor::second) return false;
  const std::size_t bytes = 4 * std::size_t{e.exact_units};
  if (e.extra == Extra::raw) return e.w == 0 && bytes == block_values * element;
  return sizeof(I) >= element && bytes == pad4(element);
}

/// The entries of extended blocks, from `at` on. `exact` is null where blocks with exact parts are rare.
template <class I>
Parse read_entries(const Params& p, Predictor predictor, const std::uint8_t* codes, const std::uint8_t*& at,
                   const std::uint8_t* end, ParsedAs<I>& c, std::size_t& dense, std::size_t& sparse,
                   ExactParts* exact) {
  for (int b = 0; b < chunk_blocks; ++b) {
    if ((codes[b] & 31) != 31) continue;
    if (codes[b] != code_extended || end - at < 4) return Parse::corrupt;
    const Entry e = Entry::unpack(load<std::uint32_t>(at));
    at += 4;
    if (e.extra != Extra::wide && exact == nullptr) return Parse::rare;
    if (e.w > integer_bits<I> || e.d > e.w) return Parse::corrupt;
    c.dense[b] = static_cast<std::uint8_t>(e.d);
    c.sparse[b] = static_cast<std::uint8_t>(e.w - e.d);
    dense += static_cast<std::size_t>(e.d);
    sparse += static_cast<std::size_t>(e.sparse());
    if (e.extra == Extra::wide) {
      if (e.exact_units != 0) return Parse::corrupt;
      continue;
    }
    if (!valid_extra<I>(p, predictor, (c.fill_blocks >> b & 1) != 0, e)) return Parse::corrupt;
    exact->extra[b] = e.extra;
    exact->bytes[b] = 4 * std::size_t{e.exact_units};
    (e.marked() ? exact->listed : exact->whole) |= 1U << b;
  }
  return Parse::ok;
}

/// Finds the blocks' exact parts between `at` and `end`. False: they are not just what is there.
inline bool place_parts(const std::uint8_t* at, const std::uint8_t* end, ExactParts& exact) {
  for (std::uint32_t m = exact.whole | exact.listed; m != 0; m &= m - 1) {
    const int b = __builtin_ctz(m);
    if (static_cast<std::size_t>(end - at) < exact.bytes[b]) return false;
    exact.at[b] = at;
    at += exact.bytes[b];
  }
  return at == end;
}

/// Finds a chunk's sections. Blocks with exact parts are rare, unless `exact` is there to take them.
template <class V, class I>
Parse parse(const Params& p, ChunkBytes in, ParsedAs<I>& c, ExactParts* exact = nullptr) {
  if (in.readable < read_slack || in.size < 4) return Parse::rare;
  const std::uint8_t* at = in.data + 4;
  const std::uint8_t* end = in.data + in.size;
  const Word word = Word::unpack(load<std::uint32_t>(in.data));
  c.kind = word.kind;
  c.fill_blocks = 0;
  c.following = {end, in.size};
  if (word.kind == Kind::raw) return Parse::rare;
  if (word.kind == Kind::fill) return parse_fill(p, in, c);
  c.choice = {word.predictor, word.base};
  if (word.long_base) {
    c.choice.base = load<I>(at);
    at += sizeof(I);
  }
  if (word.kind == Kind::constant) return at == end ? Parse::ok : Parse::corrupt;
  if (!word.valid_codes()) return Parse::corrupt;
  if (word.has_fill) {
    if (p.shape.exact_only) return Parse::corrupt;
    c.fill_blocks = load<std::uint32_t>(at);
    const bool eight = p.shape.sum || p.shape.element_bytes == 8;
    c.fill_value = read_fill_value(p, at + 4);
    if (p.shape.element_bytes == 2 && !eight && c.fill_value > 0xFFFF) return Parse::corrupt;
    at += eight ? 12 : 8;
  }
  alignas(64) std::uint8_t codes[64];
  if (word.index_planes == Word::plain_codes) {
    std::memcpy(codes, at, chunk_blocks);
    at += chunk_blocks;
  } else {
    if (!V::look_up_codes(at, word.index_planes, word.dictionary, codes)) return Parse::corrupt;
    at += 4 * word.index_planes + pad4(word.dictionary);
  }
  // Up to here at most 64 bytes were read; the slack covers them.
  int extended = 0;
  std::size_t dense = 0;
  std::size_t sparse = 0;
  if (!V::split_codes(codes, c.dense, c.sparse, dense, sparse, extended)) return Parse::corrupt;
  if (extended != 0) {
    const Parse found = read_entries(p, word.predictor, codes, at, end, c, dense, sparse, exact);
    if (found != Parse::ok) return found;
  }
  sparse += static_cast<std::size_t>(__builtin_popcount(c.fill_blocks));
  const std::size_t fixed = static_cast<std::size_t>(at - in.data) + 8 * dense + sparse;
  if (fixed > in.size) return Parse::corrupt;
  c.in = {at, at + 8 * dense, at + 8 * dense + sparse};
  const std::size_t size = pad4(fixed + V::count_bits(c.in.masks, sparse));
  bool chain = word.predictor != Predictor::none;
  if (exact == nullptr) {
    if (size != in.size) return Parse::corrupt;
  } else {
    if (size > in.size || !place_parts(in.data + size, end, *exact)) return Parse::corrupt;
    chain = chain && (exact->whole & 1) == 0;
  }
  return !chain || first_residual(c) == 0 ? Parse::ok : Parse::corrupt;
}
