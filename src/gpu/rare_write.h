// Writes any chunk: what the fast writer leaves, among it listed, lossless and raw blocks, exact sums, wide blocks and
// 64-bit integers. Rows become zigzag residuals, planes are made from them eight at a time, once to find the sizes and
// once more to store them, straight to where the chunk belongs. Source: ours; the definition is write_chunk() in
// codec/slice/chunk_writer.cc.
#pragma once

#include "gpu/bits.h"
#include "gpu/predict.h"
#include "gpu/rare_form.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Sizes that are none.
inline constexpr std::uint32_t store_raw = 0;                        ///< the elements themselves are not longer
inline constexpr std::uint32_t chunk_too_large = ~std::uint32_t{0};  ///< or an exact sum has too many terms
inline constexpr std::uint32_t longest_chunk = 4 * 65535;

/// Rows of lossless blocks repeat the integer before the block, or the chunk's first.
template <class R>
LACONIC_GPU_FN void hold_lossless(const Warp& w, const Rows<R>& rows, const PerLane<BlockOut>& blocks) {
  const std::uint32_t others = w.ballot([&](int l) { return !blocks[l].lossless; });
  PerLane<R> before;
  w.each([&](int l) {
    const int source = last_below(others, l);
    before[l] = source < 0 ? rows[0] : rows.at(source, block_values - 1);
  });
  w.each([&](int l) {
    if (!blocks[l].lossless) return;
    for (int i = 0; i < block_values; ++i) rows.at(l, i) = before[l];
  });
}

/// Rows of integers -> rows of zigzag residuals; of ordered bits in lossless blocks.
template <class T, class R, class Exact>
LACONIC_GPU_FN void zigzag_in_place(const Warp& w, const Rows<R>& rows, Choice<R> choice, int count, Exact& exact,
                                    const PerLane<BlockOut>& blocks) {
  PerLane<R> last;
  PerLane<R> slope_before;
  w.each([&](int l) {
    last[l] = l > 0 ? rows.at(l - 1, 63) : choice.base;
    slope_before[l] = l > 0 ? wrap_sub(rows.at(l - 1, 63), rows.at(l - 1, 62)) : R{0};
  });
  w.each([&](int l) {
    R previous = last[l];
    R slope = slope_before[l];
    if constexpr (!Exact::sum) {
      if (blocks[l].lossless) {
        const auto ordered = [&](int i) {
          const int at = 64 * l + i < count ? i : (count - 1) % 64;
          return slice::order_map<R>(exact.element(l, at), sizeof(typename T::Bits));
        };
        previous = ordered(0);
        for (int i = 0; i < block_values; ++i) {
          const R v = ordered(i);
          rows.at(l, i) = static_cast<R>(zigzag(wrap_sub(v, previous)));
          previous = v;
        }
        return;
      }
    }
    for (int i = 0; i < block_values; ++i) {
      const R q = rows.at(l, i);
      const R d = wrap_sub(q, choice.predictor == Predictor::none ? choice.base : previous);
      rows.at(l, i) = static_cast<R>(zigzag(choice.predictor == Predictor::second ? wrap_sub(d, slope) : d));
      slope = d;
      previous = q;
    }
  });
}

/// Planes 8 g .. 8 g + 7 of a row.
template <class R>
LACONIC_GPU_FN void planes_of_group(const Rows<R>& rows, int l, int g, std::uint64_t (&plane)[8]) {
  std::uint32_t half[2][8];
  LACONIC_GPU_UNROLL
  for (int h = 0; h < 2; ++h) {
    LACONIC_GPU_UNROLL
    for (int k = 0; k < 8; ++k) {
      std::uint32_t word = 0;
      LACONIC_GPU_UNROLL
      for (int m = 0; m < 4; ++m)
        word |=
            static_cast<std::uint32_t>(static_cast<slice::Unsigned<R>>(rows.at(l, 32 * h + 8 * m + k)) >> (8 * g) & 255)
            << (8 * m);
      half[h][k] = word;
    }
    transpose_bits(half[h]);
  }
  LACONIC_GPU_UNROLL
  for (int r = 0; r < 8; ++r) plane[r] = std::uint64_t{half[1][r]} << 32 | half[0][r];
}

/// f(r, plane r) for the planes of a row, at least so many.
template <class R, class F>
LACONIC_GPU_FN void each_plane(const Rows<R>& rows, int l, std::uint32_t planes, F f) {
  LACONIC_GPU_KEEP_LOOP
  for (int g = 0; 8 * g < static_cast<int>(planes); ++g) {
    std::uint64_t plane[8];
    planes_of_group(rows, l, g, plane);
    LACONIC_GPU_UNROLL
    for (int r = 0; r < 8; ++r) f(8 * g + r, plane[r]);
  }
}

/// How many bytes of each plane of a block are not zero: four bits each.
template <class R>
struct PlaneBytes {
  static constexpr int words = sizeof(R) / 2;  ///< of 16 planes
  std::uint64_t word[words] = {};

  LACONIC_GPU_FN void set(int r, std::uint32_t bytes) {
    LACONIC_GPU_UNROLL
    for (int k = 0; k < words; ++k)
      if (r / 16 == k) word[k] |= std::uint64_t{bytes} << (4 * (r % 16));
  }
  /// How many planes from 0 up have at least 7.
  [[nodiscard]] LACONIC_GPU_FN int full() const {
    constexpr std::uint64_t ones = 0x1111111111111111;
    int n = 0;
    LACONIC_GPU_UNROLL
    for (int k = 0; k < words; ++k)
      if (n == 16 * k) n += trailing_zeros(~(word[k] + ones) & 8 * ones) / 4;
    return n;
  }
  /// The sum over planes r and above.
  [[nodiscard]] LACONIC_GPU_FN std::uint32_t from(std::uint32_t r) const {
    constexpr std::uint64_t nibbles = 0x0F0F0F0F0F0F0F0F;
    std::uint64_t pairs = 0;
    LACONIC_GPU_UNROLL
    for (int k = 0; k < words; ++k) {
      const int below = static_cast<int>(r) - 16 * k;
      const std::uint64_t v = below >= 16 ? 0 : below <= 0 ? word[k] : word[k] & ~std::uint64_t{0} << (4 * below);
      pairs += (v & nibbles) + (v >> 4 & nibbles);
    }
    constexpr std::uint64_t bytes = 0x00FF00FF00FF00FF;
    return static_cast<std::uint32_t>(((pairs & bytes) + (pairs >> 8 & bytes)) * 0x0001000100010001 >> 48);
  }
};

/// Finds width, split and bytes of every block's planes.
template <class R>
LACONIC_GPU_FN void split_blocks(const Warp& w, const Rows<R>& rows, PerLane<BlockOut>& blocks) {
  w.each([&](int l) {
    slice::Unsigned<R> any = 0;
    LACONIC_GPU_KEEP_LOOP
    for (int u = 0; u < Rows<R>::units; ++u) {
      const Unit<R> v = rows.unit(l, u);
      for (const R z : v.v) any |= static_cast<slice::Unsigned<R>>(z);
    }
    BlockOut& b = blocks[l];
    b.width = static_cast<std::uint32_t>(bit_width(any));
    PlaneBytes<R> bytes;
    each_plane(rows, l, b.width, [&](int r, std::uint64_t plane) {
      bytes.set(r, static_cast<std::uint32_t>(count_ones(non_zero_bytes(plane))));
    });
    const auto width = static_cast<int>(b.width);
    const int full = bytes.full();
    b.dense = static_cast<std::uint32_t>(slice::dense_planes_after(width, full < width ? full : width));
    b.sparse_bytes = bytes.from(b.dense);
  });
}

/// Decides what is stored exactly in every block, and how much that takes.
template <class T, class R, class Exact>
LACONIC_GPU_FN void size_exact(const Warp& w, Exact& exact, const PerLane<std::uint64_t>& marks,
                               std::uint32_t fill_blocks, PerLane<BlockOut>& blocks) {
  constexpr std::uint32_t e = sizeof(typename T::Bits);
  w.each([&](int l) {
    BlockOut& b = blocks[l];
    if (marks[l] == 0) return;
    const auto n = static_cast<std::uint32_t>(count_ones(marks[l]));
    if (b.lossless) {
      const bool smaller = 8 * b.dense + (b.width - b.dense) + b.sparse_bytes + pad4(e) < block_values * e;
      if (sizeof(R) >= e && smaller) {
        b.extra = Extra::lossless;
        b.exact_bytes = pad4(e);
      } else {
        b.extra = Extra::raw;
        b.exact_bytes = block_values * e;
        b.width = b.dense = b.sparse_bytes = 0;
      }
      return;
    }
    b.marked = true;
    b.sparse_bytes += static_cast<std::uint32_t>(count_ones(non_zero_bytes(slice::mark_plane(marks[l]))));
    if ((fill_blocks >> l & 1) != 0) return;
    if constexpr (Exact::sum) {
      b.extra = Extra::terms;
      b.exact_bytes = pad4(n);
      for (std::uint64_t m = marks[l]; m != 0; m &= m - 1)
        b.exact_bytes += 8 * static_cast<std::uint32_t>(exact.terms(l, trailing_zeros(m)));
    } else {
      b.extra = Extra::listed;
      b.exact_bytes = pad4(n * e);
    }
  });
}

template <class T>
LACONIC_GPU_FN void store_element(std::uint8_t* p, std::uint64_t bits) {
  if constexpr (sizeof(typename T::Bits) == 8) {
    store64(p, bits);
  } else if constexpr (sizeof(typename T::Bits) == 4) {
    store32(p, static_cast<std::uint32_t>(bits));
  } else {
    p[0] = static_cast<std::uint8_t>(bits);
    p[1] = static_cast<std::uint8_t>(bits >> 8);
  }
}

/// A lane's exact part.
template <class T, class Exact>
LACONIC_GPU_FN void write_exact(Exact& exact, int l, std::uint64_t marks, const BlockOut& b, int count,
                                std::uint8_t* out) {
  constexpr int e = sizeof(typename T::Bits);
  if (b.exact_bytes == 0) return;
  if constexpr (Exact::sum) {
    const auto counts = pad4(static_cast<std::uint32_t>(count_ones(marks)));
    std::uint8_t* at = out + counts;
    std::uint32_t k = 0;
    for (std::uint64_t m = marks; m != 0; m &= m - 1, ++k) {
      const int n = exact.terms(l, trailing_zeros(m));
      out[k] = static_cast<std::uint8_t>(n);
      for (int j = 0; j < n; ++j, at += 8) store64(at, std::bit_cast<std::uint64_t>(exact.term(l, j)));
    }
    for (; k < counts; ++k) out[k] = 0;
  } else {
    int k = 0;
    if (b.extra == Extra::listed) {
      for (std::uint64_t m = marks; m != 0; m &= m - 1)
        store_element<T>(out + e * k++, exact.element(l, trailing_zeros(m)));
    } else {
      const int n = b.extra == Extra::raw ? block_values : 1;
      for (; k < n; ++k) store_element<T>(out + e * k, exact.element(l, 64 * l + k < count ? k : (count - 1) % 64));
    }
    for (auto at = static_cast<std::uint32_t>(e * k); at < b.exact_bytes; ++at) out[at] = 0;
  }
}

/// A lane's planes, and its plane of marks.
template <class R>
LACONIC_GPU_FN void write_planes_of_row(const Rows<R>& rows, int l, const BlockOut& b, std::uint64_t marks,
                                        std::uint8_t* dense, std::uint8_t* masks, std::uint8_t* bytes) {
  const auto put = [&](std::uint64_t plane) {
    *masks++ = static_cast<std::uint8_t>(non_zero_bytes(plane));
    for (; plane != 0; plane >>= 8)
      if ((plane & 255) != 0) *bytes++ = static_cast<std::uint8_t>(plane);
  };
  LACONIC_GPU_KEEP_LOOP
  for (int g = 0; g < static_cast<int>(sizeof(R)) && static_cast<std::uint32_t>(8 * g) < b.width; ++g) {
    std::uint64_t plane[8];
    planes_of_group(rows, l, g, plane);
    LACONIC_GPU_UNROLL
    for (int k = 0; k < 8; ++k) {
      const auto r = static_cast<std::uint32_t>(8 * g + k);
      if (r < b.dense) {
        store64(dense + 8 * r, plane[k]);
      } else if (r < b.width) {
        put(plane[k]);
      }
    }
  }
  if (b.marked) put(slice::mark_plane(marks));
}

/// Sections of a coded chunk, each from where it begins for a lane.
struct Places {
  PerLane<std::uint32_t> dense, masks, bytes, exact;
  std::uint32_t entries_at = 0, dense_at = 0, masks_at = 0, bytes_at = 0, exact_at = 0, padding_at = 0, end = 0;
};

LACONIC_GPU_FN Places place_sections(const Warp& w, const PerLane<BlockOut>& blocks, std::uint32_t entries_at,
                                     std::uint32_t entries) {
  Places p;
  std::uint32_t dense = 0;
  std::uint32_t masks = 0;
  std::uint32_t bytes = 0;
  std::uint32_t exact = 0;
  p.dense = w.sum_below<std::uint32_t>([&](int l) { return 8 * blocks[l].dense; }, dense);
  p.masks = w.sum_below<std::uint32_t>([&](int l) { return blocks[l].sparse(); }, masks);
  p.bytes = w.sum_below<std::uint32_t>([&](int l) { return blocks[l].sparse_bytes; }, bytes);
  p.exact = w.sum_below<std::uint32_t>([&](int l) { return blocks[l].exact_bytes; }, exact);
  p.entries_at = entries_at;
  p.dense_at = entries_at + 4 * entries;
  p.masks_at = p.dense_at + dense;
  p.bytes_at = p.masks_at + masks;
  p.padding_at = p.bytes_at + bytes;
  p.exact_at = pad4(p.padding_at);
  p.end = p.exact_at + exact;
  return p;
}

/// Writes a chunk of kind fill, if there is room to write to; returns its bytes.
LACONIC_GPU_FN std::uint32_t write_fill_chunk(const Warp& w, std::uint64_t fill, const ChunkShape& shape,
                                              std::uint8_t* out) {
  w.each([&](int l) {
    if (l != 0 || out == nullptr) return;
    Word word;
    word.kind = Kind::fill;
    store32(out, word.pack());
    write_fill_value(out + 4, fill, shape);
  });
  return 4 + fill_value_bytes(shape);
}

/// The chunk of these rows (exceptions held; they are used up), whose exceptions `exact` knows, with the predictor
/// `given` or one that is chosen. Returns its bytes, store_raw or chunk_too_large; out may be null, to learn the size.
template <class T, class R, class Exact>
LACONIC_GPU_FN std::uint32_t write_any_chunk(const Warp& w, const Rows<R>& rows, const PerLane<std::uint64_t>& marks,
                                             int count, const ChunkShape& shape, Exact& exact, const Choice<R>* given,
                                             std::uint8_t* out) {
  PerLane<BlockOut> blocks;
  Form<R> form = form_of(w, rows, marks, count, exact, blocks);
  Start& start = form.start;
  if (form.kind == Kind::constant) {
    start.word.kind = Kind::constant;
    start.base = rows[0];
    place_base(start);
    w.each([&](int l) {
      if (l == 0 && out != nullptr) write_start<R>(out, start, shape);
    });
    return start_bytes<R>(start, shape);
  }
  if (form.kind == Kind::fill) return write_fill_chunk(w, start.fill, shape, out);
  if (form.any_lossless) hold_lossless(w, rows, blocks);
  const Choice<R> choice = given != nullptr ? *given : choose_predictor<R>(w, rows, !form.any_lossless);
  zigzag_in_place<T>(w, rows, choice, count, exact, blocks);
  split_blocks(w, rows, blocks);
  size_exact<T, R>(w, exact, marks, start.fill_blocks, blocks);

  start.word.predictor = choice.predictor;
  start.base = choice.base;
  place_base(start);
  PerLane<std::uint32_t> codes;
  const std::uint32_t extended = w.ballot([&](int l) {
    const BlockOut& b = blocks[l];
    codes[l] =
        b.extended() ? slice::code_extended : slice::make_code(static_cast<int>(b.width), static_cast<int>(b.dense));
    return b.extended();
  });
  const Dictionary dictionary = make_dictionary(w, codes);
  set_codes(start.word, dictionary);
  const std::uint32_t codes_at = start_bytes<R>(start, shape);
  const Places at =
      place_sections(w, blocks, codes_at + dictionary.bytes(), static_cast<std::uint32_t>(count_ones(extended)));
  if (!Exact::sum && at.end >= 4 + pad4(static_cast<std::uint32_t>(count * shape.element_bytes))) return store_raw;
  if (at.end > longest_chunk || w.any([&](int l) { return exact.failed(l); })) return chunk_too_large;
  if (out == nullptr) return at.end;

  w.each([&](int l) {
    if (l == 0) write_start<R>(out, start, shape);
    if (l == 1)
      for (std::uint32_t i = at.padding_at; i < at.exact_at; ++i) out[i] = 0;
  });
  write_codes(w, dictionary, codes, out + codes_at);
  w.each([&](int l) {
    const BlockOut& b = blocks[l];
    if (b.extended()) {
      const slice::Entry entry{static_cast<int>(b.width), static_cast<int>(b.dense), b.extra, b.exact_bytes / 4};
      store32(out + at.entries_at + 4 * count_ones(extended & ((1U << l) - 1)), entry.pack());
    }
    write_planes_of_row(rows, l, b, marks[l], out + at.dense_at + at.dense[l], out + at.masks_at + at.masks[l],
                        out + at.bytes_at + at.bytes[l]);
    write_exact<T>(exact, l, marks[l], b, count, out + at.exact_at + at.exact[l]);
  });
  return at.end;
}

/// A raw chunk; returns its bytes.
template <class T>
LACONIC_GPU_FN std::uint32_t write_raw_chunk(const Warp& w, const typename T::Bits* x, int count, std::uint8_t* out) {
  constexpr int e = sizeof(typename T::Bits);
  const auto end = pad4(static_cast<std::uint32_t>(4 + count * e));
  w.each([&](int l) {
    if (l == 0) {
      Word word;
      word.kind = Kind::raw;
      if (count * e % 4 != 0) store32(out + end - 4, 0);
      store32(out, word.pack());
    }
  });
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (int i = l; i < count; i += warp_lanes) store_element<T>(out + 4 + e * i, x[i]);
  });
  return end;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
