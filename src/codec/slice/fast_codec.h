// Encoding and decoding chunks on 32-bit integers, written once over a vector policy V (such as portable_policy.h has).
// Included by each SIMD target inside its own anonymous namespace and target region. Elements that are stored as they
// are, but for those of one fill value, are in fast_exact.h, sums in fast_sums.h, 64-bit integers in fast_wide.h. What
// none of these knows is handed to the reference, which defines the bytes.
//
//   elements <-V::quantise, V::dequantise-> 2048 integers <-V::put, V::Chain-> planes <-this file-> bytes

#include "codec/slice/fast_chunk.h"

/// Where the next chunk's elements lie: fetched while this one's are worked on, block by block. The hardware foresees
/// no further than the end of a page.
struct Ahead {
  const std::uint8_t* elements;
  int bytes;
  bool spread;  ///< whether all passes over a chunk's blocks fetch some of the lines, of elements of four bytes
  Ahead(const void* chunk, int element_bytes)
      : elements(static_cast<const std::uint8_t*>(chunk) + chunk_values * element_bytes),
        bytes(element_bytes),
        spread(element_bytes == 4 && few_lines_on_their_way()) {}
  /// Inline, or gcc takes it for a function without effect and drops it.
  __attribute__((always_inline)) void fetch(int b) const {
    const std::uint8_t* at = elements + 64 * b * bytes;
    __builtin_prefetch(at);
    __builtin_prefetch(at + 64);
    if (bytes < 4) return;
    __builtin_prefetch(at + 128);
    __builtin_prefetch(at + 192);
    if (bytes < 8) return;
    for (int i = 256; i < 512; i += 64) __builtin_prefetch(at + i);
  }
  /// What the first pass fetches: all, or two lines.
  __attribute__((always_inline)) void fetch_first(int b) const {
    if (!spread) return fetch(b);
    fetch_line(b, 0);
    fetch_line(b, 1);
  }
  /// One of the four lines that block b has of elements of four bytes.
  __attribute__((always_inline)) void fetch_line(int b, int line) const {
    __builtin_prefetch(elements + (64 * b + 16 * line) * bytes);
  }
};

struct FetchNothing {
  void fetch_line(int, int) const {}
};

/// Local integers as a term of a sum, with the bias that they have. The first residual starts from `base`.
struct LocalTerm {
  const Integers* q;
  std::int32_t base;
  Ahead ahead;
};

/// Calls f with the predictor as a compile-time constant, `value`.
template <Predictor P>
struct PredictorConstant {
  static constexpr Predictor value = P;
};
template <class F>
auto with_predictor(Predictor p, F f) {
  switch (p) {
    case Predictor::none:
      return f(PredictorConstant<Predictor::none>{});
    case Predictor::first:
      return f(PredictorConstant<Predictor::first>{});
    default:
      return f(PredictorConstant<Predictor::second>{});
  }
}

template <class V>
struct FastWide;
template <class V>
struct FastExact;

template <class V>
struct FastCodec {
  using R = typename V::R;

  static bool bit(std::uint32_t blocks, int b) { return (blocks >> b & 1) != 0; }

  /// Integers may carry a bias that differences do not notice (V::bias); bases lose it where they are written.
  static std::int32_t bias(const Params& p) {
    if constexpr (requires { V::bias(p); }) return V::bias(p);
    return 0;
  }
  static Choice<std::int32_t> choose(Integers& q, std::int32_t bias) {
    if constexpr (requires { V::choose(q, bias); }) {
      return V::choose(q, bias);
    } else {
      return V::choose(q);
    }
  }
  static std::int32_t mean(const std::int32_t* q, std::int32_t bias) {
    if constexpr (requires { V::mean(q, bias); }) {
      return V::mean(q, bias);
    } else {
      return V::mean(q);
    }
  }
  static std::int32_t wrap_add(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
  static std::int32_t wrap_sub(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
  }

  // ------------------------------------------------------------------------------------------------- encoding

  /// Elements -> integers; `fill` describes the exceptions. False: they are more than one value.
  static bool load_elements(const Params& p, const void* x, Integers& q, Fill& fill, bool exceptions = false) {
    fill.blocks = 0;
    if (!exceptions && V::quantise(p, x, q.q)) return true;
    if constexpr (requires { V::find_marks(p, x, fill.marks, q.q); }) {
      V::find_marks(p, x, fill.marks, q.q);
    } else {
      V::find_marks(p, x, fill.marks);
    }
    if (!find_fill(p, x, fill)) return false;
    hold(q.q, fill.marks, bias(p));
    return true;
  }

  static bool find_fill(const Params& p, const void* x, Fill& fill) {
    std::uint32_t blocks = 0;
    for (int b = 0; b < chunk_blocks; ++b) blocks |= static_cast<std::uint32_t>(fill.marks[b] != 0) << b;
    fill.blocks = blocks;
    if (blocks == 0) return true;
    const int b = __builtin_ctz(blocks);
    fill.value =
        element_at(static_cast<const std::uint8_t*>(x), 64 * b + __builtin_ctzll(fill.marks[b]), p.shape.element_bytes);
    return V::marked_equal(x, fill.marks, fill.value, p.shape.element_bytes);
  }

  /// `none` where all are marked.
  template <class I>
  static I first_unmarked(const I* q, const std::uint64_t* marks, I none) {
    for (int b = 0; b < chunk_blocks; ++b)
      if (marks[b] != ~std::uint64_t{0}) return q[64 * b + __builtin_ctzll(~marks[b])];
    return none;
  }

  /// Marked integers repeat the one before them; at the start, the first unmarked one (if there is none, `zero`).
  template <class I>
  static void hold(I* q, const std::uint64_t* marks, I zero = 0) {
    I held = first_unmarked(q, marks, zero);
    if constexpr (requires { V::hold(q, marks, held); }) return V::hold(q, marks, held);
    for (int b = 0; b < chunk_blocks; ++b) {
      I* block = q + 64 * b;
      if (marks[b] == ~std::uint64_t{0}) {
        for (int i = 0; i < 64; ++i) block[i] = held;
      } else if (marks[b] != 0) {
        std::uint64_t m = marks[b];  // runs of marks, such as land
        do {
          const int from = __builtin_ctzll(m);
          const std::uint64_t rest = ~(m | ((std::uint64_t{1} << from) - 1));
          const int to = rest != 0 ? __builtin_ctzll(rest) : 64;
          const I before = from > 0 ? block[from - 1] : held;
          for (int i = from; i < to; ++i) block[i] = before;
          m = to < 64 ? m >> to << to : 0;
        } while (m != 0);
      }
      held = block[63];
    }
  }

  /// Whether hold() would leave them as they are. Not all are marked.
  static bool is_held(Integers& q, const std::uint64_t* marks) {
    q.before[15] = first_unmarked(q.q, marks, 0);
    std::uint64_t wrong = 0;
    for (int b = 0; b < chunk_blocks; ++b) {
      if (marks[b] == 0) continue;
      const std::int32_t* at = q.q + 64 * b;
      if constexpr (requires { V::changes(at); }) {
        wrong |= V::changes(at) & marks[b];
      } else {
        each_mark(marks[b], 0, [&](int i) { wrong |= static_cast<std::uint64_t>(at[i] != at[i - 1]); });
      }
    }
    return wrong == 0;
  }

  template <Predictor P>
  static void put_blocks(const Integers& q, std::int32_t base, const Fill& fill, Ahead ahead, Writer& w) {
    Out out = w.out;
    for (int b = 0; b < chunk_blocks; ++b) {
      ahead.fetch(b);
      w.put_code(b, V::put(out, V::template residual<P>(q.q + 64 * b, base)));
      if (__builtin_expect(bit(fill.blocks, b), 0)) V::put_plane(out, mark_plane(fill.marks[b]));
    }
    w.out = out;
  }

  static void put_blocks(const Integers& q, Choice<std::int32_t> c, const Fill& fill, Ahead ahead, Writer& w) {
    switch (c.predictor) {
      case Predictor::none:
        return put_blocks<Predictor::none>(q, c.base, fill, ahead, w);
      case Predictor::first:
        return put_blocks<Predictor::first>(q, c.base, fill, ahead, w);
      case Predictor::second:
        return put_blocks<Predictor::second>(q, c.base, fill, ahead, w);
    }
  }

  static bool all_marked(const Fill& fill) {
    if (fill.blocks != ~0U) return false;
    std::uint64_t all = ~std::uint64_t{0};
    for (const std::uint64_t m : fill.marks) all &= m;
    return all == ~std::uint64_t{0};
  }

  static std::size_t write_fill(const Fill& fill, int fill_bytes, std::uint8_t* to) {
    store(to, Word{.kind = Kind::fill}.pack());
    store(to + 4, fill.value);
    return static_cast<std::size_t>(4 + fill_bytes);
  }

  static std::size_t encode(const Params& p, const void* x, int count, std::uint8_t* to) {
    if (p.wide) return FastWide<V>::encode(p, x, count, to);
    alignas(64) std::uint8_t padded[chunk_values * 8];
    const int e = p.shape.element_bytes;
    const void* elements = repeat_last(x, count, e, padded);
    Integers q;
    Fill fill;
    bool exceptions = false;
    const Ahead ahead(x, e);
    if constexpr (staged) {
      if (count == chunk_values && V::fusible(p)) {
        const std::size_t n = encode_fused(p, x, ahead, to, exceptions);
        if (n != 0) return n;
      }
    }
    if (!load_elements(p, elements, q, fill, exceptions) || (fill.blocks != 0 && count < chunk_values))
      return FastExact<V>::encode(p, x, elements, count, to);
    return encode_integers(p, x, q, fill, ahead, count, to);
  }

  /// What load_elements() has found in x. The integers are left as they are.
  static std::size_t encode_integers(const Params& p, const void* x, Integers& q, const Fill& fill, Ahead ahead,
                                     int count, std::uint8_t* to) {
    const int e = p.shape.element_bytes;
    const int fill_bytes = e == 8 ? 8 : 4;
    const std::int32_t biased = bias(p);
    if (fill.blocks == 0 && V::constant(q.q)) return write_constant(wrap_sub(q.q[0], biased), to);
    if (all_marked(fill)) return write_fill(fill, fill_bytes, to);
    Choice<std::int32_t> choice = choose(q, biased);
    q.start(choice.base);
    const std::size_t raw = static_cast<std::size_t>(count * e);
    if constexpr (staged) {
      const std::size_t n = encode_in_stages(q, choice, biased, fill, fill_bytes, ahead, raw, to);
      if (n != 0) return n;
    }
    Writer w;
    put_blocks(q, choice, fill, ahead, w);
    choice.base = wrap_sub(choice.base, biased);
    if (__builtin_expect(w.coded() + 300 < raw, 1)) return w.template finish<V>(choice, fill, fill_bytes, to);
    return finish_near_raw(w, choice, fill, fill_bytes, x, raw, to);
  }

  static constexpr bool staged = requires { typename V::Staged; };

  /// Returns 0 where it cannot, or where the chunk is nearly as large as its elements.
  static std::size_t encode_in_stages(const Integers& q, Choice<std::int32_t> choice, std::int32_t biased,
                                      const Fill& fill, int fill_bytes, Ahead ahead, std::size_t raw,
                                      std::uint8_t* to) {
    typename V::Planes s;
    const bool fits = with_predictor(
        choice.predictor, [&](auto k) { return V::Staged::template from_integers<k.value>(q, choice.base, ahead, s); });
    if (!fits) return 0;
    const auto at = V::Staged::place(s, fill);
    if (at.total + 300 >= raw) return 0;
    choice.base = wrap_sub(choice.base, biased);
    std::uint8_t* const planes = write_head<V>(choice, fill, fill_bytes, at.codes, to);
    if (fill.blocks != 0) return close(to, V::Staged::template write_sections<true>(s, at, planes));
    return close(to, V::Staged::template write_sections<false>(s, at, planes));
  }

  /// Chunks of f32 without exceptions, in one pass over the elements. Returns 0 for all that it cannot do; `exceptions`
  /// tells whether that is why.
  static std::size_t encode_fused(const Params& p, const void* x, Ahead ahead, std::uint8_t* to, bool& exceptions) {
    typename V::Planes s;
    Choice<std::int32_t> choice;
    const auto found = V::Staged::from_elements(p, x, ahead, choice, s);
    exceptions = found == V::Staged::Found::exceptions;
    if (found != V::Staged::Found::all) return 0;
    const auto at = V::Staged::place(s, no_fill);
    if (at.total + 300 >= chunk_values * 4) return 0;
    choice.base = wrap_sub(choice.base, bias(p));
    if (flat(at.codes)) return write_constant(choice.base, to);
    std::uint8_t* const planes = write_head<V>(choice, no_fill, 0, at.codes, to);
    return close(to, ahead.spread ? V::Staged::template write_sections<false>(s, at, planes, ahead)
                                  : V::Staged::template write_sections<false>(s, at, planes));
  }

  /// Where what is written may be larger than the elements: those then, of `raw` bytes.
  template <class W, class I>
  static std::size_t finish_near_raw(W& w, Choice<I> choice, const Fill& fill, int fill_bytes, const void* x,
                                     std::size_t raw, std::uint8_t* to) {
    alignas(64) std::uint8_t buffer[sizeof(W) + 256];
    const std::size_t n = w.template finish<V>(choice, fill, fill_bytes, buffer);
    if (n < 4 + pad4(raw)) {
      std::memcpy(to, buffer, n);
      return n;
    }
    return write_raw(x, raw, to);
  }

  /// Most bytes of a chunk that is one value all over.
  static constexpr std::size_t one_value = 12;

  /// The integers are at hand: no planes are read.
  static std::size_t encode_decode(const Params& p, const void* x, int count, std::uint8_t* to, void* y) {
    Integers q;
    Fill fill;
    const bool whole = !p.wide && count == chunk_values;
    if (!whole || !load_elements(p, x, q, fill)) {
      const std::size_t n = whole ? FastExact<V>::encode(p, x, x, count, to) : encode(p, x, count, to);
      decode(p, {to, n, write_slack}, count, y);
      return n;
    }
    const Ahead ahead(x, p.shape.element_bytes);
    const std::size_t n = encode_integers(p, x, q, fill, ahead, count, to);
    if (const std::uint8_t* raw = raw_elements(p, {to, n, write_slack}, count); raw != nullptr) {
      std::memcpy(y, raw, static_cast<std::size_t>(count * p.shape.element_bytes));
      return n;
    }
    if (const std::int32_t biased = bias(p); biased != 0)
      for (std::int32_t& v : q.q) v = wrap_sub(v, biased);
    if (n <= one_value)
      for (int b = 0; b < chunk_blocks; ++b) ahead.fetch(b);  // planes would have had them fetched
    V::dequantise(p, q.q, y, p.stream && fill.blocks == 0);
    put_fill(p, fill, y);
    return n;
  }

  /// Exceptions, be they few or many, go beside what the integers decode to.
  static void on_grid(const Params& p, const void* x, int count, void* y) {
    if (p.wide) return FastWide<V>::on_grid(p, x, count, y);
    alignas(64) std::uint8_t padded[chunk_values * 8];
    const int e = p.shape.element_bytes;
    const void* elements = repeat_last(x, count, e, padded);
    Integers q;
    std::uint64_t marks[chunk_blocks];
    const bool exceptions = FastExact<V>::quantise(p, elements, q, marks);
    V::dequantise(p, q.q, y, false);
    if (!exceptions) return;
    const OneNan one(p.grid.dtype);
    const auto* from = static_cast<const std::uint8_t*>(elements);
    auto* to = static_cast<std::uint8_t*>(y);
    for (int b = 0; b < chunk_blocks; ++b)
      each_mark(marks[b], b, [&](int i) { put_element(to, i, e, one(element_at(from, i, e))); });
  }

  // ------------------------------------------------------------------------------------------------- decoding

  /// Where the integers of block b go: to memory, or (see V::ToF32) straight on to the elements.
  struct ToMemory {
    std::int32_t* q;
    [[nodiscard]] std::int32_t* block(int b) const { return q + 64 * b; }
  };

  /// With more empty blocks than this, going block by block and skipping them is faster than stages.
  static constexpr int few_empty = 8;

  template <Predictor P, class To>
  static void get_blocks(const Parsed& c, To to, Fill& fill) {
    if constexpr (staged && P != Predictor::none) {
      const Extent e(c);
      if (e.empty <= few_empty && e.widest <= 15) {
        if (c.fill_blocks != 0) return V::Staged::template integers<P, 2, true>(c, to, fill);
        if (e.widest <= 8) return V::Staged::template integers<P, 1, false>(c, to, fill);
        return V::Staged::template integers<P, 2, false>(c, to, fill);
      }
    }
    In in = c.in;
    typename V::template Chain<P> chain(c.choice.base);
    for (int b = 0; b < chunk_blocks; ++b) {
      chain.next(in, c.dense[b], c.sparse[b], to.block(b));
      if (__builtin_expect(bit(c.fill_blocks, b), 0)) fill.marks[b] = marks_of(V::get_plane(in));
    }
  }

  template <class To>
  static void get_blocks(const Parsed& c, To to, Fill& fill) {
    fill.blocks = c.fill_blocks;
    fill.value = c.fill_value;
    switch (c.choice.predictor) {
      case Predictor::none:
        return get_blocks<Predictor::none>(c, to, fill);
      case Predictor::first:
        return get_blocks<Predictor::first>(c, to, fill);
      case Predictor::second:
        return get_blocks<Predictor::second>(c, to, fill);
    }
  }

  /// Decodes a whole chunk without storing its integers, where V can. False: it cannot.
  static bool decode_directly(const Params& p, const Parsed& c, void* y, Fill& fill) {
    if constexpr (requires { V::direct(p); }) {
      if (!V::direct(p)) return false;
      if (!p.stream || c.fill_blocks != 0) {
        get_blocks(c, V::template ToF32<false>::begin(p, y), fill);
        return true;
      }
      const auto at = reinterpret_cast<std::uintptr_t>(y);
      if (at % 64 == 0) {
        get_blocks(c, V::template ToF32<true>::begin(p, y), fill);
      } else if (at % sizeof(float) == 0) {  // what malloc returns for large arrays
        typename V::ToF32Lines::Ends ends;
        const auto lines = V::ToF32Lines::begin(p, y, ends);
        get_blocks(c, lines, fill);
        lines.finish();
      } else {
        get_blocks(c, V::template ToF32<false>::begin(p, y), fill);
      }
      return true;
    }
    return false;
  }

  static void put_fill(const Params& p, const Fill& fill, void* y) {
    for (int b = 0; b < chunk_blocks && fill.blocks >> b != 0; ++b)
      if (bit(fill.blocks, b)) V::put_fill(p, y, b, fill.marks[b], fill.value);
  }

  static bool simple_fill(const Params& p, int count) {
    return count == chunk_values && p.divisor == 1 && !(p.shape.sum && p.shape.element_bytes == 2);
  }

  static bool decode(const Params& p, ChunkBytes in, int count, void* y) {
    if (const std::uint8_t* raw = raw_elements(p, in, count); raw != nullptr && p.divisor == 1) {
      std::memcpy(y, raw, static_cast<std::size_t>(count * p.shape.element_bytes));
      return true;
    }
    if (p.wide) return FastWide<V>::decode(p, in, count, y);
    Parsed c;
    const Parse found = parse<V>(p, in, c);
    if (found == Parse::corrupt) return false;
    if (found == Parse::rare || c.kind == Kind::fill || (c.fill_blocks != 0 && !simple_fill(p, count))) {
      const Parse exact = FastExact<V>::decode(p, in, count, y);
      return exact == Parse::rare ? reference_kernels().decode(p, in, count, y) : exact == Parse::ok;
    }
    Fill fill;
    if (c.kind != Kind::coded || count < chunk_values || !decode_directly(p, c, y, fill)) {
      Integers q;
      if (c.kind == Kind::constant) {
        V::broadcast(c.choice.base, q.q);
      } else {
        get_blocks(c, ToMemory{q.q}, fill);
      }
      if (count == chunk_values) {
        V::dequantise(p, q.q, y, p.stream && fill.blocks == 0);
      } else {
        alignas(64) std::uint8_t padded[chunk_values * 8];
        V::dequantise(p, q.q, padded, false);
        std::memcpy(y, padded, static_cast<std::size_t>(count * p.shape.element_bytes));
      }
    }
    put_fill(p, fill, y);
    return true;
  }
};

#include "codec/slice/fast_exact.h"
#include "codec/slice/fast_wide.h"
