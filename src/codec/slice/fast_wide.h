// Encoding and decoding chunks on 64-bit integers (lossless f64 and 64-bit integers; f64 whose integers may reach
// 2^31), written once over a vector policy V. Loops are plain, for the compiler to make vectors of; V turns bytes into
// planes and back. Included by fast_codec.h. Adding is in fast_wide_sums.h.

template <class V>
struct FastWide {
  using Codec = FastCodec<V>;
  using I = std::int64_t;
  using U = std::uint64_t;
  using Writer = WriterOf<64>;
  using Coded = ParsedAs<I>;

  /// A chunk's integers, with room before them for the two that a chain starts from.
  struct alignas(64) WideIntegers {
    I before[8];
    I q[chunk_values];
    void start(I base) { before[6] = before[7] = base; }
  };

  // ------------------------------------------------------------------------------------------- elements <-> integers

  /// The quantiser (docs/format.md, section 8): 2^52 + 2^qbits + q in the low bits of a double.
  struct Quantiser {
    double inverse, step, bound, origin, end;
    explicit Quantiser(const Params& p)
        : inverse(p.inverse64),
          step(p.grid.step),
          bound(p.grid.bound),
          origin(0x1p52 + static_cast<double>(std::int64_t{1} << p.grid.qbits)),
          end(2 * origin - 0x1p52) {}
    /// Whether x is within the bound of q.
    bool one(double x, I& q) const {
      const double t = __builtin_fma(x, inverse, origin);
      q = wrap_sub(__builtin_bit_cast(I, t), __builtin_bit_cast(I, origin));
      return holds(x, t, (t - origin) * step);
    }
    /// The grid's number for x, or x where that is not within the bound.
    [[nodiscard]] double on_grid(double x) const {
      const double t = __builtin_fma(x, inverse, origin);
      const double value = (t - origin) * step;
      return holds(x, t, value) ? value : x;
    }
    [[nodiscard]] bool holds(double x, double t, double value) const {
      const double error = __builtin_fabs(x - value);
      return (static_cast<int>(t >= 0x1p52) & static_cast<int>(t < end) & static_cast<int>(error <= bound)) != 0;
    }
  };

  static double real(const void* x, int i) { return slice::load<double>(static_cast<const std::uint8_t*>(x) + 8 * i); }
  static I ordered(I bits) { return bits ^ static_cast<I>(static_cast<U>(bits >> 63) >> 1); }

  /// Elements -> integers; `fill` describes the exceptions. False: they are more than one value.
  static bool load_elements(const Params& p, const void* x, WideIntegers& q, Fill& fill) {
    fill.blocks = 0;
    if (p.shape.exact_only) {
      std::memcpy(q.q, x, sizeof q.q);
      if (p.shape.floating)
        for (I& v : q.q) v = ordered(v);
      return true;
    }
    const Quantiser k(p);
    std::uint64_t bad = 0;
    for (int i = 0; i < chunk_values; ++i) bad |= k.one(real(x, i), q.q[i]) ? 0 : 1;
    if (bad == 0) return true;
    for (int b = 0; b < chunk_blocks; ++b) {
      alignas(64) std::uint8_t flags[block_values];
      alignas(64) std::uint64_t plane[8];
      I unused = 0;
      for (int i = 0; i < block_values; ++i) flags[i] = k.one(real(x, 64 * b + i), unused) ? 0 : 1;
      V::planes_of_bytes(flags, plane);
      fill.marks[b] = plane[0];
    }
    if (!Codec::find_fill(p, x, fill)) return false;
    Codec::hold(q.q, fill.marks);
    return true;
  }

  static void store_elements(const Params& p, const I* q, void* y) {
    auto* to = static_cast<std::uint8_t*>(y);
    if (p.shape.exact_only) {
      if (!p.shape.floating) {
        std::memcpy(to, q, 8 * chunk_values);
      } else {
        for (int i = 0; i < chunk_values; ++i) store(to + 8 * i, ordered(q[i]));
      }
      return;
    }
    for (int i = 0; i < chunk_values; ++i) store(to + 8 * i, static_cast<double>(q[i]) * p.value_step);
  }

  static bool constant(const I* q) {
    U other = 0;
    for (int i = 0; i < chunk_values; ++i) other |= static_cast<U>(q[i] ^ q[0]);
    return other == 0;
  }

  // ------------------------------------------------------------------------------------------- planes

  template <Predictor P>
  static I residual(const I* q, I base) {
    if constexpr (P == Predictor::none) return wrap_sub(*q, base);
    const I d = wrap_sub(q[0], q[-1]);
    if constexpr (P == Predictor::first) return d;
    return wrap_sub(d, wrap_sub(q[-1], q[-2]));
  }

  /// The planes of 32 bits of each value, as far as below `w`; and of each group of eight, which bytes are not zero.
  static void split(const std::uint32_t* z, int w, std::uint64_t* plane, std::uint64_t* nonzero) {
    for (int g = 0; 8 * g < w; ++g) {
      alignas(64) std::uint8_t bytes[block_values];
      for (int i = 0; i < block_values; ++i) bytes[i] = static_cast<std::uint8_t>(z[i] >> (8 * g));
      nonzero[g] = V::planes_of_bytes(bytes, plane + 8 * g);
    }
  }
  static void join(const std::uint64_t* plane, int w, std::uint32_t* z) {
    std::memset(z, 0, sizeof *z * block_values);
    for (int g = 0; 8 * g < w; ++g) {
      alignas(64) std::uint8_t bytes[block_values];
      V::bytes_of_planes(plane + 8 * g, bytes);
      for (int i = 0; i < block_values; ++i) z[i] |= std::uint32_t{bytes[i]} << (8 * g);
    }
  }

  static void copy_planes(std::uint8_t* to, const std::uint8_t* from, int n) {
    for (int r = 0; r < n; r += 8) std::memcpy(to + 8 * r, from + 8 * r, 64);
  }

  static Split put(Out& o, const I* residuals) {
    alignas(64) std::uint32_t low[block_values];
    alignas(64) std::uint32_t high[block_values];
    alignas(64) std::uint64_t plane[64];
    std::uint64_t nonzero[8];
    U any = 0;
    for (int i = 0; i < block_values; ++i) {
      const U z = slice::zigzag(residuals[i]);
      any |= z;
      low[i] = static_cast<std::uint32_t>(z);
      high[i] = static_cast<std::uint32_t>(z >> 32);
    }
    const int w = any == 0 ? 0 : 64 - __builtin_clzll(any);
    split(low, w < 32 ? w : 32, plane, nonzero);
    split(high, w - 32, plane + 32, nonzero + 4);
    const int d = dense_planes(w, [&](int r) { return __builtin_popcountll(nonzero[r / 8] >> (8 * (r % 8)) & 255); });
    copy_planes(o.dense, reinterpret_cast<const std::uint8_t*>(plane), d);
    o.dense += 8 * d;
    for (int r = d; r < w; ++r) V::put_plane(o, plane[r]);
    return {w, d};
  }

  /// The residuals of the next block.
  static void get(In& in, int dense, int sparse, I* residuals) {
    alignas(64) std::uint64_t plane[64 + 8];
    alignas(64) std::uint32_t low[block_values];
    const int w = dense + sparse;
    copy_planes(reinterpret_cast<std::uint8_t*>(plane), in.dense, dense);
    in.dense += 8 * dense;
    std::memset(plane + w, 0, 64);
    for (int r = dense; r < w; ++r) plane[r] = V::get_plane(in);
    join(plane, w < 32 ? w : 32, low);
    if (w <= 32) {
      for (int i = 0; i < block_values; ++i) residuals[i] = unzigzag<I>(low[i]);
    } else {
      alignas(64) std::uint32_t high[block_values];
      join(plane + 32, w - 32, high);
      for (int i = 0; i < block_values; ++i) residuals[i] = unzigzag<I>(U{high[i]} << 32 | low[i]);
    }
  }

  /// Integers of residuals, in place.
  template <Predictor P>
  struct Chain {
    I last;
    I slope = 0;
    void next(I* q) {
      for (int i = 0; i < block_values; ++i) {
        if constexpr (P == Predictor::none) {
          q[i] = wrap_add(q[i], last);
        } else {
          slope = P == Predictor::second ? wrap_add(slope, q[i]) : q[i];
          q[i] = last = wrap_add(last, slope);
        }
      }
    }
  };

  // ------------------------------------------------------------------------------------------- chunks

  static void put_blocks(const WideIntegers& q, Choice<I> c, const Fill& fill, Ahead ahead, Writer& w) {
    with_predictor(c.predictor, [&](auto k) {
      Out out = w.out;
      for (int b = 0; b < chunk_blocks; ++b) {
        ahead.fetch(b);
        alignas(64) I r[block_values];
        for (int i = 0; i < block_values; ++i) r[i] = residual<k.value>(q.q + 64 * b + i, c.base);
        w.put_code(b, put(out, r));
        if (__builtin_expect(Codec::bit(fill.blocks, b), 0)) V::put_plane(out, mark_plane(fill.marks[b]));
      }
      w.out = out;
    });
  }

  static void get_blocks(const Coded& c, I* q, Fill& fill) {
    fill.blocks = c.fill_blocks;
    fill.value = c.fill_value;
    with_predictor(c.choice.predictor, [&](auto k) {
      In in = c.in;
      Chain<k.value> chain{c.choice.base};
      for (int b = 0; b < chunk_blocks; ++b) {
        get(in, c.dense[b], c.sparse[b], q + 64 * b);
        if (Codec::bit(c.fill_blocks, b)) fill.marks[b] = marks_of(V::get_plane(in));
        chain.next(q + 64 * b);
      }
    });
  }

  /// Puts together what has been written; where `raw` are the elements, those if that is not larger.
  static std::size_t finish(Writer& w, Choice<I> choice, const Fill& fill, const void* raw, int count,
                            std::uint8_t* to) {
    const std::size_t bytes = static_cast<std::size_t>(8 * count);
    if (raw == nullptr || w.coded() + 300 < bytes) return w.template finish<V>(choice, fill, 8, to);
    return Codec::finish_near_raw(w, choice, fill, 8, raw, bytes, to);
  }

  /// Not inlined, so that narrow chunks do not pay for its room on the stack.
  __attribute__((noinline)) static std::size_t encode(const Params& p, const void* x, int count, std::uint8_t* to) {
    alignas(64) std::uint8_t buffer[chunk_values * 8];
    WideIntegers q;
    Fill fill;
    if (!load_elements(p, repeat_last(x, count, 8, buffer), q, fill) || (fill.blocks != 0 && count < chunk_values))
      return reference_kernels().encode(p, x, count, to);
    if (fill.blocks == 0 && constant(q.q)) return write_constant(q.q[0], to);
    if (Codec::all_marked(fill)) return Codec::write_fill(fill, 8, to);
    const Choice<I> choice = choose_predictor(q.q, true);
    q.start(choice.base);
    Writer w;
    put_blocks(q, choice, fill, Ahead(x, 8), w);
    return finish(w, choice, fill, x, count, to);
  }

  static void on_grid(const Params& p, const void* x, int count, void* y) {
    const Quantiser k(p);
    const OneNan one(DType::f64);
    auto* to = static_cast<std::uint8_t*>(y);
    for (int i = 0; i < count; ++i) {
      const auto bits = __builtin_bit_cast(std::uint64_t, k.on_grid(real(x, i)));
      store(to + 8 * i, one(bits));
    }
  }

  static bool decode(const Params& p, ChunkBytes in, int count, void* y) {
    Coded c;
    const Parse found = parse<V>(p, in, c);
    if (found == Parse::corrupt) return false;
    if (found == Parse::rare || c.kind == Kind::fill || (c.fill_blocks != 0 && !Codec::simple_fill(p, count)))
      return reference_kernels().decode(p, in, count, y);
    WideIntegers q;
    Fill fill;
    if (c.kind == Kind::constant) {
      for (I& v : q.q) v = c.choice.base;
    } else {
      get_blocks(c, q.q, fill);
    }
    if (count == chunk_values) {
      store_elements(p, q.q, y);
    } else {
      alignas(64) std::uint8_t buffer[chunk_values * 8];
      store_elements(p, q.q, buffer);
      std::memcpy(y, buffer, static_cast<std::size_t>(8 * count));
    }
    for (int b = 0; b < chunk_blocks && fill.blocks >> b != 0; ++b)
      if (Codec::bit(fill.blocks, b)) V::put_fill(p, y, b, fill.marks[b], fill.value);
    return true;
  }
};
