// From integers to bytes: sections, codes and entries, exact values, and the choice of the predictor.
#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/slice/chunk.h"
#include "codec/slice/chunk_integers.h"

namespace laconic::slice {
namespace {

int non_zero_bytes(std::uint64_t plane) {
  int n = 0;
  for (; plane != 0; plane >>= 8) n += (plane & 255) != 0;
  return n;
}

/// The residual of position i under a predictor.
template <class I>
I residual(const I* q, int i, Predictor p, I base) {
  if (p == Predictor::none) return wrap_sub(q[i], base);
  const I d = wrap_sub(q[i], i > 0 ? q[i - 1] : base);
  if (p == Predictor::first || i == 0) return d;
  return wrap_sub(d, wrap_sub(q[i - 1], i > 1 ? q[i - 2] : base));
}

/// The bit planes of 64 zigzag words, and how they are split.
struct Planes {
  std::array<std::uint64_t, 64> plane{};
  int w = 0;
  int d = 0;
  [[nodiscard]] int sparse() const { return w - d; }
};

template <class U>
Planes planes_of(const U* z) {
  Planes p;
  U any = 0;
  for (int i = 0; i < block_values; ++i) {
    any = static_cast<U>(any | z[i]);
    for (U v = z[i]; v != 0; v = static_cast<U>(v & (v - 1)))
      p.plane[static_cast<std::size_t>(std::countr_zero(v))] |= std::uint64_t{1} << i;
  }
  p.w = static_cast<int>(std::bit_width(any));
  p.d = dense_planes(p.w, [&](int r) { return non_zero_bytes(p.plane[static_cast<std::size_t>(r)]); });
  return p;
}

using Buffer = std::vector<std::uint8_t>;

template <class T>
void append(Buffer& b, T v) {
  const std::size_t at = b.size();
  b.resize(at + sizeof v);
  store(b.data() + at, v);
}

/// The sections of a chunk while it is being written.
class Writer {
 public:
  Word word;
  std::int64_t base = 0;
  std::uint32_t fill_blocks = 0;
  std::uint64_t fill = 0;
  std::array<std::uint8_t, chunk_blocks> codes{};
  Buffer entries, dense, masks, bytes, exact;

  void put_planes(const Planes& p) {
    for (int r = 0; r < p.d; ++r) append(dense, p.plane[static_cast<std::size_t>(r)]);
    for (int r = p.d; r < p.w; ++r) put_sparse(p.plane[static_cast<std::size_t>(r)]);
  }
  void put_sparse(std::uint64_t plane) {
    std::uint8_t mask = 0;
    for (int g = 0; g < 8; ++g) {
      const auto byte = static_cast<std::uint8_t>(plane >> (8 * g));
      if (byte == 0) continue;
      mask = static_cast<std::uint8_t>(mask | 1U << g);
      bytes.push_back(byte);
    }
    masks.push_back(mask);
  }
  /// The block's code, or an entry where a code cannot say it.
  void put_code(int b, const Planes& p, Extra extra, std::size_t exact_bytes) {
    auto& code = codes[static_cast<std::size_t>(b)];
    if (extra == Extra::wide && p.w <= max_code_width) {
      code = make_code(p.w, p.d);
      return;
    }
    code = code_extended;
    append(entries, Entry{p.w, p.d, extra, static_cast<std::uint32_t>(exact_bytes / 4)}.pack());
  }

  std::size_t finish(const ChunkShape& shape, int integer_bytes, std::uint8_t* out) {
    Buffer head;
    word.long_base = !Word::fits(base);
    word.base = word.long_base ? 0 : static_cast<std::int32_t>(base);
    word.has_fill = fill_blocks != 0;
    Buffer dictionary(codes.begin(), codes.end());
    std::sort(dictionary.begin(), dictionary.end());
    dictionary.erase(std::unique(dictionary.begin(), dictionary.end()), dictionary.end());
    std::array<std::uint32_t, 8> index{};
    for (std::size_t b = 0; b < codes.size(); ++b) {
      const auto it = std::find(dictionary.begin(), dictionary.end(), codes[b]);
      const auto k = static_cast<unsigned>(it - dictionary.begin());
      for (unsigned j = 0; j < index.size(); ++j) index[j] |= (k >> j & 1) << b;
    }
    word.index_planes = index_planes_for(static_cast<int>(dictionary.size()));
    const bool plain = word.index_planes == Word::plain_codes;
    word.dictionary = plain ? 1 : static_cast<std::uint32_t>(dictionary.size());
    append(head, word.pack());
    put_base(head, integer_bytes);
    if (word.has_fill) {
      append(head, fill_blocks);
      put_fill(head, shape);
    }
    if (plain) {
      head.insert(head.end(), codes.begin(), codes.end());
    } else {
      for (std::uint32_t j = 0; j < word.index_planes; ++j) append(head, index[j]);
      head.insert(head.end(), dictionary.begin(), dictionary.end());
      head.resize(pad4(head.size()));
    }
    std::uint8_t* p = out;
    for (const Buffer* s : {&head, &entries, &dense, &masks, &bytes}) p = std::copy(s->begin(), s->end(), p);
    while ((p - out) % 4 != 0) *p++ = 0;
    p = std::copy(exact.begin(), exact.end(), p);
    return static_cast<std::size_t>(p - out);
  }
  [[nodiscard]] std::size_t size_bound() const {
    return 64 + codes.size() + entries.size() + dense.size() + masks.size() + bytes.size() + exact.size();
  }

  void put_base(Buffer& head, int integer_bytes) const {
    if (!word.long_base) return;
    if (integer_bytes == 4) {
      append(head, static_cast<std::int32_t>(base));
    } else {
      append(head, base);
    }
  }
  void put_fill(Buffer& head, const ChunkShape& shape) const {
    if (shape.sum || shape.element_bytes == 8) {
      append(head, fill);
    } else {
      append(head, static_cast<std::uint32_t>(fill));
    }
  }
};

/// Walks over the exact values of the marked positions, in order.
template <class I>
class ExactValues {
 public:
  ExactValues(const Chunk<I>& c, const ChunkShape& shape) : c_(c), shape_(shape) {
    std::size_t n = 0;
    for (std::size_t b = 0; b < first_.size(); ++b) {
      first_[b] = n;
      n += static_cast<std::size_t>(std::popcount(c.marks[b]));
    }
  }
  /// One 64-bit key of the k-th marked value of block b (bits of the element, or of a one-term sum); false if there is
  /// none.
  bool key(std::size_t b, int position, std::size_t k, std::uint64_t& out) const {
    if (!shape_.sum) {
      out = c_.exact[b * block_values + static_cast<std::size_t>(position)];
      return true;
    }
    const auto& terms = c_.terms[first_[b] + k].terms();
    if (terms.size() > 1) return false;
    out = std::bit_cast<std::uint64_t>(terms.empty() ? 0.0 : terms[0]);
    return true;
  }
  const Expansion& terms(std::size_t b, std::size_t k) const { return c_.terms[first_[b] + k]; }

  /// The fill value: the first that the next marked one repeats, else the first that has a key. False without any.
  bool fill(std::uint64_t& out) const {
    bool any = false;
    bool have_previous = false;
    std::uint64_t previous = 0;
    bool repeated = false;
    for_each([&](std::size_t b, int position, std::size_t k) {
      std::uint64_t v = 0;
      const bool has = key(b, position, k, v);
      if (has && !any) {
        out = v;
        any = true;
      }
      if (has && have_previous && v == previous && !repeated) {
        out = v;
        repeated = true;
      }
      have_previous = has;
      previous = v;
    });
    return any;
  }
  [[nodiscard]] bool all_equal(std::size_t b, std::uint64_t value) const {
    bool equal = true;
    each_in(b, [&](int position, std::size_t k) {
      std::uint64_t v = 0;
      equal = equal && key(b, position, k, v) && v == value;
    });
    return equal;
  }
  template <class F>
  void each_in(std::size_t b, F f) const {
    std::size_t k = 0;
    for (std::uint64_t m = c_.marks[b]; m != 0; m &= m - 1) f(std::countr_zero(m), k++);
  }

 private:
  template <class F>
  void for_each(F f) const {
    for (std::size_t b = 0; b < first_.size(); ++b) each_in(b, [&](int position, std::size_t k) { f(b, position, k); });
  }
  const Chunk<I>& c_;
  const ChunkShape& shape_;
  std::array<std::size_t, chunk_blocks> first_{};
};

void pad_exact(Buffer& b) { b.resize(pad4(b.size())); }

void append_element(Buffer& b, std::uint64_t bits, int bytes) {
  for (int i = 0; i < bytes; ++i) b.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
}

/// A block whose 64 elements are stored losslessly: deltas of ordered bit patterns, or the elements if that is smaller.
template <class I>
void write_lossless_block(Writer& w, const Chunk<I>& c, const ChunkShape& shape, int b) {
  const std::uint64_t* e = &c.exact[static_cast<std::size_t>(b * block_values)];
  std::array<Unsigned<I>, block_values> z{};
  for (int i = 1; i < block_values; ++i)
    z[static_cast<std::size_t>(i)] =
        zigzag(wrap_sub(order_map<I>(e[i], shape.element_bytes), order_map<I>(e[i - 1], shape.element_bytes)));
  const Planes p = planes_of(z.data());
  std::size_t size =
      static_cast<std::size_t>(8 * p.d + p.sparse()) + pad4(static_cast<std::size_t>(shape.element_bytes));
  for (int r = p.d; r < p.w; ++r)
    size += static_cast<std::size_t>(non_zero_bytes(p.plane[static_cast<std::size_t>(r)]));
  const std::size_t before = w.exact.size();
  // 32-bit integers on the grid cannot hold the deltas of 64-bit elements.
  const bool holds = static_cast<int>(sizeof(I)) >= shape.element_bytes;
  if (holds && size < static_cast<std::size_t>(block_values * shape.element_bytes)) {
    append_element(w.exact, e[0], shape.element_bytes);
    pad_exact(w.exact);
    w.put_code(b, p, Extra::lossless, w.exact.size() - before);
    w.put_planes(p);
  } else {
    for (int i = 0; i < block_values; ++i) append_element(w.exact, e[i], shape.element_bytes);
    w.put_code(b, Planes{}, Extra::raw, w.exact.size() - before);
  }
}

/// Puts what the marked positions of block b are into the exact section.
template <class I>
Extra write_exact(Writer& w, const ExactValues<I>& values, const ChunkShape& shape, std::size_t b) {
  if (!shape.sum) {
    values.each_in(b, [&](int position, std::size_t k) {
      std::uint64_t v = 0;
      values.key(b, position, k, v);
      append_element(w.exact, v, shape.element_bytes);
    });
    pad_exact(w.exact);
    return Extra::listed;
  }
  values.each_in(
      b, [&](int, std::size_t k) { w.exact.push_back(static_cast<std::uint8_t>(values.terms(b, k).terms().size())); });
  pad_exact(w.exact);
  values.each_in(b, [&](int, std::size_t k) {
    for (const double t : values.terms(b, k).terms()) append(w.exact, t);
  });
  return Extra::terms;
}

template <class I>
bool all_values_equal(const Chunk<I>& c) {
  return std::all_of(c.q.begin(), c.q.end(), [&](I v) { return v == c.q[0]; });
}

template <class I>
bool all_marked(const Chunk<I>& c) {
  for (int b = 0; 64 * b < c.count; ++b) {
    const int n = std::min(block_values, c.count - 64 * b);
    if (c.marks[static_cast<std::size_t>(b)] != (~std::uint64_t{0} >> (64 - n))) return false;
  }
  return true;
}

std::size_t write_raw(const std::uint8_t* raw, std::size_t bytes, std::uint8_t* out) {
  store(out, Word{.kind = Kind::raw}.pack());
  std::memcpy(out + 4, raw, bytes);
  std::size_t n = 4 + bytes;
  while (n % 4 != 0) out[n++] = 0;
  return n;
}

}  // namespace

template <class I>
void hold_marked(Chunk<I>& c) {
  I held = 0;
  for (int i = 0; i < c.count; ++i)
    if ((c.marks[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1) == 0) {
      held = c.q[static_cast<std::size_t>(i)];
      break;
    }
  for (int i = 0; i < chunk_values; ++i) {
    const bool marked = (c.marks[static_cast<std::size_t>(i / 64)] >> (i % 64) & 1) != 0;
    if (marked || i >= c.count) {
      c.q[static_cast<std::size_t>(i)] = held;
    } else {
      held = c.q[static_cast<std::size_t>(i)];
    }
  }
}

template <class I>
I sampled_mean(const I* q) {
  I sum = 0;
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < block_values; ++i) sum = wrap_add(sum, q[sampled_block(k) * block_values + i]);
  return static_cast<I>(wrap_add(sum, I{128}) >> 8);
}

template <class I>
Choice<I> choose_predictor(const I* q, bool allow_second) {
  const I mean = sampled_mean(q);
  std::array<int, 3> cost{};
  for (std::size_t p = 0; p < 3; ++p)
    for (const int b : {sampled_block(0), sampled_block(2)})
      for (int g = 0; g < block_values; g += 8) {
        Unsigned<I> any = 0;
        for (int i = 0; i < 8; ++i)
          any = static_cast<Unsigned<I>>(
              any | zigzag(residual(q, b * block_values + g + i, static_cast<Predictor>(p), mean)));
        cost[p] += static_cast<int>(std::bit_width(any));
      }
  Choice<I> c{Predictor::first, q[0]};
  int best = cost[1];
  if (cost[0] < best) {
    c = {Predictor::none, mean};
    best = cost[0];
  }
  if (allow_second && cost[2] < best) c = {Predictor::second, q[0]};
  return c;
}

template <class I>
std::size_t write_chunk(Chunk<I>& c, const ChunkShape& shape, const std::uint8_t* raw, std::uint8_t* out,
                        const Choice<I>* given) {
  hold_marked(c);
  const ExactValues<I> values(c, shape);
  Writer w;
  const bool has_fill = values.fill(w.fill);
  if (!has_fill && !c.any_marks() && all_values_equal(c)) {
    w.base = c.q[0];
    w.word.kind = Kind::constant;
    w.word.long_base = !Word::fits(w.base);
    w.word.base = w.word.long_base ? 0 : static_cast<std::int32_t>(w.base);
    Buffer head;
    append(head, w.word.pack());
    w.put_base(head, sizeof(I));
    std::copy(head.begin(), head.end(), out);
    return head.size();
  }
  std::array<bool, chunk_blocks> lossless{};
  bool any_lossless = false;
  bool all_fill = has_fill && all_marked(c);
  for (std::size_t b = 0; b < chunk_blocks; ++b) {
    if (c.marks[b] == 0) continue;
    const bool is_fill = has_fill && values.all_equal(b, w.fill);
    all_fill = all_fill && is_fill;
    if (is_fill) {
      w.fill_blocks |= 1U << b;
    } else if (!shape.sum && std::popcount(c.marks[b]) > max_listed) {
      any_lossless = lossless[b] = true;
    }
  }
  if (all_fill) {
    Buffer head;
    append(head, Word{.kind = Kind::fill}.pack());
    w.put_fill(head, shape);
    std::copy(head.begin(), head.end(), out);
    return head.size();
  }
  for (std::size_t b = 0; b < chunk_blocks; ++b)
    if (lossless[b]) std::fill_n(&c.q[b * block_values], block_values, b > 0 ? c.q[b * block_values - 1] : c.q[0]);

  Choice<I> choice = given != nullptr ? *given : choose_predictor(c.q.data(), !any_lossless);
  // A chain starts at its first value, which is not the sum of the operands' where that one is marked.
  if (given != nullptr && choice.predictor != Predictor::none) choice.base = c.q[0];
  w.word.predictor = choice.predictor;
  w.base = choice.base;
  for (int b = 0; b < chunk_blocks; ++b) {
    const auto ub = static_cast<std::size_t>(b);
    if (lossless[ub]) {
      write_lossless_block(w, c, shape, b);
      continue;
    }
    std::array<Unsigned<I>, block_values> z;
    for (int i = 0; i < block_values; ++i)
      z[static_cast<std::size_t>(i)] =
          zigzag(residual(c.q.data(), b * block_values + i, choice.predictor, choice.base));
    const Planes p = planes_of(z.data());
    const bool fill_block = (w.fill_blocks >> b & 1) != 0;
    const bool extended = c.marks[ub] != 0 && !fill_block;
    const std::size_t before = w.exact.size();
    const Extra extra = extended ? write_exact(w, values, shape, ub) : Extra::wide;
    w.put_code(b, p, extra, w.exact.size() - before);
    w.put_planes(p);
    if (c.marks[ub] != 0) w.put_sparse(mark_plane(c.marks[ub]));
  }
  const std::size_t raw_bytes = static_cast<std::size_t>(c.count * shape.element_bytes);
  if (raw != nullptr) {
    Buffer coded(w.size_bound());
    const std::size_t n = w.finish(shape, sizeof(I), coded.data());
    if (n >= 4 + pad4(raw_bytes)) return write_raw(raw, raw_bytes, out);
    std::copy_n(coded.begin(), n, out);
    return n;
  }
  return w.finish(shape, sizeof(I), out);
}

template <class I>
std::size_t sum_chunk_bound(const Chunk<I>& c) {
  std::size_t n = 128 + 4 * chunk_blocks + (chunk_values / 8 + chunk_blocks) * (sizeof(I) * 8 + 1);
  for (const auto& t : c.terms) n += 1 + 8 * t.terms().size();
  return n + 4 * chunk_blocks;
}

template void hold_marked(Chunk<std::int32_t>&);
template void hold_marked(Chunk<std::int64_t>&);
template std::int32_t sampled_mean(const std::int32_t*);
template std::int64_t sampled_mean(const std::int64_t*);
template Choice<std::int32_t> choose_predictor(const std::int32_t*, bool);
template Choice<std::int64_t> choose_predictor(const std::int64_t*, bool);
template std::size_t write_chunk(Chunk<std::int32_t>&, const ChunkShape&, const std::uint8_t*, std::uint8_t*,
                                 const Choice<std::int32_t>*);
template std::size_t write_chunk(Chunk<std::int64_t>&, const ChunkShape&, const std::uint8_t*, std::uint8_t*,
                                 const Choice<std::int64_t>*);
template std::size_t sum_chunk_bound(const Chunk<std::int32_t>&);
template std::size_t sum_chunk_bound(const Chunk<std::int64_t>&);

}  // namespace laconic::slice
