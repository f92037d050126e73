// Sums of 32-bit integers where some values are exceptions: their exact sums, and which of them are one fill value.
// Included by fast_codec.h, inside each SIMD target's anonymous namespace and target region.

/// An exact sum of few doubles: as Expansion, without memory of its own. There is room for a fill value and a product.
struct Terms {
  double t[3];
  int n;

  static double one_nan(double v) { return v != v ? __builtin_nan("") : v; }

  void add(double v) {
    const bool ends = n != 0 && !__builtin_isfinite(t[n - 1]);
    if (ends || !__builtin_isfinite(v)) {
      t[0] = one_nan(ends ? t[n - 1] + v : v);
      n = 1;
      return;
    }
    int kept = 0;
    for (int i = 0; i < n; ++i) {
      const double s = v + t[i];
      const double w = s - v;
      const double low = (v - (s - w)) + (t[i] - w);
      if (low != 0) t[kept++] = low;
      v = s;
    }
    if (!__builtin_isfinite(v)) kept = 0;
    if (v != 0) t[kept++] = v;
    n = kept;
  }
  void add(const Terms& other) {
    for (int i = 0; i < other.n; ++i) add(other.t[i]);
  }
  /// q * step, exactly.
  static Terms product(std::int32_t q, double step) {
    Terms r{};
    const double p = q * step;
    const double low = __builtin_fma(q, step, -p);
    if (low != 0) r.t[r.n++] = low;
    if (p != 0) r.t[r.n++] = p;
    return r;
  }
  /// What one term is compared by. False: there are more.
  [[nodiscard]] bool key(std::uint64_t& bits) const {
    bits = n == 0 ? 0 : __builtin_bit_cast(std::uint64_t, t[0]);
    return n <= 1;
  }
};

/// One operand of a sum: its integers, which mean nothing where it is marked, and the value of all its exceptions.
struct Unpacked {
  Integers q;
  Fill fill;
  Terms exception{};
  double step = 0;

  [[nodiscard]] Terms at(int b, int i) const {
    return (fill.marks[b] >> i & 1) != 0 ? exception : Terms::product(q.q[64 * b + i], step);
  }
};

/// The exceptions of a sum, in order. Those of a block where both operands have the same are one, said once.
struct Exceptions {
  struct Block {
    std::uint64_t marks;
    const Terms* terms;
    bool alike;
    [[nodiscard]] int count() const { return __builtin_popcountll(marks); }
    [[nodiscard]] const Terms& term(int k) const { return terms[alike ? 0 : k]; }
    /// Bytes of the exact part.
    [[nodiscard]] std::size_t size() const {
      const int n = count();
      int all = alike ? n * terms[0].n : 0;
      for (int k = 0; k < n && !alike; ++k) all += terms[k].n;
      return pad4(static_cast<std::size_t>(n)) + 8 * static_cast<std::size_t>(all);
    }
    /// Writes it. Returns its end.
    std::uint8_t* write(std::uint8_t* to) const {
      const int n = count();
      std::uint8_t* at = to + pad4(static_cast<std::size_t>(n));
      store(at - 4, std::uint32_t{0});
      for (int k = 0; k < n; ++k) {
        const Terms& e = term(k);
        to[k] = static_cast<std::uint8_t>(e.n);
        for (int i = 0; i < e.n; ++i, at += 8) store(at, e.t[i]);
      }
      return at;
    }
    [[nodiscard]] bool all_are(std::uint64_t value) const {
      std::uint64_t bits = 0;
      for (int k = 0; k < (alike ? 1 : count()); ++k)
        if (!terms[k].key(bits) || bits != value) return false;
      return true;
    }
  };
  Block block[chunk_blocks];
  std::uint32_t blocks = 0;  ///< that have any
  Fill fill;                 ///< the fill value, and the blocks whose exceptions all are
  int count = 0;
  std::size_t bytes = 0;  ///< that storing all of them takes
  Terms terms[chunk_values];

  /// Where either operand is an exception, so is the sum.
  Exceptions(const Unpacked& x, const Unpacked& y) {
    Terms both = x.exception;
    both.add(y.exception);
    Terms* to = terms;
    for (int b = 0; b < chunk_blocks; ++b) {
      const std::uint64_t common = x.fill.marks[b] & y.fill.marks[b];
      Block& k = block[b];
      k = {x.fill.marks[b] | y.fill.marks[b], to, common == (x.fill.marks[b] | y.fill.marks[b])};
      if (k.marks == 0) continue;
      blocks |= 1U << b;
      count += k.count();
      if (k.alike) {
        *to++ = both;
      } else {
        for (std::uint64_t m = k.marks; m != 0; m &= m - 1, ++to) {
          const int i = __builtin_ctzll(m);
          if ((common >> i & 1) != 0) {
            copy(both, *to);
          } else {
            one_marked(x, y, b, i, *to);
          }
        }
      }
      bytes += k.size();
    }
    find_fill();
  }

  /// Element by element, as it was written: a wider load would wait for the stores before it.
  static void copy(const Terms& from, Terms& to) {
    for (int i = 0; i < from.n; ++i) to.t[i] = from.t[i];
    to.n = from.n;
  }

  /// An exception of one operand and a grid point of the other.
  static void one_marked(const Unpacked& x, const Unpacked& y, int b, int i, Terms& e) {
    const bool in_x = (x.fill.marks[b] >> i & 1) != 0;
    const Unpacked& grid = in_x ? y : x;
    const Terms& exception = in_x ? x.exception : y.exception;
    const std::int32_t q = grid.q.q[64 * b + i];
    const double p = q * grid.step;
    const double fill = exception.t[0];
    const double s = fill + p;
    if (__builtin_expect(exception.n != 1 || __builtin_fma(q, grid.step, -p) != 0 || !__builtin_isfinite(s), 0)) {
      e = x.at(b, i);
      e.add(y.at(b, i));
      return;
    }
    const double w = s - p;
    const double low = (p - (s - w)) + (fill - w);
    const int n = low != 0 ? 1 : 0;
    e.t[0] = low;
    e.t[n] = s;
    e.n = n + (s != 0 ? 1 : 0);
  }

  /// The first that repeats the one before it, else the first that is one term.
  void find_fill() {
    fill.blocks = 0;
    bool any = false;
    bool have_previous = false;
    std::uint64_t previous = 0;
    const auto repeats = [&](const Terms& e) {
      std::uint64_t bits = 0;
      const bool has = e.key(bits);
      const bool same = has && have_previous && bits == previous;
      if (same || (has && !any)) fill.value = bits;
      any = any || has;
      have_previous = has;
      previous = bits;
      return same;
    };
    const auto found = [&] {
      for (const Block& k : block)
        for (int i = 0; i < k.count(); ++i)
          if (repeats(k.term(i))) return true;
      return false;
    };
    if (!found() && !any) return;
    for (int b = 0; b < chunk_blocks; ++b)
      if (block[b].marks != 0 && block[b].all_are(fill.value)) fill.blocks |= 1U << b;
  }
};
