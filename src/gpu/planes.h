// A block's residuals as bit planes in registers: taken from a lane's row, turned to zigzag and back, added, and turned
// into integers again. G groups of eight planes; two words a plane. Source: ours, from shared/prototypes.
#pragma once

#include "gpu/bits.h"
#include "gpu/predict.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// half[r][h]: bit i is bit r of value 32 h + i of the block.
template <int G>
struct Planes {
  static constexpr int count = 8 * G;
  std::uint32_t half[count][2];
};

/// Zigzag -> two's complement.
template <int G>
LACONIC_GPU_FN void from_zigzag(Planes<G>& p) {
  LACONIC_GPU_UNROLL
  for (int h = 0; h < 2; ++h) {
    const std::uint32_t sign = p.half[0][h];
    LACONIC_GPU_UNROLL
    for (int r = 0; r < p.count - 1; ++r) p.half[r][h] = p.half[r + 1][h] ^ sign;
    p.half[p.count - 1][h] = sign;
  }
}

/// a + b + carry, bit by bit: a full adder.
LACONIC_GPU_FN void add_bits(std::uint32_t& a, std::uint32_t b, std::uint32_t& carry) {
  const std::uint32_t sum = a ^ b ^ carry;
  carry = (a & b) | (carry & (a | b));
  a = sum;
}

/// a - b - borrow, bit by bit.
LACONIC_GPU_FN void subtract_bits(std::uint32_t& a, std::uint32_t b, std::uint32_t& borrow) {
  const std::uint32_t difference = a ^ b ^ borrow;
  borrow = (~a & (b | borrow)) | (b & borrow);
  a = difference;
}

/// Rows of integers become rows of slopes, whose first differences are the second differences of the integers.
LACONIC_GPU_FN void slopes_in_place(const Warp& w, const Rows<std::int32_t>& rows) {
  PerLane<std::int32_t> before;
  w.each([&](int l) { before[l] = l > 0 ? rows.at(l - 1, block_values - 1) : rows.at(0, 0); });
  w.each([&](int l) {
    std::int32_t previous = before[l];
    LACONIC_GPU_KEEP_LOOP
    for (int u = 0; u < Rows<std::int32_t>::units; ++u) {
      Unit<std::int32_t> v = rows.unit(l, u);
      LACONIC_GPU_UNROLL
      for (auto& q : v.v) {
        const std::int32_t slope = wrap_sub(q, previous);
        previous = q;
        q = slope;
      }
      rows.unit(l, u) = v;
    }
  });
}

/// Puts byte g of u into byte m of word; the first byte (m = 0) replaces all.
LACONIC_GPU_FN void put_byte(std::uint32_t& word, std::uint32_t u, int g, int m) {
  const auto from = static_cast<std::uint32_t>(4 + g);
  if (m == 0) {
    word = u >> (8 * g);
  } else if (m == 1) {
    word = byte_perm(word, u, 0x3200 | from << 4);
  } else if (m == 2) {
    word = byte_perm(word, u, 0x3010 | from << 8);
  } else {
    word = byte_perm(word, u, 0x0210 | from << 12);
  }
}

/// One half of a lane's planes, from value 32 h of its row on. `seen` takes up the residuals, made non-negative.
template <int G, bool chained>
LACONIC_GPU_FN void half_of_planes(const Rows<std::int32_t>& rows, int l, int h, std::uint32_t add,
                                   std::uint32_t& previous, Planes<G>& planes, std::uint32_t& seen) {
  std::uint32_t bytes[G][8];
  LACONIC_GPU_UNROLL
  for (int u = 0; u < 8; ++u) {
    const Unit<std::int32_t> in = rows.unit(l, 8 * h + u);
    LACONIC_GPU_UNROLL
    for (int e = 0; e < 4; ++e) {
      const auto q = static_cast<std::uint32_t>(in.v[e]);
      const std::uint32_t residual = q - (chained ? previous : 0) + add;
      previous = q;
      seen |= residual;
      LACONIC_GPU_UNROLL
      for (int g = 0; g < G; ++g) put_byte(bytes[g][4 * (u % 2) + e], residual, g, u / 2);
    }
  }
  LACONIC_GPU_UNROLL
  for (int g = 0; g < G; ++g) {
    transpose_bits(bytes[g]);
    LACONIC_GPU_UNROLL
    for (int r = 0; r < 8; ++r) planes.half[8 * g + r][h] = bytes[g][r];
  }
  planes.half[8 * G - 1][h] = ~planes.half[8 * G - 1][h];
}

/// The residuals of the rows as planes in two's complement: differences where `chained`, else what is left of `base`.
/// False: some residual needs more than 8 G bits.
template <int G>
LACONIC_GPU_FN bool planes_of_rows(const Warp& w, const Rows<std::int32_t>& rows, bool chained, std::int32_t base,
                                   PerLane<Planes<G>>& planes) {
  constexpr std::uint32_t bias = 1U << (8 * G - 1);  // makes residuals non-negative, and turns the top plane over
  PerLane<std::uint32_t> seen;
  w.each([&](int l) {
    auto previous = static_cast<std::uint32_t>(l > 0 ? rows.at(l - 1, block_values - 1) : rows.at(0, 0));
    if (chained) {
      LACONIC_GPU_UNROLL
      for (int h = 0; h < 2; ++h) half_of_planes<G, true>(rows, l, h, bias, previous, planes[l], seen[l]);
    } else {
      const std::uint32_t add = bias - static_cast<std::uint32_t>(base);
      LACONIC_GPU_UNROLL
      for (int h = 0; h < 2; ++h) half_of_planes<G, false>(rows, l, h, add, previous, planes[l], seen[l]);
    }
  });
  return !w.any([&](int l) { return (seen[l] >> 1 >> (8 * G - 1)) != 0; });
}

/// The bytes of a block's residuals in order: byte e of word[g][j] is byte g of value 4 j + e.
template <int G>
struct ResidualBytes {
  std::uint32_t word[G][16];
};

template <int G>
LACONIC_GPU_FN ResidualBytes<G> bytes_of_planes(const Planes<G>& p) {
  ResidualBytes<G> x;
  LACONIC_GPU_UNROLL
  for (int g = 0; g < G; ++g) {
    LACONIC_GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      std::uint32_t w[8];
      LACONIC_GPU_UNROLL
      for (int r = 0; r < 8; ++r) w[r] = p.half[8 * g + r][h];
      transpose_bits(w);
      bytes_in_order(w, &x.word[g][8 * h]);
    }
  }
  return x;
}

/// start + the residuals of word j at the places where `pick` has a byte 1. The upper byte has the sign.
template <int G>
LACONIC_GPU_FN std::int32_t add_residuals(const ResidualBytes<G>& x, int j, std::uint32_t pick, std::int32_t start) {
  static_assert(G == 1 || G == 2);
  if constexpr (G == 1) {
    return dot_signed(x.word[0][j], pick, start);
  } else {
    const auto high = static_cast<std::uint32_t>(dot_signed(x.word[1][j], pick, 0)) << 8;
    return dot_unsigned(x.word[0][j], pick, static_cast<std::int32_t>(static_cast<std::uint32_t>(start) + high));
  }
}

/// A lane's integers from its residuals, into its row, or added to what is there. value, slope: of the integer before
/// the row; for none, value is the base.
template <int G, Predictor predictor, bool add>
LACONIC_GPU_FN void fill_row(const ResidualBytes<G>& x, const Rows<std::int32_t>& rows, int l, std::int32_t value,
                             std::int32_t slope) {
  LACONIC_GPU_UNROLL
  for (int j = 0; j < 16; ++j) {
    Unit<std::int32_t> out{};
    if (add) out = rows.unit(l, j);
    std::int32_t q = value;
    std::int32_t s = slope;
    LACONIC_GPU_UNROLL
    for (int e = 0; e < 4; ++e) {
      const std::uint32_t up_to_e = 0x01010101U >> (8 * (3 - e));
      if constexpr (predictor == Predictor::none) {
        q = add_residuals(x, j, 1U << (8 * e), value);
      } else if constexpr (predictor == Predictor::first) {
        q = add_residuals(x, j, up_to_e, value);
      } else {
        s = add_residuals(x, j, up_to_e, slope);
        q = wrap_add(q, s);
      }
      out.v[e] = add ? wrap_add(out.v[e], q) : q;
    }
    if (predictor != Predictor::none) value = q;
    slope = s;
    rows.unit(l, j) = out;
  }
}

template <int G>
LACONIC_GPU_FN std::int32_t sum_of_residuals(const ResidualBytes<G>& x) {
  std::int32_t sum = 0;
  LACONIC_GPU_UNROLL
  for (int j = 0; j < 16; ++j) sum = add_residuals(x, j, 0x01010101U, sum);
  return sum;
}

/// The sum of a row's slopes, where `slope` is the one before the row.
template <int G>
LACONIC_GPU_FN std::int32_t sum_of_slopes(const ResidualBytes<G>& x, std::int32_t slope) {
  std::uint32_t sum = 0;
  LACONIC_GPU_UNROLL
  for (int j = 0; j < 16; ++j) {
    const std::uint32_t before = sum + 4 * static_cast<std::uint32_t>(slope);
    sum = static_cast<std::uint32_t>(add_residuals(x, j, 0x01020304U, static_cast<std::int32_t>(before)));
    slope = add_residuals(x, j, 0x01010101U, slope);
  }
  return static_cast<std::int32_t>(sum);
}

/// Residuals in two's complement -> the integers of the chunk, or what is added to those that the rows hold.
template <bool add, int G>
LACONIC_GPU_FN void rows_of_planes(const Warp& w, const PerLane<Planes<G>>& planes, Predictor predictor,
                                   std::int32_t base, const Rows<std::int32_t>& rows) {
  PerLane<ResidualBytes<G>> x;
  if (predictor == Predictor::none) {
    w.each([&](int l) {
      x[l] = bytes_of_planes(planes[l]);
      fill_row<G, Predictor::none, add>(x[l], rows, l, base, 0);
    });
    return;
  }
  std::int32_t total = 0;
  const PerLane<std::int32_t> below = w.sum_below<std::int32_t>(
      [&](int l) {
        x[l] = bytes_of_planes(planes[l]);
        return sum_of_residuals(x[l]);
      },
      total);
  if (predictor == Predictor::first) {
    w.each([&](int l) { fill_row<G, Predictor::first, add>(x[l], rows, l, wrap_add(base, below[l]), 0); });
    return;
  }
  const PerLane<std::int32_t> values =
      w.sum_below<std::int32_t>([&](int l) { return sum_of_slopes(x[l], below[l]); }, total);
  w.each([&](int l) { fill_row<G, Predictor::second, add>(x[l], rows, l, wrap_add(base, values[l]), below[l]); });
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
