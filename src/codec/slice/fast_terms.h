// The exceptions of a sum as exact sums: terms that do not overlap, as grow-expansion leaves them (docs/format.md,
// section 9). Included by fast_exact_sums.h.

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
    const bool ordered = __builtin_fabs(v) >= __builtin_fabs(t[i]);
    const double low = (ordered ? t[i] : v) - (s - (ordered ? v : t[i]));  // as core/two_sum.h
    t[kept] = low;
    kept += low != 0 ? 1 : 0;
    v = s;
  }
  if (!__builtin_isfinite(v)) kept = 0;
  t[kept] = v;
  return kept + (v != 0 ? 1 : 0);
}

/// Whether nothing can overflow where a few such numbers are added.
inline bool is_moderate(double v) { return __builtin_fabs(v) < 0x1p1000; }

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
  if (x.n == 1 && y.n == 1 && is_moderate(x.t[0]) && is_moderate(y.t[0])) {
    const double s = x.t[0] + y.t[0];
    const double w = s - x.t[0];
    return put_pair(t, s, (x.t[0] - (s - w)) + (y.t[0] - w));
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
    std::uint64_t marks = 0;
    bool alike = false;
    const std::uint8_t* count = nullptr;
    const double* terms = nullptr;
    int all = 0;  ///< terms stored
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
    [[nodiscard]] bool one_number() const { return marks == 0 || (alike && *count == 1 && is_moderate(*terms)); }
    [[nodiscard]] bool all_are(std::uint64_t value) const {
      const double* t = terms;
      for (int k = 0; k < (alike ? 1 : exceptions()); t += count[k++])
        if (count[k] > 1 || key(t, count[k]) != value) return false;
      return true;
    }
  };
  Block block[chunk_blocks];  ///< of `blocks`
  std::uint32_t blocks;       ///< that have any
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
  }
  [[nodiscard]] const Block& at(int b) const {
    static constexpr Block none{};
    return (blocks >> b & 1) != 0 ? block[b] : none;
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
      const Block& bx = x.at(b);
      const Block& by = y.at(b);
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
                 !sum_each(at, Pairs(bx, qx + 64 * b, by, qy + 64 * b, step), again)) {
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

  /// What two operands have at the marks of either, position after position.
  class Pairs {
   public:
    Pairs(const Block& bx, const std::int32_t* qx, const Block& by, const std::int32_t* qy, double step)
        : left_(bx.marks | by.marks), x_{bx.marks, Cursor(bx), qx}, y_{by.marks, Cursor(by), qy}, step_(step) {}
    /// False: no more.
    bool next() {
      if (left_ == 0) return false;
      const int i = __builtin_ctzll(left_);
      left_ &= left_ - 1;
      x_in = (x_.marks >> i & 1) != 0;
      x = x_.at(i, step_);
      y = y_.at(i, step_);
      return true;
    }
    TermList x{}, y{};
    bool x_in = false;  ///< x is an exception

   private:
    struct Side {
      std::uint64_t marks;
      Cursor exceptions;
      const std::int32_t* q;
      double grid_point[2] = {};
      TermList at(int i, double step) {
        return (marks >> i & 1) != 0 ? exceptions.next() : product(q[i], step, grid_point);
      }
    };
    std::uint64_t left_;
    Side x_, y_;
    double step_;
  };

  /// One after another; but each to a place that does not depend on how many terms those before have.
  [[nodiscard]] bool sum_each(Next& next_one, Pairs pairs, bool again) const {
    Next at = next_one;
    const Pairs all = pairs;
    alignas(64) double slots[block_values][slot];
    std::uint8_t counts_of[block_values];
    int k = 0;
    for (; pairs.next(); ++k) {
      if (pairs.x.n + pairs.y.n > slot) return sum_long(next_one, all, again);
      counts_of[k] = static_cast<std::uint8_t>(put_sum(slots[k], pairs.x, pairs.y, again && pairs.x_in));
    }
    for (int i = 0; i < k; ++i) {
      if (!has_room(at.term, slot)) return false;
      at.copy(slots[i], counts_of[i]);
    }
    next_one = at;
    return true;
  }
  /// The same for any number of terms.
  __attribute__((noinline)) bool sum_long(Next& at, Pairs pairs, bool again) const {
    while (pairs.next()) {
      if (!has_room(at.term, pairs.x.n + pairs.y.n)) return false;
      at.take(put_sum(at.term, pairs.x, pairs.y, again && pairs.x_in));
    }
    return true;
  }
  /// A block's values where all exceptions are one number, and grid points are one term. False: they are not.
  static bool values_of(const Block& b, const std::int32_t* q, double step, double* to) {
    const auto fill = __builtin_bit_cast(std::int64_t, b.marks != 0 ? *b.terms : 0);
    const std::uint64_t marks = b.marks;
    std::int64_t second_terms = 0;
    for (std::uint64_t i = 0; i < block_values; ++i) {
      const std::int64_t marked = -static_cast<std::int64_t>(marks >> i & 1);
      const double p = q[i] * step;
      const double rest = __builtin_fabs(__builtin_fma(q[i], step, -p));
      second_terms |= __builtin_bit_cast(std::int64_t, rest) & ~marked;
      to[i] = __builtin_bit_cast(double, (fill & marked) | (__builtin_bit_cast(std::int64_t, p) & ~marked));
    }
    return second_terms == 0;
  }
  /// The same where they are so in both operands.
  [[nodiscard]] bool sum_numbers(Next& next_one, const Block& bx, const std::int32_t* qx, const Block& by,
                                 const std::int32_t* qy, double step) const {
    alignas(64) double x[block_values];
    alignas(64) double y[block_values];
    if (!bx.one_number() || !by.one_number() || !has_room(next_one.term, 2 * block_values)) return false;
    if (!values_of(bx, qx, step, x) || !values_of(by, qy, step, y)) return false;
    alignas(64) double low[block_values];
    alignas(64) std::int64_t lows[block_values];
    alignas(64) std::int64_t all[block_values];
    for (int i = 0; i < block_values; ++i) {
      const double s = x[i] + y[i];
      const double w = s - x[i];
      low[i] = (x[i] - (s - w)) + (y[i] - w);
      lows[i] = low[i] != 0 ? 1 : 0;
      all[i] = lows[i] + (s != 0 ? 1 : 0);
      x[i] = s;
    }
    Next at = next_one;
    for (std::uint64_t m = bx.marks | by.marks; m != 0; m &= m - 1) {
      const int i = __builtin_ctzll(m);
      at.term[0] = low[i];
      at.term[lows[i]] = x[i];
      at.take(static_cast<int>(all[i]));
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

  /// Bytes of all exact parts, if no block is a fill block.
  [[nodiscard]] std::size_t size() const {
    std::size_t bytes = 0;
    for (std::uint32_t m = blocks; m != 0; m &= m - 1) bytes += block[__builtin_ctz(m)].size();
    return bytes;
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
