// Sums of chunks on 64-bit integers, written once over a vector policy V as fast_wide.h is. Where all residuals were
// formed alike and in 64 bits they are added as they are; otherwise integers are. Exceptions go to the reference.
// Included by fast_sums.h.

template <class V>
struct FastWideSums : FastWide<V> {
  using Wide = FastWide<V>;
  using Codec = FastCodec<V>;
  using typename Wide::Coded;
  using typename Wide::I;
  using typename Wide::WideIntegers;
  using typename Wide::Writer;
  using Wide::constant;
  using Wide::finish;
  using Wide::get;
  using Wide::get_blocks;
  using Wide::load_elements;
  using Wide::put;
  using Wide::put_blocks;

  /// An operand of a sum, without exceptions.
  struct Operand {
    Origin origin = Origin::coded;
    Choice<I> choice;
    bool wide = true;
    Coded coded;
    Parsed narrow;
    const std::uint8_t* raw = nullptr;  ///< elements of raw chunks, `count` of them
    int count = 0;

    /// Parse::rare: exceptions, and what else is left to the reference.
    Parse read(const Params& p, ChunkBytes in, int n) {
      Following{in.data + in.size, in.size}.fetch_all();
      raw = p.shape.exact_only ? raw_elements(p, in, n) : nullptr;
      count = n;
      if (raw != nullptr) {
        origin = Origin::elements;
        return Parse::ok;
      }
      wide = p.wide;
      return wide ? parse_as(p, in, coded) : parse_as(p, in, narrow);
    }
    template <class J>
    Parse parse_as(const Params& p, ChunkBytes in, ParsedAs<J>& c) {
      const Parse found = parse<V>(p, in, c);
      if (found == Parse::ok && (c.kind == Kind::fill || c.fill_blocks != 0)) return Parse::rare;
      origin = c.kind == Kind::constant ? Origin::constant : Origin::coded;
      choice = {c.choice.predictor, c.choice.base};
      return found;
    }

    /// Whether its residuals say all, in 64 bits: chains of narrow chunks wrap in 32.
    [[nodiscard]] bool has_residuals() const { return wide && origin == Origin::coded; }

    /// Adds the residuals of the block that `in` has come to.
    void add_residuals(In& in, int b, I* sum) const {
      alignas(64) I own[block_values];
      get(in, coded.dense[b], coded.sparse[b], own);
      for (int i = 0; i < block_values; ++i) sum[i] = wrap_add(sum[i], own[i]);
    }

    void add_integers(I* sum) const {
      if (raw != nullptr) {
        for (int i = 0; i < count; ++i) sum[i] = wrap_add(sum[i], slice::load<I>(raw + 8 * i));
      } else if (origin == Origin::constant) {
        for (int i = 0; i < chunk_values; ++i) sum[i] = wrap_add(sum[i], choice.base);
      } else if (!wide) {
        Integers of_narrow;
        Fill none;
        Codec::get_blocks(narrow, typename Codec::ToMemory{of_narrow.q}, none);
        for (int i = 0; i < chunk_values; ++i) sum[i] = wrap_add(sum[i], I{of_narrow.q[i]});
      } else {
        WideIntegers q;
        Fill none;
        get_blocks(coded, q.q, none);
        for (int i = 0; i < chunk_values; ++i) sum[i] = wrap_add(sum[i], q.q[i]);
      }
    }
  };

  /// Residuals that are formed alike are added as they are: those of operands (constants have none), and of local
  /// integers where `local` is not null (from `base`, which choice.base has in it). Returns 0 where the integers
  /// themselves must be seen: a sum on `none` may be constant, one of elements better raw.
  static std::size_t sum_residuals(const Params& p, const I* local, I base, std::span<const Operand> operands,
                                   Choice<I> choice, std::uint8_t* to) {
    Writer w;
    In in[most_terms];
    for (std::size_t k = 0; k < operands.size(); ++k) in[k] = operands[k].coded.in;
    with_predictor(choice.predictor, [&](auto k) {
      for (int b = 0; b < chunk_blocks; ++b) {
        alignas(64) I r[block_values] = {};
        if (local != nullptr)
          for (int i = 0; i < block_values; ++i) r[i] = Wide::template residual<k.value>(local + 64 * b + i, base);
        for (std::size_t o = 0; o < operands.size(); ++o)
          if (operands[o].has_residuals()) operands[o].add_residuals(in[o], b, r);
        w.put_code(b, put(w.out, r));
      }
    });
    if (FastSums<V>::unclear(p, w.codes, w.coded(), choice.predictor, chunk_values)) return 0;
    if (flat(w.codes)) return write_constant(choice.base, to);
    return w.template finish<V>(choice, no_fill, 8, to);
  }

  /// Writes a sum's integers; `given` as in the reference's sum_choice, null to choose afresh.
  static std::size_t write_integers(const Params& p, WideIntegers& q, const Choice<I>* given, int count,
                                    std::uint8_t* to) {
    for (int i = count; i < chunk_values; ++i) q.q[i] = q.q[count - 1];
    if (constant(q.q)) return write_constant(q.q[0], to);
    Choice<I> choice = given != nullptr ? *given : choose_predictor(q.q, true);
    if (choice.predictor != Predictor::none) choice.base = q.q[0];
    q.start(choice.base);
    Writer w;
    put_blocks(q, choice, no_fill, Ahead(q.q, 1), w);
    return finish(w, choice, no_fill, p.shape.exact_only ? q.q : nullptr, count, to);
  }

  static std::size_t add(const Params& p, const Params& pa, ChunkBytes a, const Params& pb, ChunkBytes b, int count,
                         std::uint8_t* to, std::size_t capacity) {
    Operand o[2];
    const Operand& x = o[0];
    const Operand& y = o[1];
    const Parse fa = o[0].read(pa, a, count);
    const Parse fb = o[1].read(pb, b, count);
    if (fa == Parse::corrupt || fb == Parse::corrupt) return chunk_corrupt;
    if (fa == Parse::rare || fb == Parse::rare || capacity < sizeof(Writer))
      return reference_kernels().add(p, pa, a, pb, b, count, to, capacity);
    const bool said = x.origin != Origin::elements && y.origin != Origin::elements;
    const auto of = [](const Operand& k) { return predictor_if(k.origin == Origin::coded, k.choice.predictor); };
    const Choice<I> given{higher(of(x), of(y)), wrap_add(x.choice.base, y.choice.base)};
    const bool alike = x.origin != Origin::coded || y.origin != Origin::coded || of(x) == of(y);
    if (said && alike && x.wide && y.wide && count == chunk_values) {
      const std::size_t n = sum_residuals(p, nullptr, 0, o, given, to);
      if (n != 0) return n;
    }
    WideIntegers sum{};
    for (const Operand& k : o) k.add_integers(sum.q);
    return write_integers(p, sum, said ? &given : nullptr, count, to);
  }

  /// Local integers without exceptions and their sampled mean, which wraps in their own width.
  static bool load_local(const Params& p, const void* x, WideIntegers& q, I& mean) {
    Fill fill;
    if (!load_elements(p, x, q, fill) || fill.blocks != 0) return false;
    if (p.wide) {
      mean = sampled_mean(q.q);
    } else {
      std::int32_t narrow[chunk_values];
      for (int i = 0; i < chunk_values; ++i) narrow[i] = static_cast<std::int32_t>(q.q[i]);
      mean = sampled_mean(narrow);
    }
    return true;
  }

  static std::size_t encode_add(const Params& p, const Params& px, const void* x, const Params& pb, ChunkBytes b,
                                int count, std::uint8_t* to, std::size_t capacity) {
    Operand y;
    const Parse found = y.read(pb, b, count);
    if (found == Parse::corrupt) return chunk_corrupt;
    alignas(64) std::uint8_t buffer[chunk_values * 8];
    WideIntegers local;
    I mean = 0;
    if (found == Parse::rare || capacity < sizeof(Writer) ||
        !load_local(px, repeat_last(x, count, 8, buffer), local, mean))
      return reference_kernels().encode_add(p, px, x, pb, b, count, to, capacity);
    const I base = y.choice.predictor == Predictor::none ? mean : local.q[0];
    const Choice<I> given{y.choice.predictor, wrap_add(base, y.choice.base)};
    const bool says = y.origin == Origin::coded;
    if (y.has_residuals() && count == chunk_values) {
      local.start(base);
      const std::size_t n = sum_residuals(p, local.q, base, {&y, 1}, given, to);
      if (n != 0) return n;
    }
    y.add_integers(local.q);
    return write_integers(p, local, says ? &given : nullptr, count, to);
  }

  /// Differences that are formed alike, as one sum; all else one after another. Partial sums on `none` might be
  /// constant, those of narrow frames might wrap, those of lossless frames be raw.
  static std::size_t sum(const Params& p, const Params* px, const void* x, std::span<const Term> terms, int count,
                         std::uint8_t* to, std::size_t capacity) {
    if (count < chunk_values || p.shape.exact_only || capacity < sizeof(Writer)) return chunk_unfused;
    if (px != nullptr && !px->wide) return chunk_unfused;
    Operand operands[most_terms];
    Choice<I> choice{Predictor::none, 0};
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (!terms[i].params->wide) return chunk_unfused;
      Operand& o = operands[i];
      const Parse found = o.read(*terms[i].params, terms[i].bytes, count);
      if (found != Parse::ok) return found == Parse::corrupt ? chunk_corrupt : chunk_unfused;
      choice.base = wrap_add(choice.base, o.choice.base);
      if (o.origin == Origin::constant && (i > 0 || px == nullptr)) continue;
      if (o.origin != Origin::coded || o.choice.predictor == Predictor::none) return chunk_unfused;
      if (choice.predictor != Predictor::none && choice.predictor != o.choice.predictor) return chunk_unfused;
      choice.predictor = o.choice.predictor;
    }
    if (choice.predictor == Predictor::none) return chunk_unfused;
    WideIntegers local;
    I mean = 0;
    if (x != nullptr) {
      if (!load_local(*px, x, local, mean)) return chunk_unfused;
      local.start(local.q[0]);
      choice.base = wrap_add(choice.base, local.q[0]);
    }
    return sum_residuals(p, x != nullptr ? local.q : nullptr, 0, {operands, terms.size()}, choice, to);
  }
};
