// Sums of chunks with exceptions of any kind, on 32-bit integers: where an operand has an exception the sum has an
// exact one. Two operands or several, with local elements or without; several are added one after another in the open,
// so that partial sums are not written. Included by fast_sums.h.

#include "codec/slice/fast_terms.h"

template <class V>
struct FastSums;

template <class V>
struct FastExactSums {
  using Codec = FastCodec<V>;
  using Exact = FastExact<V>;
  using Given = Choice<std::int32_t>;

  /// A chunk in the open.
  struct Open {
    Integers q;
    ExactSums* exact = nullptr;
    bool partial = false;  ///< a sum already
    Origin origin = Origin::elements;
    Given choice{};  ///< where it was, or would be, coded; of a constant just the base
    [[nodiscard]] std::uint64_t marks(int b) const { return exact->at(b).marks; }
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
      for (int b = 0; b < chunk_blocks; ++b) {
        marks[b] &= ~behind(count, b);
        if (marks[b] != 0) put_elements(p, x, b, marks[b], *o.exact);
      }
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
    at.put(fill_as_double(p, value));
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
      if (Codec::bit(c.fill_blocks, b)) put_fill(p, c.fill_value, b, marks[b], *o.exact);
      if (!Codec::bit(parts.whole | parts.listed, b)) continue;
      each_mark(marks[b] & ~exceptions[b], b, [&](int i) { o.q.q[i] = again.q[i]; });
      if ((marks[b] & exceptions[b]) != 0) put_elements(p, elements, b, marks[b] & exceptions[b], *o.exact);
    }
  }

  /// An operand without exceptions.
  static void open_plain(const Parsed& c, Open& o) {
    o.exact->clear();
    o.choice = c.choice;
    o.origin = c.kind == Kind::constant ? Origin::constant : Origin::coded;
    FastSums<V>::unpack(c, o.q);
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
    c.following.fetch_all();
    if (c.fill_blocks != 0 && !is_exception(p, c.fill_value)) return false;
    if (c.kind == Kind::fill) {
      o.exact->clear();
      o.origin = Origin::elements;
      V::broadcast(0, o.q.q);
      for (int b = 0; b < chunk_blocks; ++b) put_fill(p, c.fill_value, b, ~behind(count, b), *o.exact);
      return true;
    }
    if (c.fill_blocks == 0 && parts.whole == 0 && parts.listed == 0) {
      open_plain(c, o);
      return true;
    }
    o.exact->clear();
    o.choice = c.choice;
    o.origin = Origin::coded;
    std::uint64_t marks[chunk_blocks];
    if (!Exact::get_blocks(p, c, parts, count, o.q, marks)) return false;
    if (!p.shape.sum) {
      put_stored(p, c, parts, marks, o);
      return true;
    }
    for (int b = 0; b < chunk_blocks; ++b) {
      if (Codec::bit(c.fill_blocks, b)) put_fill(p, c.fill_value, b, marks[b], *o.exact);
      if (Codec::bit(parts.listed, b) && !put_terms(parts, b, marks[b], *o.exact)) return false;
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
    const auto of = [](const Open& o) { return predictor_if(o.origin == Origin::coded, o.choice.predictor); };
    given = {higher(of(x), of(y)), Codec::wrap_add(x.choice.base, y.choice.base)};
    return true;
  }

  /// `given`: null, or what the operands say, with the base that `none` would have.
  static Given choice_of_sum(Integers& q, const Given* given) {
    if (given == nullptr) return Codec::choose(q, 0);
    return {given->predictor, given->predictor == Predictor::none ? given->base : q.q[0]};
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
      if (sizeof(Writer) + x.exact->size() > largest_chunk) return false;
    }
    for (int i = 0; i < chunk_values; ++i) x.q.q[i] = Codec::wrap_add(x.q.q[i], y.q.q[i]);
    hold(x, count);
    x.partial = true;
    x.origin = origin_of(x, count);
    x.choice =
        x.origin == Origin::constant ? Given{Predictor::none, x.q.q[0]} : choice_of_sum(x.q, said ? &given : nullptr);
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
      const ExactSums::Block& k = x.exact->at(b);
      if (k.marks == 0) continue;
      V::put_plane(out, mark_plane(k.marks));
      if (Codec::bit(fill.blocks, b)) continue;
      if (s.w > max_code_width) --w.entry_count;
      w.put_entry(b, {s.w, s.d, Extra::terms, static_cast<std::uint32_t>(k.size() / 4)});
    }
    w.out = out;
  }

  /// Returns 0 where there may be too little room.
  static std::size_t write(const Params& p, Open& x, int count, std::uint8_t* to, std::size_t capacity) {
    if (sizeof(Writer) + x.exact->size() > capacity) return 0;
    if (x.origin == Origin::constant) return write_constant(x.choice.base, to);
    if (x.exact->blocks == 0)
      return FastSums<V>::write_integers(p, x.q, x.choice, x.choice.base, count, to, [] { return std::size_t{0}; });
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

  /// The sum so far, the term to be added to it, and room for their exceptions.
  struct Room {
    Open sum;
    Open next;
    ExactSums* spare;
    Room() {
      auto* const exact = static_cast<ExactSums*>(sum_scratch(3 * sizeof(ExactSums)));
      sum.exact = exact;
      next.exact = exact + 1;
      spare = exact + 2;
    }
  };
  static bool supported(const Params& p, const Params& px) { return !p.wide && !p.shape.exact_only && !px.wide; }

  /// x, which may be null, and then the terms, one after another. Returns 0 for all that it cannot do, or that is not
  /// valid.
  static std::size_t sum(const Params& p, const Params* px, const void* x, std::span<const Term> terms, int count,
                         std::uint8_t* to, std::size_t capacity) {
    if (!supported(p, px != nullptr ? *px : p)) return 0;
    Room room;
    if (x != nullptr) {
      alignas(64) std::uint8_t padded[chunk_values * 8];
      const void* all = repeat_last(x, count, px->shape.element_bytes, padded);
      open_elements(*px, static_cast<const std::uint8_t*>(all), count, room.sum);
    }
    return add_terms(p, room, x != nullptr, terms, count, to, capacity);
  }

  /// Elements of a whole chunk that have been quantised: room.sum has their integers, without bias, held, and these
  /// are their exceptions. To be followed by add_terms() or add_each().
  static void open_quantised(const Params& px, const Fill& fill, Open& o) {
    o.exact->clear();
    for (std::uint32_t m = fill.blocks; m != 0; m &= m - 1)
      put_fill(px, fill.value, __builtin_ctz(m), fill.marks[__builtin_ctz(m)], *o.exact);
  }

  static std::size_t add_terms(const Params& p, Room& room, bool local, std::span<const Term> terms, int count,
                               std::uint8_t* to, std::size_t capacity) {
    return add_each(p, room, local, static_cast<int>(terms.size()), count, to, capacity, [&](int i, Open& o) {
      const Term& t = terms[static_cast<std::size_t>(i)];
      return !t.params->wide && open(*t.params, t.bytes, count, o);
    });
  }
  /// n terms, that open_term(i, where) opens.
  template <class OpenTerm>
  static std::size_t add_each(const Params& p, Room& room, bool local, int n, int count, std::uint8_t* to,
                              std::size_t capacity, OpenTerm open_term) {
    for (int i = 0; i < n; ++i) {
      const bool only = !local && i == 0;
      if (!open_term(i, only ? room.sum : room.next)) return 0;
      if (!only && !add(room.sum, local && i == 0, room.next, p.grid.step, count, room.spare)) return 0;
    }
    return write(p, room.sum, count, to, capacity);
  }
};
