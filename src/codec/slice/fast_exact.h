// Chunks that store elements as they are: exceptions of more than one value, listed in their block or, where they are
// many, in a block that is lossless or raw as a whole; and sums that have exact sums in their place. Encoding and
// decoding, on 32-bit integers, written once over a vector policy V. Included by fast_codec.h.

template <class V>
struct FastExact {
  using Codec = FastCodec<V>;
  using Marks = std::uint64_t[chunk_blocks];

  /// 64 integers, with room before them for the one that a chain starts from.
  struct alignas(64) OneBlock {
    std::int32_t before[16];
    std::int32_t q[block_values];
  };

  // ------------------------------------------------------------------------------------------- what is an exception

  /// Integers without bias, and marks; integers under marks mean nothing. `x` has a whole chunk. False: no exceptions.
  static bool quantise(const Params& p, const void* x, Integers& q, Marks& marks) {
    const bool all = V::quantise(p, x, q.q);
    if (all) {
      for (std::uint64_t& m : marks) m = 0;
    } else if constexpr (requires { V::find_marks(p, x, marks, q.q); }) {
      V::find_marks(p, x, marks, q.q);
    } else {
      V::find_marks(p, x, marks);
    }
    const std::int32_t biased = Codec::bias(p);
    for (std::int32_t& v : q.q) v = Codec::wrap_sub(v, biased);
    return !all;
  }

  /// The first exception that has the bits of the one before it, else the first.
  template <class E>
  static std::uint64_t find_fill(const std::uint8_t* x, const Marks& marks) {
    const auto at = [&](int i) { return load<E>(x + static_cast<std::ptrdiff_t>(i) * static_cast<int>(sizeof(E))); };
    int previous = -1;
    E first = 0;
    for (int b = 0; b < chunk_blocks; ++b) {
      const std::uint64_t m = marks[b];
      if (m == 0) continue;
      const int lowest = 64 * b + __builtin_ctzll(m);
      if (previous < 0) {
        first = at(lowest);
      } else if (at(lowest) == at(previous)) {
        return at(lowest);
      }
      const std::uint64_t follow = m & m << 1;
      std::uint64_t repeat = 0;
      for (int i = 1; i < 64 && follow != 0; ++i) repeat |= std::uint64_t{at(64 * b + i) == at(64 * b + i - 1)} << i;
      repeat &= follow;
      previous = lowest;
      for (std::uint64_t gap = m & ~follow & (m - 1); gap != 0; gap &= gap - 1) {
        const int i = __builtin_ctzll(gap);
        const int before = 63 - __builtin_clzll(m & ((std::uint64_t{1} << i) - 1));
        if (at(64 * b + i) == at(64 * b + before)) repeat |= std::uint64_t{1} << i;
      }
      if (repeat != 0) return at(64 * b + __builtin_ctzll(repeat));
      previous = 64 * b + 63 - __builtin_clzll(m);
    }
    return first;
  }
  static std::uint64_t find_fill(const std::uint8_t* x, const Marks& marks, int e) {
    if (e == 4) return find_fill<std::uint32_t>(x, marks);
    return e == 8 ? find_fill<std::uint64_t>(x, marks) : find_fill<std::uint16_t>(x, marks);
  }

  static bool all_are(const std::uint8_t* x, std::uint64_t marks, int b, int e, std::uint64_t value) {
    for (; marks != 0; marks &= marks - 1)
      if (element_at(x, 64 * b + __builtin_ctzll(marks), e) != value) return false;
    return true;
  }

  /// What becomes of blocks with exceptions: `fill` gets the blocks of one value; those returned are stored as a whole.
  static std::uint32_t classify(const std::uint8_t* x, int e, Fill& fill) {
    std::uint32_t whole = 0;
    fill.blocks = 0;
    fill.value = find_fill(x, fill.marks, e);
    for (int b = 0; b < chunk_blocks; ++b) {
      if (fill.marks[b] == 0) continue;
      if (all_are(x, fill.marks[b], b, e, fill.value)) {
        fill.blocks |= 1U << b;
      } else if (__builtin_popcountll(fill.marks[b]) > max_listed) {
        whole |= 1U << b;
      }
    }
    return whole;
  }

  // ------------------------------------------------------------------------------------------- encoding

  /// The exact parts while they are written.
  struct ExactOut {
    alignas(64) std::uint8_t bytes[chunk_values * 8 + 8 * chunk_blocks];
    std::uint8_t* end = bytes;
    /// Pads what has been written since `begin`. Returns its size in units of 4 bytes.
    std::uint32_t close(const std::uint8_t* begin) {
      while ((end - begin) % 4 != 0) *end++ = 0;
      return static_cast<std::uint32_t>((end - begin) / 4);
    }
  };

  /// A lossless block, or, where that is not smaller, a raw one.
  static void put_whole(const std::uint8_t* x, int b, int e, Out& out, Writer& w, ExactOut& exact) {
    const Out before = out;
    const std::uint8_t* begin = exact.end;
    const std::uint8_t* elements = x + static_cast<std::ptrdiff_t>(64 * b * e);
    if (e <= 4) {
      OneBlock v;
      for (int i = 0; i < block_values; ++i) v.q[i] = ordered(elements, i, e);
      v.before[15] = v.q[0];
      const Split s = V::put(out, V::template residual<Predictor::first>(v.q, 0));
      const auto planes =
          (out.dense - before.dense) + (out.masks - before.masks) + (out.bytes - before.bytes) + std::ptrdiff_t{4};
      if (planes < 64 * e) {
        store(exact.end, static_cast<std::uint32_t>(element_at(elements, 0, e)));
        exact.end += 4;
        return w.put_entry(b, {s.w, s.d, Extra::lossless, 1});
      }
      out = before;
    }
    std::memcpy(exact.end, elements, static_cast<std::size_t>(64 * e));
    exact.end += 64 * e;
    w.put_entry(b, {0, 0, Extra::raw, exact.close(begin)});
  }
  static std::int32_t ordered(const std::uint8_t* x, int i, int e) {
    return e == 4 ? order_map<std::int32_t>(load<std::uint32_t>(x + 4 * i), 4)
                  : order_map<std::int32_t>(load<std::uint16_t>(x + 2 * i), 2);
  }

  template <Predictor P>
  static void put_blocks(const Integers& q, std::int32_t base, const std::uint8_t* x, int e, const Fill& fill,
                         std::uint32_t whole, Writer& w, ExactOut& exact) {
    Out out = w.out;
    for (int b = 0; b < chunk_blocks; ++b) {
      if (Codec::bit(whole, b)) {
        put_whole(x, b, e, out, w, exact);
        continue;
      }
      const Split s = V::put(out, V::template residual<P>(q.q + 64 * b, base));
      w.put_code(b, s);
      if (fill.marks[b] == 0) continue;
      V::put_plane(out, mark_plane(fill.marks[b]));
      if (Codec::bit(fill.blocks, b)) continue;
      const std::uint8_t* begin = exact.end;
      each_mark(fill.marks[b], b, [&](int i) {
        put_element(exact.end, 0, e, element_at(x, i, e));
        exact.end += e;
      });
      if (s.w > max_code_width) --w.entry_count;
      w.put_entry(b, {s.w, s.d, Extra::listed, exact.close(begin)});
    }
    w.out = out;
  }

  /// Whether every element is the fill value, and an exception.
  static bool only_fill(const Fill& fill, int count) {
    for (int b = 0; b < chunk_blocks; ++b) {
      if ((fill.marks[b] | behind(count, b)) != ~std::uint64_t{0}) return false;
      if (fill.marks[b] != 0 && !Codec::bit(fill.blocks, b)) return false;
    }
    return true;
  }

  /// `elements` are those at x, with the last one repeated where they are fewer than a chunk has.
  static std::size_t encode(const Params& p, const void* x, const void* elements, int count, std::uint8_t* to) {
    const int e = p.shape.element_bytes;
    const auto* at = static_cast<const std::uint8_t*>(elements);
    Integers q;
    Fill fill;
    quantise(p, elements, q, fill.marks);
    Marks held;
    for (int b = 0; b < chunk_blocks; ++b) {
      fill.marks[b] &= ~behind(count, b);
      held[b] = fill.marks[b] | behind(count, b);
    }
    const std::uint32_t whole = classify(at, e, fill);
    Codec::hold(q.q, held);
    if (only_fill(fill, count)) return Codec::write_fill(fill, e == 8 ? 8 : 4, to);
    for (std::uint32_t m = whole; m != 0; m &= m - 1) {
      const int b = __builtin_ctz(m);
      const std::int32_t before = b > 0 ? q.q[64 * b - 1] : q.q[0];
      for (int i = 0; i < block_values; ++i) q.q[64 * b + i] = before;
    }
    const Choice<std::int32_t> choice = whole == 0 ? Codec::choose(q, 0) : choose_predictor(q.q, false);
    q.start(choice.base);
    Writer w;
    ExactOut exact;
    with_predictor(choice.predictor,
                   [&](auto k) { put_blocks<k.value>(q, choice.base, at, e, fill, whole, w, exact); });
    return finish(w, choice, fill, exact, x, static_cast<std::size_t>(count * e), e == 8 ? 8 : 4, to);
  }

  /// Puts the chunk together, or takes the elements, of `raw` bytes, where that would not be smaller.
  static std::size_t finish(Writer& w, Choice<std::int32_t> choice, const Fill& fill, const ExactOut& exact,
                            const void* x, std::size_t raw, int fill_bytes, std::uint8_t* to) {
    const auto parts = static_cast<std::size_t>(exact.end - exact.bytes);
    const auto write = [&](std::uint8_t* out) {
      const std::size_t n = w.template finish<V>(choice, fill, fill_bytes, out);
      std::memcpy(out + n, exact.bytes, parts);
      return n + parts;
    };
    if (w.coded() + parts + 300 < raw) return write(to);
    alignas(64) std::uint8_t buffer[sizeof(Writer) + sizeof(ExactOut) + 256];
    const std::size_t n = write(buffer);
    if (n >= 4 + pad4(raw)) return write_raw(x, raw, to);
    std::memcpy(to, buffer, n);
    return n;
  }

  // ------------------------------------------------------------------------------------------- decoding

  /// A coded chunk's integers and marks. A block that is stored as a whole is marked as one; if it is lossless its
  /// ordered bits stand in place of integers. False: no valid chunk.
  static bool get_blocks(const Params& p, const Parsed& c, const ExactParts& parts, int count, Integers& q,
                         Marks& marks) {
    with_predictor(c.choice.predictor, [&](auto k) { get_blocks<k.value>(c, parts, p.shape.element_bytes, q, marks); });
    for (int b = 0; b < chunk_blocks; ++b) {
      if (Codec::bit(parts.whole, b)) {
        marks[b] &= ~behind(count, b);
      } else if ((marks[b] & behind(count, b)) != 0 || (Codec::bit(parts.listed, b) && !fits(p, parts, b, marks[b]))) {
        return false;
      }
    }
    return true;
  }
  template <Predictor P>
  static void get_blocks(const Parsed& c, const ExactParts& parts, int e, Integers& q, Marks& marks) {
    In in = c.in;
    typename V::template Chain<P> chain(c.choice.base);
    for (int b = 0; b < chunk_blocks; ++b) {
      std::int32_t* to = q.q + 64 * b;
      marks[b] = 0;
      if (__builtin_expect(Codec::bit(parts.whole, b), 0)) {
        marks[b] = ~std::uint64_t{0};
        if (parts.extra[b] == Extra::raw) {
          std::memset(to, 0, block_values * sizeof *to);
          continue;
        }
        typename V::template Chain<Predictor::first> own(ordered(parts.at[b], 0, e));
        own.next(in, c.dense[b], c.sparse[b], to);
        continue;
      }
      chain.next(in, c.dense[b], c.sparse[b], to);
      if (Codec::bit(c.fill_blocks | parts.listed, b)) marks[b] = marks_of(V::get_plane(in));
    }
  }

  /// Whether the exact part has what the marks need.
  static bool fits(const Params& p, const ExactParts& parts, int b, std::uint64_t marks) {
    const int n = __builtin_popcountll(marks);
    if (parts.extra[b] == Extra::listed)
      return parts.bytes[b] == pad4(static_cast<std::size_t>(n * p.shape.element_bytes));
    std::size_t terms = 0;
    if (parts.bytes[b] < pad4(static_cast<std::size_t>(n))) return false;
    for (int i = 0; i < n; ++i) terms += parts.at[b][i];
    return parts.bytes[b] == pad4(static_cast<std::size_t>(n)) + 8 * terms;
  }

  /// The elements that an operand's blocks store by themselves, to their places. `y` has room for a whole chunk.
  static void put_stored(const ExactParts& parts, const Integers& q, const Marks& marks, int e, std::uint8_t* y) {
    for (std::uint32_t m = parts.whole | parts.listed; m != 0; m &= m - 1) {
      const int b = __builtin_ctz(m);
      std::uint8_t* to = y + static_cast<std::ptrdiff_t>(64 * b * e);
      if (parts.extra[b] == Extra::raw) {
        std::memcpy(to, parts.at[b], static_cast<std::size_t>(64 * e));
      } else if (parts.extra[b] == Extra::lossless) {
        const std::int32_t* v = q.q + 64 * b;
        for (int i = 0; i < block_values && e == 4; ++i)
          store(to + 4 * i, static_cast<std::uint32_t>(order_unmap(v[i], 4)));
        for (int i = 0; i < block_values && e == 2; ++i)
          store(to + 2 * i, static_cast<std::uint16_t>(order_unmap(v[i], 2)));
      } else {
        int k = 0;
        each_mark(marks[b], b, [&](int i) { put_element(y, i, e, element_at(parts.at[b], k++, e)); });
      }
    }
  }

  /// The same for the exact sums of a sum frame, rounded.
  static void put_sums(const Params& p, const ExactParts& parts, const Marks& marks, std::uint8_t* y) {
    for (std::uint32_t m = parts.listed; m != 0; m &= m - 1) {
      const int b = __builtin_ctz(m);
      const std::uint8_t* count = parts.at[b];
      const std::uint8_t* terms = count + pad4(static_cast<std::size_t>(__builtin_popcountll(marks[b])));
      each_mark(marks[b], b, [&](int i) {
        put_element(y, i, p.shape.element_bytes, rounded(p, terms, *count));
        terms += 8 * *count++;
      });
    }
  }
  /// The element of n stored terms.
  static std::uint64_t rounded(const Params& p, const std::uint8_t* terms, int n) {
    const bool plain = p.divisor == 1 && (p.grid.dtype == DType::f32 || p.grid.dtype == DType::f64);
    if (!plain || n == 0 || n > 2) return element_of_sum(p, terms, n);
    double high = load<double>(terms + 8 * (n - 1));
    if (n == 2) {
      // Only if these are what adding them leaves.
      const double low = load<double>(terms);
      const double s = high + low;
      const double w = s - high;
      if (s != high || (high - (s - w)) + (low - w) != low || low == 0 || high == 0) return element_of_sum(p, terms, n);
      if (p.grid.dtype == DType::f32) high = to_odd(high, low);
    }
    if (high != high || high == 0) return element_of_sum(p, terms, n);
    return p.grid.dtype == DType::f64 ? __builtin_bit_cast(std::uint64_t, high)
                                      : __builtin_bit_cast(std::uint32_t, static_cast<float>(high));
  }
  /// high + low, rounded to odd, where high is that rounded to nearest, and low is not 0.
  static double to_odd(double high, double low) {
    const auto bits = __builtin_bit_cast(std::uint64_t, high);
    if ((bits & 1) != 0) return high;
    const bool away = (__builtin_bit_cast(std::uint64_t, low) >> 63) == bits >> 63;
    return __builtin_bit_cast(double, away ? bits + 1 : bits - 1);
  }

  static void put_fill(const Params& p, const Fill& fill, std::uint8_t* y) {
    std::uint64_t bits = fill.value;
    if (p.shape.sum) {
      std::uint8_t term[8];
      store(term, fill.value);
      bits = rounded(p, term, 1);
    }
    for (std::uint32_t m = fill.blocks; m != 0; m &= m - 1) {
      const int b = __builtin_ctz(m);
      each_mark(fill.marks[b], b, [&](int i) { put_element(y, i, p.shape.element_bytes, bits); });
    }
  }

  /// Any chunk with exceptions. Parse::rare: it has none, or only the reference can.
  static Parse decode(const Params& p, ChunkBytes in, int count, void* y) {
    Parsed c;
    ExactParts parts;
    const Parse found = parse<V>(p, in, c, &parts);
    if (found != Parse::ok) return found;
    if (c.kind == Kind::constant || (p.divisor != 1 && !p.shape.sum)) return Parse::rare;
    Fill fill;
    fill.blocks = c.fill_blocks;
    fill.value = c.fill_value;
    alignas(64) std::uint8_t padded[chunk_values * 8];
    auto* to = count == chunk_values ? static_cast<std::uint8_t*>(y) : padded;
    if (c.kind == Kind::fill) {
      for (int b = 0; b < chunk_blocks; ++b) fill.marks[b] = ~behind(count, b);
    } else {
      Integers q;
      if (!get_blocks(p, c, parts, count, q, fill.marks)) return Parse::corrupt;
      V::dequantise(p, q.q, to, false);
      p.shape.sum ? put_sums(p, parts, fill.marks, to) : put_stored(parts, q, fill.marks, p.shape.element_bytes, to);
    }
    put_fill(p, fill, to);
    if (to == padded) std::memcpy(y, padded, static_cast<std::size_t>(count * p.shape.element_bytes));
    return Parse::ok;
  }
};
