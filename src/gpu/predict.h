// The choice of a chunk's predictor from its integers (docs/format.md, section 8). Source: ours; the definition is
// choose_predictor() in codec/slice/chunk_writer.cc.
#pragma once

#include "codec/slice/chunk.h"
#include "codec/slice/chunk_integers.h"
#include "gpu/rows.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

using slice::Choice;
using slice::Predictor;
using slice::wrap_add;
using slice::wrap_sub;
using slice::zigzag;

/// What a lane has seen of the sampled blocks: eight consecutive values each, and the two before them.
template <class I>
struct SampledGroup {
  I before2, before1;
  I q[8];
};

/// Lanes 0..7 and 8..15 look at the blocks that the cost is taken from, the others at the rest of the mean's.
LACONIC_GPU_FN int sampled_position(int lane) {
  constexpr int order = 0x3120;  // lane / 8 -> which of the sampled blocks
  return slice::sampled_block(order >> (4 * (lane / 8)) & 15) * block_values + 8 * (lane % 8);
}

/// `I` is the frame's integer; rows may be wider.
template <class I, class R>
LACONIC_GPU_FN PerLane<SampledGroup<I>> sampled_groups(const Warp& w, const Rows<R>& rows) {
  PerLane<SampledGroup<I>> s;
  w.each([&](int l) {
    const int at = sampled_position(l);
    s[l].before2 = static_cast<I>(rows[at - 2]);
    s[l].before1 = static_cast<I>(rows[at - 1]);
    LACONIC_GPU_UNROLL
    for (int u = 0; u < 8 / Unit<R>::size; ++u) {
      const Unit<R> unit = rows.unit(at / block_values, at % block_values / Unit<R>::size + u);
      LACONIC_GPU_UNROLL
      for (int e = 0; e < Unit<R>::size; ++e) s[l].q[u * Unit<R>::size + e] = static_cast<I>(unit.v[e]);
    }
  });
  return s;
}

/// bias: what the sampled integers are too large by.
template <class I>
LACONIC_GPU_FN I mean_of(const Warp& w, const PerLane<SampledGroup<I>>& s, I bias = 0) {
  const I sum = w.sum<I>([&](int l) {
    I part = 0;
    LACONIC_GPU_UNROLL
    for (int i = 0; i < 8; ++i) part = wrap_add(part, s[l].q[i]);
    return part;
  });
  const I biased = wrap_sub(I{128}, static_cast<I>(static_cast<slice::Unsigned<I>>(bias) << 8));
  return static_cast<I>(wrap_add(sum, biased) >> 8);
}

/// What `none` takes as its base.
template <class I, class R>
LACONIC_GPU_FN I sampled_mean(const Warp& w, const Rows<R>& rows) {
  return mean_of(w, sampled_groups<I>(w, rows));
}

/// Costs of the three predictors, none first, `bits` each: enough for the sum over 16 groups.
template <class I>
struct Costs {
  static constexpr int bits = sizeof(I) == 4 ? 10 : 16;
  using Packed = std::conditional_t<sizeof(I) == 4, std::uint32_t, std::uint64_t>;
  Packed packed = 0;
  [[nodiscard]] LACONIC_GPU_FN std::uint32_t of(Predictor p) const {
    const int place = p == Predictor::none ? 0 : p == Predictor::first ? bits : 2 * bits;
    return static_cast<std::uint32_t>(packed >> place) & ((1U << bits) - 1);
  }
};

/// Over one group.
template <class I>
LACONIC_GPU_FN typename Costs<I>::Packed costs_of(const SampledGroup<I>& s, I mean) {
  using U = slice::Unsigned<I>;
  using Packed = typename Costs<I>::Packed;
  U none = 0;
  U first = 0;
  U second = 0;
  I q1 = s.before1;
  I slope = wrap_sub(s.before1, s.before2);
  LACONIC_GPU_UNROLL
  for (int i = 0; i < 8; ++i) {
    const I d = wrap_sub(s.q[i], q1);
    none |= zigzag(wrap_sub(s.q[i], mean));
    first |= zigzag(d);
    second |= zigzag(wrap_sub(d, slope));
    q1 = s.q[i];
    slope = d;
  }
  return static_cast<Packed>(bit_width(none)) | static_cast<Packed>(bit_width(first)) << Costs<I>::bits |
         static_cast<Packed>(bit_width(second)) << (2 * Costs<I>::bits);
}

/// For integers whose exceptions are held. `cost`: that of the choice, in bits of 16 values; bias: what rows are too
/// large by.
template <class I, class R>
LACONIC_GPU_FN Choice<I> choose_predictor(const Warp& w, const Rows<R>& rows, bool allow_second, std::uint32_t& cost,
                                          I bias = 0) {
  using Packed = typename Costs<I>::Packed;
  const PerLane<SampledGroup<I>> s = sampled_groups<I>(w, rows);
  const I mean = mean_of(w, s, bias);
  const I middle = wrap_add(mean, bias);
  const Costs<I> costs{w.sum<Packed>([&](int l) { return l < 16 ? costs_of(s[l], middle) : Packed{0}; })};
  const std::uint32_t none = costs.of(Predictor::none);
  const std::uint32_t second = costs.of(Predictor::second);
  const I q0 = wrap_sub(static_cast<I>(rows[0]), bias);
  Choice<I> c{Predictor::first, q0};
  cost = costs.of(Predictor::first);
  if (none < cost) {
    c = {Predictor::none, mean};
    cost = none;
  }
  if (allow_second && second < cost) {
    c = {Predictor::second, q0};
    cost = second;
  }
  return c;
}
template <class I, class R>
LACONIC_GPU_FN Choice<I> choose_predictor(const Warp& w, const Rows<R>& rows, bool allow_second) {
  std::uint32_t cost = 0;
  return choose_predictor<I>(w, rows, allow_second, cost);
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
