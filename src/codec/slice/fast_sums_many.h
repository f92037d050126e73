// Sums of several chunks, with local elements or without, in one pass: what adding them one after another would write,
// without the bytes of partial sums. Where all are coded alike their residuals are added as planes, if V can; else
// integers are. Exceptions are left to fast_exact_sums.h. Included after fast_sums.h.

template <class V>
struct FastManySums : FastSums<V> {
  using Sums = FastSums<V>;
  using Sums::add_supported;
  using Sums::bias;
  using Sums::choice_of_sum;
  using Sums::get_blocks;
  using Sums::load_elements;
  using Sums::mean;
  using Sums::sum_planes;
  using Sums::sums_terms;
  using Sums::wrap_add;
  using Sums::wrap_sub;
  using typename Sums::R;
  using typename Sums::ToMemory;
  using Given = Choice<std::int32_t>;

  static std::size_t unfused() { return chunk_unfused; }

  /// The terms, and what those that are coded have in common.
  struct Terms {
    Parsed coded[most_terms];
    int codeds = 0;
    std::int32_t constant[most_terms];  ///< those of one value, at their place
    const Parsed* chunk[most_terms];    ///< null: a constant
    int count = 0;
    bool alike = true;
    std::int32_t base = 0;  ///< the sum of all
  };

  /// Parse::rare: exceptions.
  static Parse read(std::span<const Term> terms, Terms& t) {
    for (const Term& term : terms) {
      Parsed& c = t.coded[t.codeds];
      const Parse found = parse<V>(*term.params, term.bytes, c);
      if (found != Parse::ok) return found;
      if (c.kind == Kind::fill || c.fill_blocks != 0) return Parse::rare;
      t.base = wrap_add(t.base, c.choice.base);
      t.constant[t.count] = c.choice.base;
      t.chunk[t.count++] = c.kind == Kind::constant ? nullptr : &c;
      if (c.kind == Kind::constant) continue;
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
      if (t.codeds == 0 || !t.alike || (local != nullptr && t.chunk[0] == nullptr)) return 0;
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

  // ------------------------------------------------------------------------------------------- integers

  /// What adding one after another would know of a partial sum.
  struct Partial {
    bool constant = false;
    Given choice{};  ///< of a constant: the base alone

    /// Its sum with the next term, c or, where that is null, a constant: whether these say how it is coded.
    bool say(const Parsed* c, std::int32_t next, Given& given) const {
      given = {constant && c != nullptr ? c->choice.predictor : choice.predictor, wrap_add(choice.base, next)};
      return constant || c == nullptr || c->choice.predictor == choice.predictor;
    }
    /// Its integers are these.
    void become(Integers& q, const Given* given) {
      constant = V::constant(q.q);
      choice = constant ? Given{Predictor::none, q.q[0]} : choice_of_sum(q, given);
    }
  };

  static void add_to(std::int32_t* q, const Parsed* c, std::int32_t constant) {
    if (c == nullptr) {
      for (int i = 0; i < chunk_values; ++i) q[i] = wrap_add(q[i], constant);
      return;
    }
    Integers other;
    Fill fill;
    get_blocks(*c, ToMemory{other.q}, fill);
    for (int i = 0; i < chunk_values; ++i) q[i] = wrap_add(q[i], other.q[i]);
  }

  /// `local`: q holds local integers, with a bias.
  static std::size_t sum_integers(const Params& p, Integers& q, bool local, std::int32_t biased, const Terms& t,
                                  std::uint8_t* to) {
    Partial sum;
    for (int i = 0; i < t.count; ++i) {
      const Parsed* c = t.chunk[i];
      Given given;
      bool said = false;
      if (i > 0) {
        said = sum.say(c, t.constant[i], given);
        add_to(q.q, c, t.constant[i]);
      } else if (local) {
        said = c != nullptr;
        if (said) given = {c->choice.predictor, wrap_add(wrap_sub(mean(q.q, biased), biased), c->choice.base)};
        for (std::int32_t& v : q.q) v = wrap_sub(v, biased);
        add_to(q.q, c, t.constant[0]);
      } else {
        V::broadcast(0, q.q);
        add_to(q.q, c, t.constant[0]);
        sum.constant = c == nullptr;
        sum.choice = {c != nullptr ? c->choice.predictor : Predictor::none, t.constant[0]};
        continue;
      }
      sum.become(q, said ? &given : nullptr);
    }
    if (sum.constant) return write_constant(sum.choice.base, to);
    return Sums::write_integers(p, q, sum.choice, sum.choice.base, chunk_values, to, unfused);
  }

  static std::size_t sum(const Params& p, const Params* px, const void* x, std::span<const Term> terms, int count,
                         std::uint8_t* to, std::size_t capacity) {
    if (p.wide) return FastWideSums<V>::sum(p, px, x, terms, count, to, capacity);
    if (p.shape.exact_only) return chunk_unfused;
    for (const Term& t : terms)
      if (!add_supported(p, *t.params, px != nullptr ? *px : *t.params, capacity)) return chunk_unfused;
    const auto exact = [&] {
      const std::size_t n = FastExactSums<V>::sum(p, px, x, terms, count, to, capacity);
      return n != 0 ? n : chunk_unfused;
    };
    if (count < chunk_values) return exact();
    Terms t;
    const Parse found = read(terms, t);
    if (found != Parse::ok) return found == Parse::corrupt ? chunk_corrupt : exact();
    Integers q;
    std::int32_t biased = 0;
    if (x != nullptr) {
      Fill fill;
      if (!load_elements(*px, x, q, fill) || fill.blocks != 0) return exact();
      biased = bias(*px);
    } else if (t.codeds == 0) {
      return write_constant(t.base, to);
    }
    const std::size_t n = sum_residuals(p, x != nullptr ? &q : nullptr, biased, t, to);
    return n != 0 ? n : sum_integers(p, q, x != nullptr, biased, t, to);
  }

  static const Kernels* kernels() {
    static const Kernels k{Sums::Codec::encode, Sums::Codec::decode, Sums::add, Sums::encode_add, sum};
    return &k;
  }
};
