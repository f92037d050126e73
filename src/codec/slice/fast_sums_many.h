// Sums of several chunks, with local elements or without, in one pass: what adding them one after another would write,
// without the bytes of partial sums. Residuals are added as planes, if V can, those of lower predictors raised; else
// chunks are added in the open, as those with different exceptions are (fast_exact_sums.h). Included after fast_sums.h.

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
  using Exact = FastExactSums<V>;
  using Given = Choice<std::int32_t>;

  static std::size_t unfused() { return chunk_unfused; }

  /// The terms, and what those that are coded have in common.
  struct Terms {
    Parsed coded[most_terms];  ///< those of one value behind, where there is room
    int codeds = 0;
    const Parsed* chunk[most_terms];  ///< as they come
    int count = 0;
    Predictor predictor = Predictor::none;  ///< of their sum
    std::int32_t base = 0;                  ///< the sum of all
    Fill fill;                              ///< where all are marked, and the sum of their fill values
  };

  /// The exceptions of the next term, and those that `t` has, `any` or none: whether these are one number in the same
  /// blocks. `p`: of the sum.
  static bool add_exceptions(const Params& p, const Params& pc, const Parsed& c, bool any, Terms& t) {
    if (!any) t.fill.blocks = c.fill_blocks;
    if (t.fill.blocks != c.fill_blocks) return false;
    if (c.fill_blocks == 0) return true;
    if (!is_exception(pc, c.fill_value)) return false;
    if (any) return Sums::add_fill(p, t.fill.value, pc, c.fill_value, t.fill.value);
    t.fill.value = __builtin_bit_cast(std::uint64_t, fill_as_double(pc, c.fill_value));
    return true;
  }

  /// `local`: with elements, whose exceptions t.fill has. Parse::rare: exceptions that are not the same.
  static Parse read(const Params& p, std::span<const Term> terms, bool local, Terms& t) {
    Parsed* end = std::end(t.coded);
    for (const Term& term : terms) {
      Parsed& c = t.coded[t.codeds];
      const Parse found = parse<V>(*term.params, term.bytes, c);
      if (found != Parse::ok) return found;
      if (c.kind == Kind::fill || !add_exceptions(p, *term.params, c, local || t.count > 0, t)) return Parse::rare;
      t.base = wrap_add(t.base, c.choice.base);
      if (c.kind == Kind::constant) {
        *--end = c;
        t.chunk[t.count++] = end;
        continue;
      }
      t.chunk[t.count++] = &c;
      t.predictor = higher(t.predictor, c.choice.predictor);
      ++t.codeds;
    }
    return Parse::ok;
  }

  // ------------------------------------------------------------------------------------------- residuals

  static bool vary(const std::int32_t (&v)[block_values]) {
    bool other = false;
    for (const std::int32_t i : v) other = other || i != v[0];
    return other;
  }

  /// A partial sum whose integers were all equal would be constant: it would have no predictor any more, and on `none`
  /// the sum would go on with another base. Whether block 0 rules that out. `local`: null, or local integers.
  static bool partial_sums_vary(const LocalTerm* local, const Terms& t) {
    int from = 0;  // the first that matters
    if (t.predictor != Predictor::none) {
      from = t.codeds - 1;
      while (t.coded[from].choice.predictor != t.predictor) --from;
      if (from == t.codeds - 1) return true;
    }
    alignas(64) std::int32_t sum[block_values] = {};
    if (local != nullptr) std::memcpy(sum, local->q->q, sizeof sum);
    for (int i = 0; i + 1 < t.codeds; ++i) {
      alignas(64) std::int32_t q[block_values];
      const Parsed& c = t.coded[i];
      In in = c.in;
      with_predictor(c.choice.predictor, [&](auto k) {
        typename V::template Chain<k.value>(c.choice.base).next(in, c.dense[0], c.sparse[0], q);
      });
      for (int v = 0; v < block_values; ++v) sum[v] = wrap_add(sum[v], q[v]);
      if (i >= from && !vary(sum)) return false;
    }
    return true;
  }

  /// Terms, and local integers, or null. Returns 0 where residuals would not do.
  static std::size_t add_coded(const Params& p, Given choice, const LocalTerm* local, Terms& t, std::uint8_t* to) {
    if (t.fill.blocks == 0 && !partial_sums_vary(local, t)) return 0;
    return sum_planes(p, choice, local, t.coded, t.codeds, t.fill, to, unfused);
  }

  /// With elements x, whose integers are q, or null. Returns 0 where residuals would not do.
  static std::size_t sum_residuals(const Params& p, const Params* px, const void* x, Integers& q, Terms& t,
                                   std::uint8_t* to) {
    if constexpr (sums_terms) {
      // With a constant first, local integers choose the predictor.
      if (t.codeds == 0 || (x != nullptr && t.chunk[0]->kind == Kind::constant)) return 0;
      const Given choice{t.predictor, t.base};
      if (x == nullptr) return add_coded(p, choice, nullptr, t, to);
      const std::int32_t biased = bias(*px);
      const std::int32_t base = choice.predictor == Predictor::none ? mean(q.q, biased) : q.q[0];
      q.start(base);
      const LocalTerm local{&q, base, Ahead(x, px->shape.element_bytes)};
      return add_coded(p, {choice.predictor, wrap_add(choice.base, wrap_sub(base, biased))}, &local, t, to);
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
    typename Exact::Room room;
    Integers& q = room.sum.q;
    Fill fill;
    if (x != nullptr) {
      if (!load_elements(*px, x, q, fill)) return exact();
      t.fill = fill;
      t.fill.value = __builtin_bit_cast(std::uint64_t, fill_as_double(*px, fill.value));
    }
    const Parse found = read(p, terms, x != nullptr, t);
    if (found == Parse::corrupt) return chunk_corrupt;
    if (found == Parse::ok) {
      if (x == nullptr && t.codeds == 0) return write_constant(t.base, to);
      const std::size_t n = sum_residuals(p, px, x, q, t, to);
      if (n != 0) return n;
    }
    if (x != nullptr) {
      for (std::int32_t& v : q.q) v = wrap_sub(v, bias(*px));
      Exact::open_quantised(*px, fill, room.sum);
    }
    const bool plain = found == Parse::ok && t.fill.blocks == 0;
    const std::size_t n = plain ? add_each(p, room, x != nullptr, t, to, capacity)
                                : Exact::add_terms(p, room, x != nullptr, terms, chunk_values, to, capacity);
    return n != 0 ? n : chunk_unfused;
  }

  static const Kernels* kernels() {
    using Codec = typename Sums::Codec;
    static const Kernels k{Codec::encode,    Codec::decode, Codec::encode_decode, Codec::on_grid,  Sums::add,
                           Sums::encode_add, sum,           Sums::sums_terms,     Sums::room_fetch};
    return &k;
  }
};
