// Sums of several chunks, with local elements or without, in one pass: what adding them one after another would write,
// without the bytes of partial sums. Where all are coded alike their residuals are added as planes, if V can; else
// they are added in the open, as those with exceptions are (fast_exact_sums.h). Included after fast_sums.h.

template <class V>
struct FastManySums : FastSums<V> {
  using Sums = FastSums<V>;
  using Sums::add_supported;
  using Sums::bias;
  using Sums::load_elements;
  using Sums::mean;
  using Sums::sum_planes;
  using Sums::sums_terms;
  using Sums::wrap_add;
  using Sums::wrap_sub;
  using typename Sums::R;
  using Exact = FastExactSums<V>;
  using Given = Choice<std::int32_t>;

  static std::size_t unfused() { return chunk_unfused; }

  /// The terms, and what those that are coded have in common.
  struct Terms {
    Parsed coded[most_terms];  ///< those of one value behind, where there is room
    int codeds = 0;
    const Parsed* chunk[most_terms];  ///< as they come
    int count = 0;
    bool alike = true;
    std::int32_t base = 0;  ///< the sum of all
  };

  /// Parse::rare: exceptions.
  static Parse read(std::span<const Term> terms, Terms& t) {
    Parsed* end = std::end(t.coded);
    for (const Term& term : terms) {
      Parsed& c = t.coded[t.codeds];
      const Parse found = parse<V>(*term.params, term.bytes, c);
      if (found != Parse::ok) return found;
      if (c.kind == Kind::fill || c.fill_blocks != 0) return Parse::rare;
      t.base = wrap_add(t.base, c.choice.base);
      if (c.kind == Kind::constant) {
        *--end = c;
        t.chunk[t.count++] = end;
        continue;
      }
      t.chunk[t.count++] = &c;
      t.alike = t.alike && c.choice.predictor == t.coded[0].choice.predictor;
      ++t.codeds;
    }
    return Parse::ok;
  }

  // ------------------------------------------------------------------------------------------- residuals

  static bool varies(const R& r) {
    std::int32_t v[block_values];
    static_assert(sizeof v == sizeof r);
    std::memcpy(v, &r, sizeof v);
    bool other = false;
    for (const std::int32_t i : v) other = other || i != v[0];
    return other;
  }

  /// A partial sum on `none` whose integers were all equal would go on with another base. Whether block 0 rules that
  /// out. `local`: null, or local integers.
  static bool partial_sums_vary(const Integers* local, std::int32_t base, const Terms& t) {
    if (t.coded[0].choice.predictor != Predictor::none) return true;
    R sum{};
    if (local != nullptr) sum = V::template residual<Predictor::none>(local->q, base);
    for (int i = 0; i + 1 < t.codeds; ++i) {
      In in = t.coded[i].in;
      const R r = V::get(in, t.coded[i].dense[0], t.coded[i].sparse[0]);
      sum = i == 0 && local == nullptr ? r : V::sum(sum, r);
      if (!varies(sum)) return false;
    }
    return true;
  }

  /// `local`: null, or local integers with a bias. Returns 0 where residuals would not do.
  static std::size_t sum_residuals(const Params& p, Integers* local, std::int32_t biased, const Terms& t,
                                   std::uint8_t* to) {
    if constexpr (sums_terms) {
      // With a constant first, local integers choose the predictor.
      if (t.codeds == 0 || !t.alike || (local != nullptr && t.chunk[0]->kind == Kind::constant)) return 0;
      Given choice{t.coded[0].choice.predictor, t.base};
      std::int32_t base = 0;
      if (local != nullptr) {
        base = choice.predictor == Predictor::none ? mean(local->q, biased) : local->q[0];
        choice.base = wrap_add(choice.base, wrap_sub(base, biased));
        local->start(base);
      }
      typename V::Planes s;
      if (!partial_sums_vary(local, base, t) || !sum_planes(choice.predictor, local, base, t.coded, t.codeds, s))
        return 0;
      return Sums::template finish_stages<typename V::Sums>(p, s, choice, choice.predictor, chunk_values, to, unfused);
    }
    return 0;
  }

  // ------------------------------------------------------------------------------------------- in the open

  static std::size_t add_each(const Params& p, typename Exact::Room& room, bool local, const Terms& t, std::uint8_t* to,
                              std::size_t capacity) {
    return Exact::add_each(p, room, local, t.count, chunk_values, to, capacity, [&](int i, typename Exact::Open& o) {
      Exact::open_plain(*t.chunk[i], o);
      return true;
    });
  }

  static std::size_t sum(const Params& p, const Params* px, const void* x, std::span<const Term> terms, int count,
                         std::uint8_t* to, std::size_t capacity) {
    if (p.wide) return FastWideSums<V>::sum(p, px, x, terms, count, to, capacity);
    if (p.shape.exact_only) return chunk_unfused;
    for (const Term& t : terms)
      if (!add_supported(p, *t.params, px != nullptr ? *px : *t.params, capacity)) return chunk_unfused;
    const auto exact = [&] {
      const std::size_t n = Exact::sum(p, px, x, terms, count, to, capacity);
      return n != 0 ? n : chunk_unfused;
    };
    if (count < chunk_values) return exact();
    Terms t;
    const Parse found = read(terms, t);
    if (found != Parse::ok) return found == Parse::corrupt ? chunk_corrupt : exact();
    if (x == nullptr) {
      if (t.codeds == 0) return write_constant(t.base, to);
      std::size_t n = sum_residuals(p, nullptr, 0, t, to);
      if (n == 0) {
        typename Exact::Room room;
        n = add_each(p, room, false, t, to, capacity);
      }
      return n != 0 ? n : chunk_unfused;
    }
    typename Exact::Room room;
    Integers& q = room.sum.q;
    Fill fill;
    if (!load_elements(*px, x, q, fill)) return exact();
    const std::int32_t biased = bias(*px);
    if (fill.blocks == 0) {
      const std::size_t n = sum_residuals(p, &q, biased, t, to);
      if (n != 0) return n;
    }
    for (std::int32_t& v : q.q) v = wrap_sub(v, biased);
    Exact::open_quantised(*px, fill, room.sum);
    const std::size_t n = add_each(p, room, true, t, to, capacity);
    return n != 0 ? n : chunk_unfused;
  }

  static const Kernels* kernels() {
    static const Kernels k{Sums::Codec::encode, Sums::Codec::decode, Sums::add, Sums::encode_add, sum};
    return &k;
  }
};
