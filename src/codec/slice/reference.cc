// The scalar definition of the chunk operations (kernels.h). Slow and plain on purpose.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "codec/slice/kernels.h"
#include "core/half.h"
#include "core/of_thread.h"
#include "core/one_nan.h"

namespace laconic::slice {
namespace {

/// The element type as bits, and the arithmetic that its values are computed in.
struct F32 {
  using Bits = std::uint32_t;
  using Real = float;
  static float real(Bits b) { return std::bit_cast<float>(b); }
  static Bits bits(float v) { return std::bit_cast<std::uint32_t>(v); }
};
struct F16 {
  using Bits = std::uint16_t;
  using Real = float;
  static float real(Bits b) { return f32_of_f16(b); }
  static Bits bits(float v) { return f16_of_f32(v); }
};
struct BF16 {
  using Bits = std::uint16_t;
  using Real = float;
  static float real(Bits b) { return f32_of_bf16(b); }
  static Bits bits(float v) { return bf16_of_f32(v); }
};
struct F64 {
  using Bits = std::uint64_t;
  using Real = double;
  static double real(Bits b) { return std::bit_cast<double>(b); }
  static Bits bits(double v) { return std::bit_cast<std::uint64_t>(v); }
};

/// f with one of the above; integers, which are never quantised, count as f32.
template <class F>
auto with_float(DType t, F f) {
  switch (t) {
    case DType::f64:
      return f(F64{});
    case DType::f16:
      return f(F16{});
    case DType::bf16:
      return f(BF16{});
    default:
      return f(F32{});
  }
}

/// Rounds a double (itself rounded to odd) to the element, as one rounding of the exact value.
template <class T>
typename T::Bits bits_of_odd(double v) {
  if constexpr (std::is_same_v<T, F64>) {
    return T::bits(v);
  } else {
    auto f = static_cast<float>(v);
    if constexpr (!std::is_same_v<T, F32>) {
      if (std::isfinite(f) && static_cast<double>(f) != v && (std::bit_cast<std::uint32_t>(f) & 1) == 0)
        f = std::nextafter(f, static_cast<double>(f) < v ? HUGE_VALF : -HUGE_VALF);
    }
    return T::bits(f);
  }
}

/// The element that stands for q: the decoder's arithmetic, which the encoder checks with.
template <class T>
typename T::Bits value_bits(const Params& p, std::int64_t q) {
  if constexpr (std::is_same_v<T, F64>) {
    return T::bits(static_cast<double>(q) * p.value_step);
  } else {
    if (p.narrow_value) return T::bits(static_cast<float>(q) * p.step32);
    return T::bits(static_cast<float>(static_cast<double>(q) * p.value_step));
  }
}

/// q for one element, or false where it must be stored exactly.
template <class T, class I>
bool quantise_one(const Params& p, typename T::Bits e, I& q) {
  using Real = typename T::Real;
  constexpr bool is_double = std::is_same_v<Real, double>;
  const Real inverse = is_double ? static_cast<Real>(p.inverse64) : static_cast<Real>(p.inverse32);
  const Real bound = is_double ? static_cast<Real>(p.grid.bound) : static_cast<Real>(p.bound32);
  // Sums in [floor, 2 * floor) are integers: x * inverse is rounded once, and the window of allowed q starts at floor.
  constexpr Real floor = is_double ? Real(0x1p52) : Real(0x1p23);
  const Real half_window = std::ldexp(Real{1}, p.grid.qbits);
  const Real x = T::real(e);
  const Real t = std::fma(x, inverse, floor + half_window);
  if (!(t >= floor && t < floor + 2 * half_window)) return false;
  const Real r = t - (floor + half_window);
  const Real value = T::real(T::bits(r * static_cast<Real>(p.grid.step)));
  if (!(std::abs(x - value) <= bound)) return false;
  q = static_cast<I>(r);
  return true;
}

template <class Bits>
Bits element(const void* x, int i) {
  Bits b;
  std::memcpy(&b, static_cast<const std::uint8_t*>(x) + static_cast<std::size_t>(i) * sizeof b, sizeof b);
  return b;
}

template <class T, class I>
void quantise(const Params& p, const void* x, int count, Chunk<I>& c) {
  c.count = count;
  c.marks.fill(0);
  c.terms.clear();
  c.origin = Origin::elements;
  for (int i = 0; i < chunk_values; ++i) {
    const auto ui = static_cast<std::size_t>(i);
    const auto e = element<typename T::Bits>(x, i < count ? i : count - 1);
    c.exact[ui] = e;
    if (i < count && !quantise_one<T>(p, e, c.q[ui])) c.marks[ui / 64] |= std::uint64_t{1} << (ui % 64);
  }
  hold_marked(c);
}

template <class Bits, class I>
void load_exact(const Params& p, const void* x, int count, Chunk<I>& c) {
  c.count = count;
  c.marks.fill(0);
  c.terms.clear();
  c.origin = Origin::elements;
  for (int i = 0; i < chunk_values; ++i) {
    const auto e = element<Bits>(x, i < count ? i : count - 1);
    c.q[static_cast<std::size_t>(i)] = p.shape.floating ? order_map<I>(e, sizeof(Bits)) : static_cast<I>(e);
  }
}

template <class Bits>
void put(void* y, int i, Bits b) {
  std::memcpy(static_cast<std::uint8_t*>(y) + static_cast<std::size_t>(i) * sizeof b, &b, sizeof b);
}

template <class T>
typename T::Bits bits_of_sum(const Params& p, const Expansion& e) {
  if (p.divisor != 1) return bits_of_odd<T>(e.to_double() / p.divisor);
  return bits_of_odd<T>(std::is_same_v<T, F64> ? e.to_double() : e.to_odd());
}

template <class T, class I>
void dequantise(const Params& p, const Chunk<I>& c, void* y) {
  std::size_t term = 0;
  for (int i = 0; i < c.count; ++i) {
    const auto ui = static_cast<std::size_t>(i);
    if ((c.marks[ui / 64] >> (ui % 64) & 1) == 0) {
      put(y, i, value_bits<T>(p, c.q[ui]));
    } else if (p.shape.sum) {
      put(y, i, bits_of_sum<T>(p, c.terms[term++]));
    } else {
      const auto e = static_cast<typename T::Bits>(c.exact[ui]);
      put(y, i, p.divisor == 1 ? e : bits_of_odd<T>(static_cast<double>(T::real(e)) / p.divisor));
    }
  }
}

template <class Bits, class I>
void store_exact(const Params& p, const Chunk<I>& c, void* y) {
  for (int i = 0; i < c.count; ++i) {
    const I q = c.q[static_cast<std::size_t>(i)];
    put(y, i, p.shape.floating ? static_cast<Bits>(order_unmap(q, sizeof(Bits))) : static_cast<Bits>(q));
  }
}

template <class I>
void load_elements(const Params& p, const void* x, int count, Chunk<I>& c) {
  if (p.shape.exact_only) {
    if (p.shape.element_bytes == 2) return load_exact<std::uint16_t>(p, x, count, c);
    if (p.shape.element_bytes == 4) return load_exact<std::uint32_t>(p, x, count, c);
    return load_exact<std::uint64_t>(p, x, count, c);
  }
  return with_float(p.grid.dtype, [&]<class T>(T) { return quantise<T>(p, x, count, c); });
}

template <class I>
void store_elements(const Params& p, const Chunk<I>& c, void* y) {
  if (p.shape.exact_only) {
    if (p.shape.element_bytes == 2) return store_exact<std::uint16_t>(p, c, y);
    if (p.shape.element_bytes == 4) return store_exact<std::uint32_t>(p, c, y);
    return store_exact<std::uint64_t>(p, c, y);
  }
  return with_float(p.grid.dtype, [&]<class T>(T) { return dequantise<T>(p, c, y); });
}

/// Chunks are 20-70 KB: one of each kind per thread, not on the caller's stack.
template <class I>
Chunk<I>& scratch(int which) {
  thread_local OfThread<std::array<std::unique_ptr<Chunk<I>>, 3>> chunks;
  auto& c = chunks.get()[static_cast<std::size_t>(which)];
  if (!c) c = std::make_unique<Chunk<I>>();
  return *c;
}

/// The exact value of position i of an operand or sum; `term` counts the marked positions passed so far.
template <class I>
Expansion exact_value(const Params& p, const Chunk<I>& c, int i, std::size_t& term) {
  const auto ui = static_cast<std::size_t>(i);
  if ((c.marks[ui / 64] >> (ui % 64) & 1) == 0) {
    Expansion e;
    e.add_product(static_cast<double>(c.q[ui]), p.grid.step);
    return e;
  }
  if (p.shape.sum) return c.terms[term++];
  return Expansion(element_value(p.grid.dtype, c.exact[ui]));
}

template <class T, class I>
void regrid_as(const Params& p, Chunk<I>& c) {
  for (int i = 0; i < c.count; ++i) {
    const auto ui = static_cast<std::size_t>(i);
    const std::uint64_t bit = std::uint64_t{1} << (ui % 64);
    if ((c.marks[ui / 64] & bit) == 0) continue;
    if (quantise_one<T>(p, static_cast<typename T::Bits>(c.exact[ui]), c.q[ui])) c.marks[ui / 64] &= ~bit;
  }
  hold_marked(c);
}

/// What an operand contributes to a sum must not depend on its neighbours: an element that was stored exactly only
/// because its block or chunk was (lossless, raw) counts as the grid point that it would have become anywhere else.
template <class I>
void regrid(const Params& p, Chunk<I>& c) {
  if (p.shape.sum || p.shape.exact_only || !c.any_marks()) return;
  return with_float(p.grid.dtype, [&]<class T>(T) { return regrid_as<T>(p, c); });
}

/// out = a + b: integers add; where either is an exception the exact values do.
template <class I, class A, class B>
void add_values(const Params& pa, const Chunk<A>& a, const Params& pb, const Chunk<B>& b, Chunk<I>& out) {
  using U = std::make_unsigned_t<I>;
  out.count = a.count;
  out.marks.fill(0);
  out.terms.clear();
  std::size_t term_a = 0;
  std::size_t term_b = 0;
  for (int i = 0; i < chunk_values; ++i) {
    const auto ui = static_cast<std::size_t>(i);
    const std::uint64_t bit = std::uint64_t{1} << (ui % 64);
    out.q[ui] = static_cast<I>(static_cast<U>(a.q[ui]) + static_cast<U>(b.q[ui]));
    if (((a.marks[ui / 64] | b.marks[ui / 64]) & bit) == 0) continue;
    out.marks[ui / 64] |= bit;
    Expansion e = exact_value(pa, a, i, term_a);
    e.add(exact_value(pb, b, i, term_b));
    out.terms.push_back(std::move(e));
  }
}

/// The predictor of a sum, so that residuals can be added: the higher one of two coded chunks (a constant agrees with
/// all), or that of the coded one when the other comes from elements. False: choose afresh.
template <class I, class A, class B>
bool sum_choice(const Chunk<A>& a, const Chunk<B>& b, bool a_is_local, Choice<I>& out) {
  using U = std::make_unsigned_t<I>;
  const auto base = [&](A base_a) {
    return static_cast<I>(static_cast<U>(static_cast<I>(base_a)) + static_cast<U>(static_cast<I>(b.choice.base)));
  };
  if (b.origin == Origin::elements) return false;
  if (a_is_local) {
    if (b.origin != Origin::coded) return false;
    out = {b.choice.predictor, base(b.choice.predictor == Predictor::none ? sampled_mean(a.q.data()) : a.q[0])};
    return true;
  }
  if (a.origin == Origin::elements) return false;
  const auto of = [](const auto& c) { return predictor_if(c.origin == Origin::coded, c.choice.predictor); };
  out = {higher(of(a), of(b)), base(a.choice.base)};  // of `none`, that is; else writing knows the base
  return true;
}

template <class I, class A, class B>
std::size_t add_as(const Params& p, const Params& pa, const Chunk<A>& a, bool a_is_local, const Params& pb,
                   const Chunk<B>& b, std::uint8_t* out, std::size_t capacity) {
  auto& c = scratch<I>(2);
  add_values(pa, a, pb, b, c);
  Choice<I> choice;
  const Choice<I>* given = sum_choice(a, b, a_is_local, choice) ? &choice : nullptr;
  // The stream has a byte to count an exception's terms.
  for (const Expansion& e : c.terms)
    if (e.terms().size() > 255) return chunk_too_large;
  const bool exact = p.shape.exact_only;
  if ((exact ? chunk_capacity(p.shape.element_bytes) : sum_chunk_bound(c)) > capacity) return chunk_too_large;
  return write_chunk(c, p.shape, exact ? reinterpret_cast<const std::uint8_t*>(c.q.data()) : nullptr, out, given);
}

template <class A, class B>
std::size_t add_chunks(const Params& p, const Params& pa, const Chunk<A>& a, bool a_is_local, const Params& pb,
                       const Chunk<B>& b, std::uint8_t* out, std::size_t capacity) {
  return p.wide ? add_as<std::int64_t>(p, pa, a, a_is_local, pb, b, out, capacity)
                : add_as<std::int32_t>(p, pa, a, a_is_local, pb, b, out, capacity);
}

/// Calls f with the chunk of b's integer type, read; false if it is corrupt.
template <class F>
std::size_t with_chunk(const Params& pb, ChunkBytes b, int count, F f) {
  if (pb.wide) {
    auto& c = scratch<std::int64_t>(1);
    c.count = count;
    return read_chunk(b.data, b.size, pb.shape, c) ? f(c) : chunk_corrupt;
  }
  auto& c = scratch<std::int32_t>(1);
  c.count = count;
  return read_chunk(b.data, b.size, pb.shape, c) ? f(c) : chunk_corrupt;
}

template <class I>
std::size_t encode_as(const Params& p, const void* x, int count, std::uint8_t* out) {
  auto& c = scratch<I>(0);
  load_elements(p, x, count, c);
  return write_chunk(c, p.shape, static_cast<const std::uint8_t*>(x), out);
}

std::size_t encode(const Params& p, const void* x, int count, std::uint8_t* out) {
  return p.wide ? encode_as<std::int64_t>(p, x, count, out) : encode_as<std::int32_t>(p, x, count, out);
}

bool decode(const Params& p, ChunkBytes in, int count, void* y) {
  return with_chunk(p, in, count, [&](const auto& c) {
           store_elements(p, c, y);
           return std::size_t{1};
         }) != chunk_corrupt;
}

std::size_t encode_decode(const Params& p, const void* x, int count, std::uint8_t* out, void* y) {
  const std::size_t n = encode(p, x, count, out);
  decode(p, {out, n, write_slack}, count, y);
  return n;
}

template <class T>
void on_grid_as(const Params& p, const void* x, int count, void* y) {
  for (int i = 0; i < count; ++i) {
    const auto e = element<typename T::Bits>(x, i);
    std::int64_t q = 0;
    put(y, i, quantise_one<T>(p, e, q) ? value_bits<T>(p, q) : static_cast<typename T::Bits>(OneNan(p.grid.dtype)(e)));
  }
}

void on_grid(const Params& p, const void* x, int count, void* y) {
  with_float(p.grid.dtype, [&]<class T>(T) { on_grid_as<T>(p, x, count, y); });
}

template <class A>
std::size_t add_to(const Params& p, const Params& pa, const Chunk<A>& a, bool a_is_local, const Params& pb,
                   ChunkBytes b, std::uint8_t* out, std::size_t capacity) {
  return with_chunk(pb, b, a.count, [&](auto& cb) {
    regrid(pb, cb);
    return add_chunks(p, pa, a, a_is_local, pb, cb, out, capacity);
  });
}

template <class A>
std::size_t read_and_add(const Params& p, const Params& pa, ChunkBytes a, const Params& pb, ChunkBytes b, int count,
                         std::uint8_t* out, std::size_t capacity) {
  auto& ca = scratch<A>(0);
  ca.count = count;
  if (!read_chunk(a.data, a.size, pa.shape, ca)) return chunk_corrupt;
  regrid(pa, ca);
  return add_to(p, pa, ca, false, pb, b, out, capacity);
}

std::size_t add(const Params& p, const Params& pa, ChunkBytes a, const Params& pb, ChunkBytes b, int count,
                std::uint8_t* out, std::size_t capacity) {
  return pa.wide ? read_and_add<std::int64_t>(p, pa, a, pb, b, count, out, capacity)
                 : read_and_add<std::int32_t>(p, pa, a, pb, b, count, out, capacity);
}

template <class A>
std::size_t load_and_add(const Params& p, const Params& px, const void* x, const Params& pb, ChunkBytes b, int count,
                         std::uint8_t* out, std::size_t capacity) {
  auto& cx = scratch<A>(0);
  load_elements(px, x, count, cx);
  return add_to(p, px, cx, true, pb, b, out, capacity);
}

std::size_t encode_add(const Params& p, const Params& px, const void* x, const Params& pb, ChunkBytes b, int count,
                       std::uint8_t* out, std::size_t capacity) {
  return px.wide ? load_and_add<std::int64_t>(p, px, x, pb, b, count, out, capacity)
                 : load_and_add<std::int32_t>(p, px, x, pb, b, count, out, capacity);
}

std::size_t sum(const Params&, const Params*, const void*, std::span<const Term>, int, std::uint8_t*, std::size_t) {
  return chunk_unfused;  // the definition adds one after another
}

}  // namespace

double element_value(DType t, std::uint64_t bits) {
  return with_float(t, [&]<class T>(T) { return double{T::real(static_cast<typename T::Bits>(bits))}; });
}

std::uint64_t element_of_sum(const Params& p, const std::uint8_t* terms, int n) {
  Expansion e;
  for (int i = 0; i < n; ++i) e.add(load<double>(terms + 8 * static_cast<std::ptrdiff_t>(i)));
  return with_float(p.grid.dtype, [&]<class T>(T) { return std::uint64_t{bits_of_sum<T>(p, e)}; });
}

bool is_on_grid(const Params& p, std::uint64_t element) {
  std::int64_t q = 0;
  return with_float(p.grid.dtype,
                    [&]<class T>(T) { return quantise_one<T>(p, static_cast<typename T::Bits>(element), q); });
}

const Kernels& reference_kernels() {
  static const Kernels k{encode, decode, encode_decode, on_grid, add, encode_add, sum};
  return k;
}

}  // namespace laconic::slice
