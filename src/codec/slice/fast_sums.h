// Sums of chunks on 32-bit integers, written once over a vector policy V as fast_codec.h is, and included after it.
// Where operands have the same marks, residuals are added: as they are, or raised to the higher predictor; otherwise
// integers are, by fast_exact_sums.h where there are marks. Sums of more than two are in fast_sums_many.h.

#include "codec/slice/fast_exact_sums.h"
#include "codec/slice/fast_held.h"

template <class V>
struct FastWideSums;

template <class V>
struct FastSums : FastCodec<V> {
  using Codec = FastCodec<V>;
  using Codec::all_marked;
  using Codec::bias;
  using Codec::bit;
  using Codec::choose;
  using Codec::get_blocks;
  using Codec::hold;
  using Codec::load_elements;
  using Codec::mean;
  using Codec::put_blocks;
  using Codec::staged;
  using Codec::wrap_add;
  using Codec::wrap_sub;
  using Codec::write_fill;
  using typename Codec::R;
  using typename Codec::ToMemory;

  /// Exceptions of a sum: both operands have the same marks, and their fill values have an exact sum in a double.
  static bool add_fill(const Params& pa, std::uint64_t a, const Params& pb, std::uint64_t b, std::uint64_t& sum) {
    const double x = fill_as_double(pa, a);
    const double y = fill_as_double(pb, b);
    const double s = x + y;
    const double t = s - x;
    if (!(((x - (s - t)) + (y - t)) == 0)) return false;  // also when anything is not finite
    sum = __builtin_bit_cast(std::uint64_t, s);
    return true;
  }

  static std::size_t finish_sum(const Params& p, Writer& w, Choice<std::int32_t> choice, const Fill& fill,
                                std::uint8_t* to) {
    if (fill.blocks == 0 && flat(w.codes)) return write_constant(choice.base, to);
    return w.template finish<V>(choice, fill, p.shape.sum ? 8 : 4, to);
  }

  /// What the reference decides from the integers, and this file cannot see in residuals: a constant sum on `none`, and
  /// integers that are better sent raw.
  static bool unclear(const Params& p, const std::uint8_t* codes, std::size_t coded, Predictor predictor, int count) {
    if (predictor == Predictor::none && alike(codes)) return true;
    return p.shape.exact_only && coded + 300 >= static_cast<std::size_t>(count * p.shape.element_bytes);
  }

  static bool add_supported(const Params& p, const Params& pa, const Params& pb, std::size_t capacity) {
    return !p.wide && !pa.wide && !pb.wide && capacity >= sizeof(Writer);
  }

  /// A sum whose planes are known. `seen` is the predictor if the integers are not known, else any but none. `ahead`:
  /// null, or elements of four bytes, half of which are still to be fetched.
  template <class Stages, class Planes, class Rare>
  static std::size_t finish_stages(const Params& p, const Planes& s, Choice<std::int32_t> choice, Predictor seen,
                                   int count, std::uint8_t* to, Rare rare, const Ahead* ahead = nullptr) {
    const auto at = Stages::place(s, no_fill);
    if (unclear(p, at.codes, at.total, seen, count)) return rare();
    if (flat(at.codes)) return write_constant(choice.base, to);
    std::uint8_t* const planes = write_head<V>(choice, no_fill, 0, at.codes, to);
    if constexpr (requires { Stages::writes_fetch; })
      if (ahead != nullptr) return close(to, Stages::template write_sections<false>(s, at, planes, *ahead));
    return close(to, write_sections<Stages, false>(s, at, to, planes));
  }

  /// The sections of a chunk at `to`, while the room of the next one is fetched where it is long.
  template <class Stages, bool Marked, class Planes, class Places>
  static std::uint8_t* write_sections(const Planes& s, const Places& at, const std::uint8_t* to, std::uint8_t* planes) {
    if constexpr (requires { Stages::writes_fetch; }) {
      const std::size_t size = at.total + static_cast<std::size_t>(planes - to);
      if (size > fetched_at_once)
        return Stages::template write_sections<Marked>(s, at, planes, FollowingRoom{to + size, size});
    }
    return Stages::template write_sections<Marked>(s, at, planes);
  }

  /// A sum without marks whose integers are known, and not all equal; `base` takes the place of the choice's.
  template <class Rare>
  static std::size_t write_integers(const Params& p, Integers& q, Choice<std::int32_t> choice, std::int32_t base,
                                    int count, std::uint8_t* to, Rare rare) {
    const Ahead nothing(q.q, 1);
    q.start(choice.base);
    if constexpr (staged) {
      typename V::Planes s;
      if (with_predictor(choice.predictor, [&](auto k) {
            return V::Staged::template from_integers<k.value>(q, choice.base, nothing, s);
          }))
        return finish_stages<typename V::Staged>(p, s, {choice.predictor, base}, Predictor::first, count, to, rare);
    }
    Writer w;
    put_blocks(q, choice, no_fill, nothing, w);
    if (unclear(p, w.codes, w.coded(), Predictor::first, count)) return rare();
    return finish_sum(p, w, {choice.predictor, base}, no_fill, to);
  }

  /// Where integers are added to those that are there.
  struct ToAdded {
    std::int32_t* q;
    [[nodiscard]] auto block(int b) const { return typename V::Added{q + 64 * b}; }
  };
  /// The same as To, while what follows the chunk is fetched.
  template <class To>
  struct Fetching {
    To to;
    Following::Lines following;
    [[nodiscard]] auto block(int b) {
      following.fetch();
      return to.block(b);
    }
  };

  /// The integers of a chunk without exceptions.
  static void unpack(const Parsed& c, Integers& q) {
    const Following::Lines following = c.following.begin();
    if (c.kind == Kind::constant) return V::broadcast(c.choice.base, q.q);
    Fill none;
    get_blocks(c, Fetching<ToMemory>{{q.q}, following}, none);
  }
  /// The same, added to q.
  static void unpack_onto(const Parsed& c, Integers& q) {
    if constexpr (requires { typename V::Added; }) {
      if (c.kind == Kind::coded) {
        Fill none;
        return get_blocks(c, Fetching<ToAdded>{{q.q}, c.following.begin()}, none);
      }
    }
    Integers own;
    unpack(c, own);
    for (int i = 0; i < chunk_values; ++i) q.q[i] = wrap_add(q.q[i], own.q[i]);
  }

  /// A sum without marks. `given` as in write_sum_of().
  template <class Rare>
  static std::size_t write_sum(const Params& p, Integers& q, const Choice<std::int32_t>* given, int count,
                               std::uint8_t* to, Rare rare) {
    if (V::constant(q.q)) return write_constant(q.q[0], to);
    const Choice<std::int32_t> choice = FastExactSums<V>::choice_of_sum(q, given);
    return write_integers(p, q, choice, choice.base, count, to, rare);
  }

  /// A sum of operands with different predictors, or fewer values. `given` is its predictor where the operands say it,
  /// with the base that `none` would have.
  template <class Rare>
  static std::size_t write_sum_of(const Params& p, Integers& q, const Choice<std::int32_t>* given, int count,
                                  std::uint8_t* to, Rare rare) {
    for (int i = count; i < chunk_values; ++i) q.q[i] = q.q[i - 1];
    return write_sum(p, q, given, count, to, rare);
  }
  /// A sum in stages whose operands have the same marks. Returns 0 where its residuals must change.
  template <class Planes>
  static std::size_t finish_marked(const Planes& s, Choice<std::int32_t> choice, const Fill& fill, std::uint8_t* to) {
    const auto at = V::Sums::place(s, fill);
    if (!with_predictor(choice.predictor, [&](auto k) { return Held<V>::template check<k.value>(s, at.codes, fill); }))
      return 0;
    std::uint8_t* planes = write_head<V>(choice, fill, 8, at.codes, to);
    return close(to, write_sections<typename V::Sums, true>(s, at, to, planes));
  }

  static constexpr bool by_blocks = requires(In& in, Out& out) { V::add_block(in, 0, 0, in, 0, 0, out); };

  /// Any blocks. False: the operands' marks differ, or the sum's residuals must change.
  static bool add_blocks(const Parsed& a, const Parsed& b, Choice<std::int32_t> choice, Writer& w) {
    Out out = w.out;
    In ia = a.in;
    In ib = b.in;
    Held<V> held;
    Following::Lines following[2] = {a.following.begin(), b.following.begin()};
    for (int i = 0; i < chunk_blocks; ++i) {
      for (auto& lines : following) lines.fetch();
      const Out before = out;
      w.put_code(i, V::add_block(ia, a.dense[i], a.sparse[i], ib, b.dense[i], b.sparse[i], out));
      if (__builtin_expect(a.fill_blocks == 0, 1)) continue;
      std::uint64_t plane = 0;
      if (bit(a.fill_blocks, i)) {
        plane = V::get_plane(ia);
        if (plane == 0 || plane != V::get_plane(ib)) return false;
      }
      if (choice.predictor == Predictor::first && !held.check(before, out, marks_of(plane))) return false;
      if (plane != 0) V::put_plane(out, plane);
    }
    w.out = out;
    if (a.fill_blocks == 0) return true;
    return choice.predictor == Predictor::first ? !held.start : Held<V>::check(w, choice, a.fill_blocks);
  }

  /// Chunks whose planes V::Sums can add. Where it goes through all blocks alike, not most of them could be skipped.
  static bool staged_sum(const Parsed& a, const Parsed& b) {
    const Extent ea(a);
    const Extent eb(b);
    return ea.widest <= V::Sums::most && eb.widest <= V::Sums::most && (!staged || ea.empty + eb.empty <= chunk_blocks);
  }

  static std::size_t add(const Params& p, const Params& pa, ChunkBytes a, const Params& pb, ChunkBytes b, int count,
                         std::uint8_t* to, std::size_t capacity) {
    if (p.wide) return FastWideSums<V>::add(p, pa, a, pb, b, count, to, capacity);
    const auto rare = [&] { return reference_kernels().add(p, pa, a, pb, b, count, to, capacity); };
    if (!add_supported(p, pa, pb, capacity)) return rare();
    const auto exact = [&] {
      const Term terms[] = {{&pa, a}, {&pb, b}};
      const std::size_t n = FastExactSums<V>::sum(p, nullptr, nullptr, terms, count, to, capacity);
      return n != 0 ? n : rare();
    };
    Parsed c[2];
    Parsed& ca = c[0];
    Parsed& cb = c[1];
    const Parse fa = parse<V>(pa, a, ca);
    const Parse fb = parse<V>(pb, b, cb);
    if (fa == Parse::corrupt || fb == Parse::corrupt) return chunk_corrupt;
    if (fa == Parse::rare || fb == Parse::rare) return exact();
    if (ca.kind == Kind::constant && cb.kind == Kind::constant)
      return write_constant(wrap_add(ca.choice.base, cb.choice.base), to);
    Choice<std::int32_t> choice;
    const bool said = choice_of(ca, cb, choice);
    if (said && count == chunk_values) {
      const std::size_t n = add_planes(p, pa, pb, c, choice, to, rare);
      if (n != 0) return n;
    }
    if ((ca.fill_blocks | cb.fill_blocks) != 0) {
      const std::size_t n = count == chunk_values ? add_filled(pa, ca, pb, cb, said ? &choice : nullptr, to) : 0;
      return n != 0 ? n : exact();
    }
    Integers x;
    unpack(ca, x);
    unpack_onto(cb, x);
    return write_sum_of(p, x, said ? &choice : nullptr, count, to, rare);
  }

  /// What the operands say of how their sum is coded. A constant agrees with all.
  static bool choice_of(const Parsed& a, const Parsed& b, Choice<std::int32_t>& choice) {
    if (a.kind == Kind::fill || b.kind == Kind::fill) return false;
    const auto of = [](const Parsed& c) { return predictor_if(c.kind == Kind::coded, c.choice.predictor); };
    choice = {higher(of(a), of(b)), wrap_add(a.choice.base, b.choice.base)};
    return true;
  }

  /// A constant only moves the base: as if it were coded, with planes that are all zero.
  static void flatten(Parsed& constant, const Parsed& other) {
    constant.choice.predictor = other.choice.predictor;
    std::memset(constant.dense, 0, sizeof constant.dense);
    std::memset(constant.sparse, 0, sizeof constant.sparse);
    constant.in = {other.in.dense, other.in.masks, other.in.masks};
  }

  /// The value of exceptions that both operands have. False: they are more than one number, or none by right.
  static bool common_fill(const Params& pa, const Parsed& a, const Params& pb, const Parsed& b, Fill& fill) {
    fill.blocks = a.fill_blocks;
    if (a.fill_blocks != b.fill_blocks) return false;
    if (fill.blocks == 0) return true;
    return add_fill(pa, a.fill_value, pb, b.fill_value, fill.value) && is_exception(pa, a.fill_value) &&
           is_exception(pb, b.fill_value);
  }

  /// V::Sums can add residuals of several chunks, and of local integers.
  static constexpr bool sums_terms = requires { typename V::Sums; };

  /// Whether Kernels::room_fetch.
  static constexpr bool room_fetch = requires { V::Sums::writes_fetch; };

  /// Which of n chunks must be raised to the sum's predictor: the differences of their residuals are what is added. Its
  /// base becomes that of the sum. False: by more than one step.
  static bool find_raised(const Parsed* c, int n, Choice<std::int32_t>& choice, std::uint32_t& raised) {
    raised = 0;
    for (int i = 0; i < n; ++i) {
      if (c[i].choice.predictor == choice.predictor) continue;
      raised |= 1U << i;
      if (c[i].choice.predictor == Predictor::none) {
        if (choice.predictor == Predictor::second) return false;
        choice.base = wrap_add(choice.base, static_cast<std::int32_t>(first_residual(c[i])));
      }
    }
    return true;
  }

  /// A sum of n chunks whose predictors are that of `choice` or lower, with marks in the blocks of `fill`, which has
  /// their sum; with local integers where `local` is not null, whose marks `fill` has. Residuals are added. Returns 0
  /// where that would not do: marks differ, or planes are too many.
  template <class Rare>
  static std::size_t sum_planes(const Params& p, Choice<std::int32_t> choice, const LocalTerm* local, const Parsed* c,
                                int n, Fill& fill, std::uint8_t* to, Rare rare) {
    typename V::Planes s;
    std::uint32_t raised = 0;
    if (!find_raised(c, n, choice, raised)) return 0;
    const bool fits = local == nullptr
                          ? V::Sums::template from_terms<Predictor::none, false>(nullptr, c, n, raised, fill, s)
                          : with_predictor(choice.predictor, [&](auto k) {
                              return V::Sums::template from_terms<k.value, true>(local, c, n, raised, fill, s);
                            });
    if (!fits) return 0;
    if (fill.blocks != 0) return finish_marked(s, choice, fill, to);
    const Ahead* ahead = local != nullptr && local->ahead.spread ? &local->ahead : nullptr;
    return finish_stages<typename V::Sums>(p, s, choice, choice.predictor, chunk_values, to, rare, ahead);
  }

  /// Residuals are added as they are. Returns 0 where that would not do.
  template <class Rare>
  static std::size_t add_planes(const Params& p, const Params& pa, const Params& pb, Parsed (&c)[2],
                                Choice<std::int32_t> choice, std::uint8_t* to, Rare rare) {
    Parsed& ca = c[0];
    Parsed& cb = c[1];
    Fill fill;
    if (!common_fill(pa, ca, pb, cb, fill)) return 0;
    if (ca.kind == Kind::constant) flatten(ca, cb);
    if (cb.kind == Kind::constant) flatten(cb, ca);
    if constexpr (sums_terms) {
      if (staged_sum(ca, cb)) {
        const std::size_t n = sum_planes(p, choice, nullptr, c, 2, fill, to, rare);
        if (n != 0 || fill.blocks != 0) return n;
      }
    }
    if constexpr (by_blocks) {
      if (ca.choice.predictor != cb.choice.predictor) return 0;
      Writer w;
      if (!add_blocks(ca, cb, choice, w)) return 0;
      if (unclear(p, w.codes, w.coded(), choice.predictor, chunk_values)) return rare();
      return finish_sum(p, w, choice, fill, to);
    }
    return 0;
  }

  /// Of coded chunks whose exceptions are one value each, in the same places: integers are added. `given` as in
  /// write_sum_of(). Returns 0 where that would not do.
  static std::size_t add_filled(const Params& pa, const Parsed& ca, const Params& pb, const Parsed& cb,
                                const Choice<std::int32_t>* given, std::uint8_t* to) {
    if constexpr (staged) {
      Fill sum;
      if (ca.kind != Kind::coded || cb.kind != Kind::coded || !common_fill(pa, ca, pb, cb, sum)) return 0;
      Integers x;
      Integers y;
      Fill fx;
      Fill fy;
      get_blocks(ca, ToMemory{x.q}, fx);
      get_blocks(cb, ToMemory{y.q}, fy);
      for (int b = 0; b < chunk_blocks; ++b) {
        sum.marks[b] = bit(sum.blocks, b) ? fx.marks[b] : 0;
        if (bit(sum.blocks, b) && (fx.marks[b] == 0 || fx.marks[b] != fy.marks[b])) return 0;
      }
      if (all_marked(sum)) return 0;
      for (int i = 0; i < chunk_values; ++i) x.q[i] = wrap_add(x.q[i], y.q[i]);
      hold(x.q, sum.marks);
      const Choice<std::int32_t> choice = FastExactSums<V>::choice_of_sum(x, given);
      x.start(choice.base);
      typename V::Planes s;
      if (!with_predictor(choice.predictor, [&](auto k) {
            return V::Staged::template from_integers<k.value>(x, choice.base, Ahead(x.q, 1), s);
          }))
        return 0;
      const auto at = V::Staged::place(s, sum);
      std::uint8_t* const planes = write_head<V>(choice, sum, 8, at.codes, to);
      return close(to, write_sections<typename V::Staged, true>(s, at, to, planes));
    }
    return 0;
  }

  template <Predictor P>
  static bool add_local(const LocalTerm& local, const Parsed& c, const Fill& fill, Choice<std::int32_t> choice,
                        Writer& w) {
    Out out = w.out;
    In in = c.in;
    Held<V> held;
    Following::Lines following = c.following.begin();
    for (int b = 0; b < chunk_blocks; ++b) {
      local.ahead.fetch(b);
      following.fetch();
      const R r = V::template residual<P>(local.q->q + 64 * b, local.base);
      const Out before = out;
      w.put_code(b, V::put(out, V::sum(r, V::get(in, c.dense[b], c.sparse[b]))));
      if (__builtin_expect(fill.blocks == 0, 1)) continue;
      const std::uint64_t marks = bit(fill.blocks, b) ? fill.marks[b] : 0;
      if (marks != 0 && V::get_plane(in) != mark_plane(marks)) return false;
      if (P == Predictor::first && !held.check(before, out, marks)) return false;
      if (marks != 0) V::put_plane(out, mark_plane(marks));
    }
    w.out = out;
    if (fill.blocks == 0) return true;
    return P == Predictor::first ? !held.start : Held<V>::check(w, choice, fill.blocks);
  }

  static std::size_t encode_add(const Params& p, const Params& px, const void* x, const Params& pb, ChunkBytes b,
                                int count, std::uint8_t* to, std::size_t capacity) {
    if (p.wide) return FastWideSums<V>::encode_add(p, px, x, pb, b, count, to, capacity);
    const auto rare = [&] { return reference_kernels().encode_add(p, px, x, pb, b, count, to, capacity); };
    if (!add_supported(p, px, pb, capacity)) return rare();
    const auto exact = [&] {
      const Term term[] = {{&pb, b}};
      const std::size_t n = FastExactSums<V>::sum(p, &px, x, term, count, to, capacity);
      return n != 0 ? n : rare();
    };
    if (count < chunk_values) return exact();
    Parsed c;
    const Parse found = parse<V>(pb, b, c);
    if (found == Parse::corrupt) return chunk_corrupt;
    if (found == Parse::rare) return exact();
    Integers q;
    Fill fill;
    if (!load_elements(px, x, q, fill)) return exact();
    const std::int32_t biased = bias(px);
    Choice<std::int32_t> choice = c.choice;
    const std::int32_t base = choice.predictor == Predictor::none ? mean(q.q, biased) : q.q[0];
    choice.base = wrap_add(choice.base, wrap_sub(base, biased));
    if (c.kind == Kind::coded) {
      q.start(base);
      const std::size_t n =
          add_local_planes(p, px, {&q, base, Ahead(x, px.shape.element_bytes)}, fill, pb, c, choice, to, rare);
      if (n != 0) return n;
    }
    const bool exceptions = (fill.blocks | c.fill_blocks) != 0;
    // The mean of a constant and integers is not always that of the integers, moved: their sum may wrap around.
    const std::int32_t move = c.kind == Kind::constant && !exceptions ? c.choice.base : 0;
    for (std::int32_t& v : q.q) v = wrap_add(v, wrap_sub(move, biased));
    if (exceptions) {
      typename FastExactSums<V>::Room room;
      room.sum.q = q;
      FastExactSums<V>::open_quantised(px, fill, room.sum);
      const Term term[] = {{&pb, b}};
      const std::size_t n = FastExactSums<V>::add_terms(p, room, true, term, count, to, capacity);
      return n != 0 ? n : rare();
    }
    if (c.kind == Kind::constant) return write_sum(p, q, nullptr, count, to, rare);
    unpack_onto(c, q);
    return write_sum_of(p, q, &choice, count, to, rare);
  }

  /// Residuals of the local integers, formed as the chunk's are, and added to those. Returns 0 where that would not do.
  template <class Rare>
  static std::size_t add_local_planes(const Params& p, const Params& px, const LocalTerm& local, Fill& fill,
                                      const Params& pb, const Parsed& c, Choice<std::int32_t> choice, std::uint8_t* to,
                                      Rare rare) {
    if (fill.blocks != c.fill_blocks) return 0;
    std::uint64_t sum = 0;
    if (fill.blocks != 0) {
      if (!add_fill(px, fill.value, pb, c.fill_value, sum)) return 0;
      if (!is_exception(pb, c.fill_value)) return 0;
    }
    if constexpr (sums_terms) {
      Fill marks = fill;
      marks.value = sum;
      const std::size_t n = sum_planes(p, choice, &local, &c, 1, marks, to, rare);
      if (n != 0) return n;
    }
    Writer w;
    if (!with_predictor(choice.predictor, [&](auto k) { return add_local<k.value>(local, c, fill, choice, w); }))
      return 0;
    if (unclear(p, w.codes, w.coded(), choice.predictor, chunk_values)) return rare();
    fill.value = sum;
    return finish_sum(p, w, choice, fill, to);
  }
};

#include "codec/slice/fast_wide_sums.h"
