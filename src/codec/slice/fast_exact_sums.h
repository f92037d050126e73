// Sums of chunks with exceptions of any kind, on 32-bit integers: where an operand has an exception the sum has an
// exact one, in terms that do not overlap (docs/format.md, section 9). Two operands or several, with local elements or
// without; several are added one after another in the open, so that partial sums are not written.
// Included by fast_sums.h.

/// Numbers whose exact sum is meant, as grow-expansion leaves them.
struct TermList {
  const double* t;
  int n;
};

inline double one_nan(double v) { return v != v ? __builtin_nan("") : v; }

/// Adds v to the n terms at t, which has room for one more. Returns how many they are then.
inline int grow(double* t, int n, double v) {
  const bool ends = n != 0 && !__builtin_isfinite(t[n - 1]);
  if (ends || !__builtin_isfinite(v)) {
    t[0] = one_nan(ends ? t[n - 1] + v : v);
    return 1;
  }
  int kept = 0;
  for (int i = 0; i < n; ++i) {
    const double s = v + t[i];
    const double w = s - v;
    const double low = (v - (s - w)) + (t[i] - w);
    t[kept] = low;
    kept += low != 0 ? 1 : 0;
    v = s;
  }
  if (!__builtin_isfinite(v)) kept = 0;
  t[kept] = v;
  return kept + (v != 0 ? 1 : 0);
}

/// A rounded sum and what it lacks, to t. Returns how many terms they are.
inline int put_pair(double* t, double s, double low) {
  t[0] = low;
  const int n = low != 0 ? 1 : 0;
  t[n] = s;
  return n + (s != 0 ? 1 : 0);
}

/// x + y to t, which has room for the terms of both. `again`: x is a sum that has not been written and read, which
/// would have added its terms once more. Returns how many terms they are.
inline int put_sum(double* t, TermList x, TermList y, bool again) {
  if (x.n == 1 && y.n == 1) {
    const double s = x.t[0] + y.t[0];
    if (__builtin_isfinite(s)) {
      const double w = s - x.t[0];
      return put_pair(t, s, (x.t[0] - (s - w)) + (y.t[0] - w));
    }
  }
  int n = 0;
  if (again && !(x.n == 2 && x.t[0] + x.t[1] == x.t[1])) {
    for (int i = 0; i < x.n; ++i) n = grow(t, n, x.t[i]);
  } else {
    for (; n < x.n; ++n) t[n] = x.t[n];
  }
  for (int i = 0; i < y.n; ++i) n = grow(t, n, y.t[i]);
  return n;
}

/// The exceptions of a chunk, as the stream has them: block after block, a byte for each that counts its terms, and the
/// terms. Where all of a block are alike they are there once.
struct ExactSums {
  static constexpr int room = 4 * chunk_values;
  static constexpr int most = 255;  ///< terms of one
  static constexpr int slot = 8;    ///< terms that one usually has no more of
  struct Block {
    std::uint64_t marks;
    bool alike;
    const std::uint8_t* count;
    const double* terms;
    int all;  ///< terms stored
    [[nodiscard]] int exceptions() const { return __builtin_popcountll(marks); }
    /// Bytes of the exact part.
    [[nodiscard]] std::size_t size() const {
      const int n = exceptions();
      return pad4(static_cast<std::size_t>(n)) + 8 * static_cast<std::size_t>(alike ? n * all : all);
    }
    /// Writes that. Returns its end.
    std::uint8_t* write(std::uint8_t* to) const {
      const int n = exceptions();
      std::uint8_t* at = to + pad4(static_cast<std::size_t>(n));
      store(at - 4, std::uint32_t{0});
      const auto bytes = static_cast<std::size_t>(8 * all);
      if (!alike) {
        std::memcpy(to, count, static_cast<std::size_t>(n));
        std::memcpy(at, terms, bytes);
        return at + bytes;
      }
      std::memset(to, *count, static_cast<std::size_t>(n));
      for (int k = 0; k < n; ++k, at += bytes) std::memcpy(at, terms, bytes);
      return at;
    }
    /// Whether all are one NaN or infinity.
    [[nodiscard]] bool no_number() const { return alike && *count == 1 && !__builtin_isfinite(*terms); }
    /// Whether there is nothing, or one number that sums with grid points cannot overflow.
    [[nodiscard]] bool one_number() const {
      return marks == 0 || (alike && *count == 1 && __builtin_fabs(*terms) < 0x1p1000);
    }
    [[nodiscard]] bool all_are(std::uint64_t value) const {
      const double* t = terms;
      for (int k = 0; k < (alike ? 1 : exceptions()); t += count[k++])
        if (count[k] > 1 || key(t, count[k]) != value) return false;
      return true;
    }
  };
  Block block[chunk_blocks];
  std::uint32_t blocks;  ///< that have any
  std::uint8_t counts[chunk_values + 64];
  double terms[room + 64];

  /// What one term, or none, is compared by.
  static std::uint64_t key(const double* t, int n) { return n == 0 ? 0 : load<std::uint64_t>(t); }

  /// Where the next exception goes. Loops keep it by value: what is stored through `count` might be anything.
  struct Next {
    std::uint8_t* count;
    double* term;
    /// n terms have been put at `term`.
    void take(int n) {
      *count++ = static_cast<std::uint8_t>(n);
      term += n;
    }
    void put(double v) { take(grow(term, 0, v)); }
    /// The same n <= slot, that lie elsewhere. May write a whole slot.
    void copy(const double* t, int n) {
      std::memcpy(term, t, slot * sizeof *t);
      take(n);
    }
  };
  Next next;

  void clear() {
    blocks = 0;
    next = {counts, terms};
    for (Block& b : block) b = {0, false, counts, terms, 0};
  }
  void begin(int b, std::uint64_t marks, bool alike) {
    block[b] = {marks, alike, next.count, next.term, 0};
    blocks |= 1U << b;
  }
  void end(int b, Next at) {
    next = at;
    block[b].all = static_cast<int>(next.term - block[b].terms);
  }
  [[nodiscard]] bool has_room(const double* at, int n) const { return n <= most && at + n <= terms + room; }

  /// A block's exceptions in order.
  struct Cursor {
    const std::uint8_t* count;
    const double* terms;
    bool alike;
    explicit Cursor(const Block& b) : count(b.count), terms(b.terms), alike(b.alike) {}
    TermList next() {
      const TermList t{terms, *count};
      if (!alike) {
        terms += t.n;
        ++count;
      }
      return t;
    }
  };

  /// Those of the sum of x and y, which have these integers where they are not marked. `again` as in put_sum(). False:
  /// too many terms.
  bool sum(const ExactSums& x, const std::int32_t* qx, bool again, const ExactSums& y, const std::int32_t* qy,
           double step) {
    clear();
    for (std::uint32_t m = x.blocks | y.blocks; m != 0; m &= m - 1) {
      const int b = __builtin_ctz(m);
      const Block& bx = x.block[b];
      const Block& by = y.block[b];
      const bool absorbed = absorb(bx, by);
      const bool alike = absorbed || (bx.alike && by.alike && bx.marks == by.marks);
      begin(b, bx.marks | by.marks, alike);
      Next at = next;
      if (absorbed) {
        if (!has_room(at.term, 1)) return false;
        at.put(*(bx.marks != 0 ? bx : by).terms);
      } else if (alike) {
        const TermList tx = Cursor(bx).next();
        const TermList ty = Cursor(by).next();
        if (!has_room(at.term, tx.n + ty.n)) return false;
        at.take(put_sum(at.term, tx, ty, again));
      } else if (!sum_numbers(at, bx, qx + 64 * b, by, qy + 64 * b, step) &&
                 !sum_each(at, bx, qx + 64 * b, again, by, qy + 64 * b, step)) {
        return false;
      }
      end(b, at);
    }
    return true;
  }
  /// Whether all exceptions of the operands are one NaN or infinity: then those of the sum are that, too.
  static bool absorb(const Block& x, const Block& y) {
    if (x.marks != 0 && y.marks != 0) return x.no_number() && y.no_number() && key(x.terms, 1) == key(y.terms, 1);
    return (x.marks != 0 ? x : y).no_number();
  }

  /// One after another; but each to a place that does not depend on how many terms those before have.
  [[nodiscard]] bool sum_each(Next& next_one, const Block& bx, const std::int32_t* qx, bool again, const Block& by,
                              const std::int32_t* qy, double step) const {
    Next at = next_one;
    Cursor cx(bx);
    Cursor cy(by);
    alignas(64) double slots[block_values][slot];
    std::uint8_t counts_of[block_values];
    int k = 0;
    for (std::uint64_t m = bx.marks | by.marks; m != 0; m &= m - 1) {
      const int i = __builtin_ctzll(m);
      double product_x[2];
      double product_y[2];
      const bool in_x = (bx.marks >> i & 1) != 0;
      const TermList x = in_x ? cx.next() : product(qx[i], step, product_x);
      const TermList y = (by.marks >> i & 1) != 0 ? cy.next() : product(qy[i], step, product_y);
      if (x.n + y.n > slot) return sum_long(next_one, bx, qx, again, by, qy, step);
      counts_of[k] = static_cast<std::uint8_t>(put_sum(slots[k], x, y, again && in_x));
      ++k;
    }
    for (int i = 0; i < k; ++i) {
      if (!has_room(at.term, slot)) return false;
      at.copy(slots[i], counts_of[i]);
    }
    next_one = at;
    return true;
  }
  /// The same for any number of terms.
  __attribute__((noinline)) bool sum_long(Next& at, const Block& bx, const std::int32_t* qx, bool again,
                                          const Block& by, const std::int32_t* qy, double step) const {
    Cursor cx(bx);
    Cursor cy(by);
    for (std::uint64_t m = bx.marks | by.marks; m != 0; m &= m - 1) {
      const int i = __builtin_ctzll(m);
      double product_x[2];
      double product_y[2];
      const bool in_x = (bx.marks >> i & 1) != 0;
      const TermList x = in_x ? cx.next() : product(qx[i], step, product_x);
      const TermList y = (by.marks >> i & 1) != 0 ? cy.next() : product(qy[i], step, product_y);
      if (!has_room(at.term, x.n + y.n)) return false;
      at.take(put_sum(at.term, x, y, again && in_x));
    }
    return true;
  }
  /// The same where all exceptions of an operand are one number, and grid points are one term. False: they are not.
  [[nodiscard]] bool sum_numbers(Next& next_one, const Block& bx, const std::int32_t* qx, const Block& by,
                                 const std::int32_t* qy, double step) const {
    if (!bx.one_number() || !by.one_number() || !has_room(next_one.term, 2 * block_values)) return false;
    alignas(64) double sum[block_values];
    alignas(64) double low[block_values];
    const double fill_x = bx.marks != 0 ? *bx.terms : 0;
    const double fill_y = by.marks != 0 ? *by.terms : 0;
    double second_terms = 0;
    for (int i = 0; i < block_values; ++i) {
      const bool in_x = (bx.marks >> i & 1) != 0;
      const bool in_y = (by.marks >> i & 1) != 0;
      const double px = qx[i] * step;
      const double py = qy[i] * step;
      second_terms += in_x ? 0 : __builtin_fabs(__builtin_fma(qx[i], step, -px));
      second_terms += in_y ? 0 : __builtin_fabs(__builtin_fma(qy[i], step, -py));
      const double x = in_x ? fill_x : px;
      const double y = in_y ? fill_y : py;
      const double s = x + y;
      const double w = s - x;
      sum[i] = s;
      low[i] = (x - (s - w)) + (y - w);
    }
    if (second_terms != 0) return false;
    Next at = next_one;
    for (std::uint64_t m = bx.marks | by.marks; m != 0; m &= m - 1) {
      const int i = __builtin_ctzll(m);
      at.take(put_pair(at.term, sum[i], low[i]));
    }
    next_one = at;
    return true;
  }
  /// q * step, exactly.
  static TermList product(std::int32_t q, double step, double* to) {
    const double p = q * step;
    const double low = __builtin_fma(q, step, -p);
    to[0] = low;
    const int n = low != 0 ? 1 : 0;
    to[n] = p;
    return {to, n + (p != 0 ? 1 : 0)};
  }

  /// The fill value: the first that repeats the one before it, else the first that is one term. And its blocks.
  [[nodiscard]] Fill find_fill() const {
    Fill fill;
    if (!repeated(fill.value)) return fill;
    for (std::uint32_t m = blocks; m != 0; m &= m - 1)
      if (block[__builtin_ctz(m)].all_are(fill.value)) fill.blocks |= m & (0U - m);
    return fill;
  }
  /// False: all have several terms.
  bool repeated(std::uint64_t& value) const {
    bool any = false;
    bool have_previous = false;
    std::uint64_t previous = 0;
    for (std::uint32_t m = blocks; m != 0; m &= m - 1) {
      const Block& b = block[__builtin_ctz(m)];
      Cursor c(b);
      for (int k = b.alike && b.exceptions() > 2 ? 2 : b.exceptions(); k > 0; --k) {
        const TermList t = c.next();
        const bool has = t.n <= 1;
        const std::uint64_t bits = key(t.t, t.n);
        const bool same = has && have_previous && bits == previous;
        if (same || (has && !any)) value = bits;
        if (same) return true;
        any = any || has;
        have_previous = has;
        previous = bits;
      }
    }
    return any;
  }
};

template <class V>
struct FastExactSums {
  using Codec = FastCodec<V>;
  using Exact = FastExact<V>;
  using Given = Choice<std::int32_t>;
  static bool bit(std::uint32_t blocks, int b) { return (blocks >> b & 1) != 0; }

  /// A chunk in the open.
  struct Open {
    Integers q;
    ExactSums* exact = nullptr;
    bool partial = false;  ///< a sum already
    Origin origin = Origin::elements;
    Given choice{};  ///< where it was, or would be, coded; of a constant just the base
    [[nodiscard]] std::uint64_t marks(int b) const { return exact->block[b].marks; }
  };

  // ------------------------------------------------------------------------------------------- operands

  /// The marked elements as they add to sums.
  static void put_elements(const Params& p, const std::uint8_t* x, int b, std::uint64_t marks, ExactSums& to) {
    const int e = p.shape.element_bytes;
    const std::uint64_t first = element_at(x, 64 * b + __builtin_ctzll(marks), e);
    const bool alike = Exact::all_are(x, marks, b, e, first);
    to.begin(b, marks, alike);
    ExactSums::Next at = to.next;
    if (alike) {
      at.put(element_value(p.grid.dtype, first));
    } else if (e == 4) {
      for (std::uint64_t m = marks; m != 0; m &= m - 1) at.put(load<float>(x + 4 * (64 * b + __builtin_ctzll(m))));
    } else {
      each_mark(marks, b, [&](int i) { at.put(element_value(p.grid.dtype, element_at(x, i, e))); });
    }
    to.end(b, at);
  }

  /// Elements, a whole chunk of which is at x.
  static void open_elements(const Params& p, const std::uint8_t* x, int count, Open& o) {
    std::uint64_t marks[chunk_blocks];
    o.exact->clear();
    o.origin = Origin::elements;
    if (Exact::quantise(p, x, o.q, marks))
      for (int b = 0; b < chunk_blocks; ++b)
        if ((marks[b] &= ~behind(count, b)) != 0) put_elements(p, x, b, marks[b], *o.exact);
    hold(o, count);
  }

  /// Marked integers, and those behind the last element, repeat the one before.
  static void hold(Open& o, int count) {
    if (o.exact->blocks == 0 && count == chunk_values) return;
    std::uint64_t held[chunk_blocks];
    for (int b = 0; b < chunk_blocks; ++b) held[b] = o.marks(b) | behind(count, b);
    Codec::hold(o.q.q, held);
  }

  static void put_fill(const Params& p, std::uint64_t value, int b, std::uint64_t marks, ExactSums& to) {
    if (marks == 0) return;
    to.begin(b, marks, true);
    ExactSums::Next at = to.next;
    at.put(p.shape.sum ? __builtin_bit_cast(double, value) : element_value(p.grid.dtype, value));
    to.end(b, at);
  }

  /// The stored terms of a block; as adding them leaves them. False: too many.
  static bool put_terms(const ExactParts& parts, int b, std::uint64_t marks, ExactSums& to) {
    if (marks == 0) return true;
    const int n = __builtin_popcountll(marks);
    const std::uint8_t* count = parts.at[b];
    const std::uint8_t* at = count + pad4(static_cast<std::size_t>(n));
    to.begin(b, marks, false);
    ExactSums::Next next = to.next;
    for (int k = 0; k < n; ++k) {
      if (!to.has_room(next.term, count[k])) return false;
      int grown = 0;
      for (int i = 0; i < count[k]; ++i, at += 8) grown = grow(next.term, grown, load<double>(at));
      next.take(grown);
    }
    to.end(b, next);
    return true;
  }

  /// What an operand's blocks store by themselves: grid points where an encoder would find them on the grid.
  static void put_stored(const Params& p, const Parsed& c, const ExactParts& parts,
                         std::uint64_t (&marks)[chunk_blocks], Open& o) {
    alignas(64) std::uint8_t elements[chunk_values * 8];
    std::memset(elements, 0, static_cast<std::size_t>(chunk_values * p.shape.element_bytes));
    Exact::put_stored(parts, o.q, marks, p.shape.element_bytes, elements);
    Integers again;
    std::uint64_t exceptions[chunk_blocks];
    Exact::quantise(p, elements, again, exceptions);
    for (int b = 0; b < chunk_blocks; ++b) {
      if (bit(c.fill_blocks, b)) put_fill(p, c.fill_value, b, marks[b], *o.exact);
      if (!bit(parts.whole | parts.listed, b)) continue;
      each_mark(marks[b] & ~exceptions[b], b, [&](int i) { o.q.q[i] = again.q[i]; });
      if ((marks[b] & exceptions[b]) != 0) put_elements(p, elements, b, marks[b] & exceptions[b], *o.exact);
    }
  }

  /// Any operand. False: only the reference knows.
  static bool open(const Params& p, ChunkBytes in, int count, Open& o) {
    alignas(64) std::uint8_t padded[chunk_values * 8];
    if (const std::uint8_t* raw = raw_elements(p, in, count); raw != nullptr) {
      const void* x = repeat_last(raw, count, p.shape.element_bytes, padded);
      open_elements(p, static_cast<const std::uint8_t*>(x), count, o);
      return true;
    }
    Parsed c;
    ExactParts parts;
    if (parse<V>(p, in, c, &parts) != Parse::ok) return false;
    if (c.fill_blocks != 0 && !p.shape.sum && is_on_grid(p, c.fill_value)) return false;
    o.exact->clear();
    o.choice = c.choice;
    o.origin = c.kind == Kind::constant ? Origin::constant : c.kind == Kind::fill ? Origin::elements : Origin::coded;
    if (c.kind != Kind::coded) {
      V::broadcast(c.kind == Kind::constant ? c.choice.base : 0, o.q.q);
      for (int b = 0; b < chunk_blocks && c.kind == Kind::fill; ++b)
        put_fill(p, c.fill_value, b, ~behind(count, b), *o.exact);
      return true;
    }
    if (c.fill_blocks == 0 && parts.whole == 0 && parts.listed == 0) {
      Fill none;
      Codec::get_blocks(c, typename Codec::ToMemory{o.q.q}, none);
      return true;
    }
    std::uint64_t marks[chunk_blocks];
    if (!Exact::get_blocks(p, c, parts, count, o.q, marks)) return false;
    if (!p.shape.sum) {
      put_stored(p, c, parts, marks, o);
      return true;
    }
    for (int b = 0; b < chunk_blocks; ++b) {
      if (bit(c.fill_blocks, b)) put_fill(p, c.fill_value, b, marks[b], *o.exact);
      if (bit(parts.listed, b) && !put_terms(parts, b, marks[b], *o.exact)) return false;
    }
    return true;
  }

  // ------------------------------------------------------------------------------------------- sums

  /// What two operands say of how their sum is coded. `local`: x comes from an array, and follows y.
  static bool say(const Open& x, bool local, const Open& y, Given& given) {
    if (y.origin == Origin::elements || (local && y.origin != Origin::coded)) return false;
    if (local) {
      given = {y.choice.predictor, Codec::wrap_add(Codec::mean(x.q.q, 0), y.choice.base)};
      return true;
    }
    if (x.origin == Origin::elements) return false;
    if (x.origin == Origin::coded && y.origin == Origin::coded && x.choice.predictor != y.choice.predictor)
      return false;
    given = {(x.origin == Origin::coded ? x : y).choice.predictor, Codec::wrap_add(x.choice.base, y.choice.base)};
    return true;
  }

  /// x += y; `spare` becomes x's exceptions, and the other way around. False: too many terms.
  static bool add(Open& x, bool local, const Open& y, double step, int count, ExactSums*& spare) {
    Given given;
    const bool said = say(x, local, y, given);
    if ((x.exact->blocks | y.exact->blocks) != 0) {
      if (!spare->sum(*x.exact, x.q.q, x.partial, *y.exact, y.q.q, step)) return false;
      ExactSums* const old = x.exact;
      x.exact = spare;
      spare = old;
    }
    for (int i = 0; i < chunk_values; ++i) x.q.q[i] = Codec::wrap_add(x.q.q[i], y.q.q[i]);
    hold(x, count);
    x.partial = true;
    x.origin = origin_of(x, count);
    if (x.origin == Origin::constant) {
      x.choice = {Predictor::none, x.q.q[0]};
    } else if (!said) {
      x.choice = Codec::choose(x.q, 0);
    } else {
      x.choice = {given.predictor, given.predictor == Predictor::none ? given.base : x.q.q[0]};
    }
    return true;
  }

  /// How a sum would be written.
  static Origin origin_of(const Open& x, int count) {
    if (x.exact->blocks == 0) return V::constant(x.q.q) ? Origin::constant : Origin::coded;
    for (int b = 0; b < chunk_blocks; ++b)
      if ((x.marks(b) | behind(count, b)) != ~std::uint64_t{0}) return Origin::coded;
    return x.exact->find_fill().blocks == x.exact->blocks ? Origin::elements : Origin::coded;
  }

  template <Predictor P>
  static void put_blocks(const Open& x, const Fill& fill, Writer& w) {
    Out out = w.out;
    for (int b = 0; b < chunk_blocks; ++b) {
      const Split s = V::put(out, V::template residual<P>(x.q.q + 64 * b, x.choice.base));
      w.put_code(b, s);
      const ExactSums::Block& k = x.exact->block[b];
      if (k.marks == 0) continue;
      V::put_plane(out, mark_plane(k.marks));
      if (bit(fill.blocks, b)) continue;
      if (s.w > max_code_width) --w.entry_count;
      w.put_entry(b, {s.w, s.d, Extra::terms, static_cast<std::uint32_t>(k.size() / 4)});
    }
    w.out = out;
  }

  /// Returns 0 where there may be too little room.
  static std::size_t write(Open& x, std::uint8_t* to, std::size_t capacity) {
    std::size_t parts = 0;
    for (const ExactSums::Block& b : x.exact->block) parts += b.size();
    if (sizeof(Writer) + parts > capacity) return 0;
    if (x.origin == Origin::constant) return write_constant(x.choice.base, to);
    const Fill fill = x.exact->find_fill();
    const std::uint32_t listed = x.exact->blocks & ~fill.blocks;
    if (x.origin == Origin::elements) return Codec::write_fill(fill, 8, to);
    x.q.start(x.choice.base);
    Writer w;
    with_predictor(x.choice.predictor, [&](auto k) { put_blocks<k.value>(x, fill, w); });
    std::uint8_t* end = to + w.template finish<V>(x.choice, fill, 8, to);
    for (std::uint32_t m = listed; m != 0; m &= m - 1) end = x.exact->block[__builtin_ctz(m)].write(end);
    return static_cast<std::size_t>(end - to);
  }

  /// x, which may be null, and then the terms, one after another. Returns 0 for all that it cannot do, or that is not
  /// valid.
  static std::size_t sum(const Params& p, const Params* px, const void* x, std::span<const Term> terms, int count,
                         std::uint8_t* to, std::size_t capacity) {
    if (p.wide || p.shape.exact_only || (px != nullptr && px->wide)) return 0;
    auto* const room = static_cast<ExactSums*>(sum_scratch(3 * sizeof(ExactSums)));
    Open sum;
    Open next;
    sum.exact = room;
    next.exact = room + 1;
    ExactSums* spare = room + 2;
    if (x != nullptr) {
      alignas(64) std::uint8_t padded[chunk_values * 8];
      const void* all = repeat_last(x, count, px->shape.element_bytes, padded);
      open_elements(*px, static_cast<const std::uint8_t*>(all), count, sum);
    }
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const Params& pt = *terms[i].params;
      const bool only = x == nullptr && i == 0;
      if (pt.wide || !open(pt, terms[i].bytes, count, only ? sum : next)) return 0;
      if (!only && !add(sum, x != nullptr && i == 0, next, p.grid.step, count, spare)) return 0;
    }
    return write(sum, to, capacity);
  }
};
