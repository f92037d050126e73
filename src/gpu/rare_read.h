// Reads any chunk of version 1, and refuses everything else: what the fast reader leaves, among it listed, lossless and
// raw blocks, raw and fill chunks, wide blocks and 64-bit integers. Straight from memory, by groups of eight planes;
// slower by a multiple, with few registers. Source: ours; the definition is codec/slice/chunk_reader.cc.
#pragma once

#include "gpu/bits.h"
#include "gpu/held.h"
#include "gpu/predict.h"
#include "gpu/sections.h"
#include "gpu/terms.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

using slice::Extra;
using slice::Origin;

/// What a chunk is to a sum, all lanes alike.
struct OperandStart {
  Origin origin = Origin::elements;
  Predictor predictor = Predictor::none;  ///< of a coded chunk
  std::int64_t base = 0;                  ///< of a coded or constant chunk
  std::uint64_t fill = 0;
};

/// Where a block's exact values lie.
enum class ExactSource : std::uint32_t {
  fill,      ///< OperandStart::fill
  listed,    ///< those of the marked positions follow each other at `exact`
  terms,     ///< counts, then terms
  ordered,   ///< the rows hold ordered bits
  elements,  ///< all 64 elements lie at `exact`
};

/// What a block is to a sum.
struct OperandBlock {
  std::uint64_t stored = 0;  ///< positions with an exact value
  std::uint64_t marks = 0;   ///< those that are exceptions; grid points may be stored exactly, too
  const std::uint8_t* exact = nullptr;
  ExactSource source = ExactSource::fill;
};

/// The positions of a block below i.
LACONIC_GPU_FN std::uint64_t positions_below(int i) { return (std::uint64_t{1} << i) - 1; }

template <class T>
LACONIC_GPU_FN typename T::Bits load_element(const std::uint8_t* p) {
  if constexpr (sizeof(typename T::Bits) == 8) {
    return load64(p);
  } else if constexpr (sizeof(typename T::Bits) == 4) {
    return load32(p);
  } else {
    return static_cast<typename T::Bits>(p[0] | p[1] << 8);
  }
}

/// The element at a position of an operand's block that is stored exactly. `in_row`: what the row has there.
template <class T, class R>
LACONIC_GPU_FN typename T::Bits stored_element(const OperandStart& start, const OperandBlock& b, int i, R in_row) {
  constexpr int e = sizeof(typename T::Bits);
  switch (b.source) {
    case ExactSource::listed:
      return load_element<T>(b.exact + e * count_ones(b.stored & positions_below(i)));
    case ExactSource::elements:
      return load_element<T>(b.exact + e * i);
    case ExactSource::ordered:
      return static_cast<typename T::Bits>(slice::order_unmap(in_row, e));
    default:
      return static_cast<typename T::Bits>(start.fill);
  }
}

/// Adds the terms of a position of a sum's block to `terms`, each passed through an expansion of its own first, as it
/// would be if it were read.
LACONIC_GPU_FN void stored_terms(const OperandStart& start, const OperandBlock& b, int i, Terms& terms) {
  if (b.source == ExactSource::fill) {
    terms.add(std::bit_cast<double>(start.fill));
    return;
  }
  const int k = count_ones(b.stored & positions_below(i));
  std::uint32_t before = 0;
  for (int j = 0; j < k; ++j) before += b.exact[j];
  const std::uint8_t* at = b.exact + pad4(static_cast<std::uint32_t>(count_ones(b.stored))) + 8 * before;
  for (int j = 0; j < b.exact[k]; ++j) terms.add(std::bit_cast<double>(load64(at + 8 * j)));
}

/// A block as its code and entry describe it, and what is left of its planes to read.
struct RareBlock {
  std::uint32_t width = 0;
  std::uint32_t dense = 0;
  Extra extra = Extra::wide;
  bool fill = false;
  std::uint32_t exact_bytes = 0;
  const std::uint8_t *dense_at = nullptr, *masks_at = nullptr, *bytes_at = nullptr;

  [[nodiscard]] LACONIC_GPU_FN bool marked() const { return fill || extra == Extra::listed || extra == Extra::terms; }
  [[nodiscard]] LACONIC_GPU_FN bool lossless() const { return extra == Extra::lossless || extra == Extra::raw; }
  [[nodiscard]] LACONIC_GPU_FN std::uint32_t sparse() const { return width - dense + (marked() ? 1 : 0); }
};

template <class I>
LACONIC_GPU_FN bool is_valid(const RareBlock& b, const ChunkShape& shape, Predictor predictor) {
  const auto e = static_cast<std::uint32_t>(shape.element_bytes);
  if (b.width > 8 * sizeof(I) || b.dense > b.width || b.extra > Extra::raw) return false;
  if (b.extra == Extra::wide) return b.exact_bytes == 0;
  if (b.fill || shape.exact_only || shape.sum != (b.extra == Extra::terms)) return false;
  if (b.lossless() && predictor == Predictor::second) return false;
  if (b.extra == Extra::lossless) return sizeof(I) >= e && b.exact_bytes == pad4(e);
  if (b.extra == Extra::raw) return b.width == 0 && b.exact_bytes == block_values * e;
  return true;
}

/// Codes and entries -> blocks.
template <class I>
LACONIC_GPU_FN bool read_blocks(const Warp& w, Pieces& in, const ChunkShape& shape, const Start& start,
                                PerLane<RareBlock>& blocks) {
  PerLane<std::uint32_t> codes;
  if (!read_codes(w, in, start.word, codes)) return false;
  const std::uint32_t extended = w.ballot([&](int l) { return (codes[l] & 31) == slice::code_extended; });
  std::uint32_t entries_at = 0;
  if (!in.take(4 * static_cast<std::uint32_t>(count_ones(extended)), entries_at)) return false;
  const std::uint8_t* entries = in.at(entries_at);
  return !w.any([&](int l) {
    RareBlock& b = blocks[l];
    const auto code = static_cast<std::uint8_t>(codes[l]);
    b.fill = (start.fill_blocks >> l & 1) != 0;
    if ((extended >> l & 1) == 0) {
      b.width = code & 31;
      const auto sparse = static_cast<std::uint32_t>(slice::sparse_of(code));
      b.dense = b.width - sparse;
      return sparse > b.width;
    }
    const slice::Entry e = slice::Entry::unpack(load32(entries + 4 * count_ones(extended & ((1U << l) - 1))));
    b.width = static_cast<std::uint32_t>(e.w);
    b.dense = static_cast<std::uint32_t>(e.d);
    b.extra = e.extra;
    b.exact_bytes = 4 * e.exact_units;
    return code != slice::code_extended || !is_valid<I>(b, shape, start.word.predictor);
  });
}

/// Finds the places of all blocks' planes; takes all sections but the exact one.
LACONIC_GPU_FN bool place_blocks(const Warp& w, Pieces& in, PerLane<RareBlock>& blocks) {
  std::uint32_t dense = 0;
  std::uint32_t sparse = 0;
  const PerLane<std::uint32_t> dense_below =
      w.sum_below<std::uint32_t>([&](int l) { return 8 * blocks[l].dense; }, dense);
  const PerLane<std::uint32_t> sparse_below =
      w.sum_below<std::uint32_t>([&](int l) { return blocks[l].sparse(); }, sparse);
  std::uint32_t dense_at = 0;
  std::uint32_t masks_at = 0;
  if (!in.take(dense, dense_at) || !in.take(sparse, masks_at)) return false;
  std::uint32_t bytes = 0;
  const PerLane<std::uint32_t> bytes_below = w.sum_below<std::uint32_t>(
      [&](int l) {
        blocks[l].dense_at = in.at(dense_at + dense_below[l]);
        blocks[l].masks_at = in.at(masks_at + sparse_below[l]);
        std::uint32_t n = 0;
        for (std::uint32_t i = 0; i < blocks[l].sparse(); ++i)
          n += static_cast<std::uint32_t>(count_ones(std::uint32_t{blocks[l].masks_at[i]}));
        return n;
      },
      bytes);
  std::uint32_t bytes_at = 0;
  if (!in.take(pad4(sparse + bytes) - sparse, bytes_at)) return false;
  w.each([&](int l) { blocks[l].bytes_at = in.at(bytes_at + bytes_below[l]); });
  return true;
}

LACONIC_GPU_FN std::uint64_t next_sparse(RareBlock& b) {
  std::uint64_t plane = 0;
  const std::uint32_t mask = *b.masks_at++;
  for (int g = 0; g < 8; ++g)
    if ((mask >> g & 1) != 0) plane |= std::uint64_t{*b.bytes_at++} << (8 * g);
  return plane;
}
LACONIC_GPU_FN std::uint64_t next_plane(RareBlock& b, std::uint32_t r) {
  if (r >= b.width) return 0;
  return r < b.dense ? load64(b.dense_at + 8 * r) : next_sparse(b);
}

/// Planes -> rows of zigzag residuals, eight planes at a time.
template <class I, class R>
LACONIC_GPU_FN void rows_of_zigzag(const Warp& w, PerLane<RareBlock>& blocks, const Rows<R>& rows) {
  constexpr int size = Unit<R>::size;
  const std::uint32_t widest = w.max([&](int l) { return blocks[l].width; });
  std::uint32_t g = 0;
  do {
    w.each([&](int l) {
      std::uint32_t bits[2][8];
      LACONIC_GPU_UNROLL
      for (std::uint32_t r = 0; r < 8; ++r) {
        const std::uint64_t plane = next_plane(blocks[l], 8 * g + r);
        bits[0][r] = static_cast<std::uint32_t>(plane);
        bits[1][r] = static_cast<std::uint32_t>(plane >> 32);
      }
      LACONIC_GPU_UNROLL
      for (int h = 0; h < 2; ++h) {
        std::uint32_t x[8];
        transpose_bits(bits[h]);
        bytes_in_order(bits[h], x);
        LACONIC_GPU_UNROLL
        for (int u = 0; u < 32 / size; ++u) {
          Unit<R>& at = rows.unit(l, 32 / size * h + u);
          Unit<R> v{};
          if (g != 0) v = at;
          LACONIC_GPU_UNROLL
          for (int e = 0; e < size; ++e) {
            const int i = size * u + e;
            v.v[e] = static_cast<R>(v.v[e] | static_cast<R>(x[i / 4] >> (8 * (i % 4)) & 255) << (8 * g));
          }
          at = v;
        }
      }
    });
  } while (8 * ++g < widest);
}

/// A lane's residuals and the sums that its block leaves to those behind it.
template <class I>
struct RunningSums {
  I residuals = 0;  ///< what a slope (second) or integer (first) grows by
  I prefixes = 0;   ///< the sum of the 64 prefix sums
};

/// Rows of zigzag residuals -> rows of integers; of ordered bits in lossless blocks, whose first is at `exact`.
template <class T, class I, class R>
LACONIC_GPU_FN bool integers_of_zigzag(const Warp& w, const Start& start, const PerLane<RareBlock>& blocks,
                                       const PerLane<OperandBlock>& parts, const Rows<R>& rows) {
  using U = slice::Unsigned<I>;
  const Predictor predictor = start.word.predictor;
  PerLane<RunningSums<I>> sums;
  w.each([&](int l) {
    if (predictor == Predictor::none || blocks[l].lossless()) return;
    LACONIC_GPU_KEEP_LOOP
    for (int u = 0; u < Rows<R>::units; ++u) {
      const Unit<R> v = rows.unit(l, u);
      LACONIC_GPU_UNROLL
      for (const R z : v.v) {
        sums[l].residuals = wrap_add(sums[l].residuals, slice::unzigzag<I>(static_cast<U>(z)));
        sums[l].prefixes = wrap_add(sums[l].prefixes, sums[l].residuals);
      }
    }
  });
  I total = 0;
  const PerLane<I> below = w.sum_below<I>([&](int l) { return sums[l].residuals; }, total);
  PerLane<I> start_of = below;
  if (predictor == Predictor::second)
    start_of = w.sum_below<I>(
        [&](int l) { return wrap_add(static_cast<I>(static_cast<U>(below[l]) * U{64}), sums[l].prefixes); }, total);
  const I base = static_cast<I>(start.base);
  const bool starts_elsewhere =
      predictor != Predictor::none && w.any([&](int l) { return l == 0 && !blocks[l].lossless() && rows[0] != 0; });
  w.each([&](int l) {
    const bool lossless = blocks[l].lossless();
    I q = wrap_add(base, start_of[l]);
    if (blocks[l].extra == Extra::lossless)
      q = slice::order_map<I>(load_element<T>(parts[l].exact), sizeof(typename T::Bits));
    I slope = below[l];
    LACONIC_GPU_KEEP_LOOP
    for (int u = 0; u < Rows<R>::units; ++u) {
      Unit<R> v = rows.unit(l, u);
      LACONIC_GPU_UNROLL
      for (R& z : v.v) {
        const I r = slice::unzigzag<I>(static_cast<U>(z));
        slope = !lossless && predictor == Predictor::second ? wrap_add(slope, r) : r;
        q = !lossless && predictor == Predictor::none ? wrap_add(base, r) : wrap_add(q, slope);
        z = q;
      }
      rows.unit(l, u) = v;
    }
  });
  return !starts_elsewhere;
}

/// The exact section: marks, and where their values lie. False: its sizes are not those of the marks.
LACONIC_GPU_FN bool find_exact(const Warp& w, Pieces& in, const ChunkShape& shape, int count,
                               PerLane<RareBlock>& blocks, PerLane<OperandBlock>& parts) {
  const auto e = static_cast<std::uint32_t>(shape.element_bytes);
  w.each([&](int l) {
    RareBlock& b = blocks[l];
    OperandBlock& p = parts[l];
    p.stored = b.lossless() ? elements_of_block(count, l) : b.marked() ? slice::marks_of(next_sparse(b)) : 0;
    p.marks = p.stored;
    p.source = b.extra == Extra::lossless ? ExactSource::ordered
               : b.extra == Extra::raw    ? ExactSource::elements
               : b.extra == Extra::listed ? ExactSource::listed
               : b.extra == Extra::terms  ? ExactSource::terms
                                          : ExactSource::fill;
  });
  std::uint32_t total = 0;
  const PerLane<std::uint32_t> below = w.sum_below<std::uint32_t>([&](int l) { return blocks[l].exact_bytes; }, total);
  std::uint32_t exact_at = 0;
  if (!in.take(total, exact_at) || in.left() != 0) return false;
  return !w.any([&](int l) {
    OperandBlock& p = parts[l];
    const std::uint32_t bytes = blocks[l].exact_bytes;
    const auto n = static_cast<std::uint32_t>(count_ones(p.stored));
    p.exact = in.at(exact_at + below[l]);
    if ((p.stored & ~elements_of_block(count, l)) != 0) return true;
    if (p.source == ExactSource::listed) return bytes != pad4(n * e);
    if (p.source != ExactSource::terms) return false;
    if (bytes < pad4(n)) return true;
    std::uint32_t terms = 0;
    for (std::uint32_t i = 0; i < n; ++i) terms += p.exact[i];
    return bytes != pad4(n) + 8 * terms;
  });
}

/// Chunks all of whose elements lie in memory, or are the fill value.
LACONIC_GPU_FN void all_exact(const Warp& w, int count, ExactSource source, const std::uint8_t* elements,
                              const ChunkShape& shape, PerLane<OperandBlock>& parts) {
  w.each([&](int l) {
    parts[l].stored = parts[l].marks = elements_of_block(count, l);
    parts[l].source = source;
    parts[l].exact = elements + l * block_values * shape.element_bytes;
  });
}

/// Reads a chunk of I integers into rows of R, which hold all of I. What rows hold at exceptions and behind the last
/// element is unspecified, but for ordered bits. False: no chunk of version 1.
template <class T, class I, class R>
LACONIC_GPU_RARE bool read_any_chunk(const Warp& w, const std::uint8_t* bytes, std::uint32_t size,
                                     const ChunkShape& shape, int count, const Rows<R>& rows, OperandStart& operand,
                                     PerLane<OperandBlock>& parts) {
  Pieces in(bytes, size);
  Start start;
  operand = {};
  w.each([&](int l) { parts[l] = {}; });
  if (!read_start<I>(in, shape, start)) return false;
  const auto all_rows = [&](R q) {
    w.each([&](int l) {
      for (int i = 0; i < block_values; ++i) rows.at(l, i) = q;
    });
  };
  operand.base = static_cast<I>(start.base);
  operand.fill = start.fill;
  switch (start.word.kind) {
    case Kind::constant:
      operand.origin = Origin::constant;
      all_rows(static_cast<R>(operand.base));
      return in.left() == 0;
    case Kind::raw: {
      std::uint32_t place = 0;
      if (shape.sum || !in.take(pad4(static_cast<std::uint32_t>(count * shape.element_bytes)), place) || in.left() != 0)
        return false;
      const std::uint8_t* elements = in.at(place);
      all_rows(0);
      if (shape.exact_only) {
        w.each([&](int l) {
          for (int i = 64 * l; i < count && i < 64 * l + 64; ++i)
            rows[i] = slice::order_map<I>(load_element<T>(elements + i * shape.element_bytes), shape.element_bytes);
        });
      } else {
        all_exact(w, count, ExactSource::elements, elements, shape, parts);
      }
      return true;
    }
    case Kind::fill:
      all_rows(0);
      all_exact(w, count, ExactSource::fill, bytes, shape, parts);  // no elements are there, nor looked for
      return in.left() == 0;
    case Kind::coded:
      break;
  }
  operand.origin = Origin::coded;
  operand.predictor = start.word.predictor;
  PerLane<RareBlock> blocks;
  if (!read_blocks<I>(w, in, shape, start, blocks) || !place_blocks(w, in, blocks)) return false;
  rows_of_zigzag<I>(w, blocks, rows);
  if (!find_exact(w, in, shape, count, blocks, parts)) return false;
  return integers_of_zigzag<T, I>(w, start, blocks, parts, rows);
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
