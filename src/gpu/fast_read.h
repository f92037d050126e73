// From a chunk's bytes in shared memory to planes in registers: coded chunks without entries, at most 8 G planes wide.
// Source: ours; the definition is codec/slice/chunk_reader.cc. Whatever else a chunk may be, valid or not, is left to
// rare_read.h.
#pragma once

#include "gpu/fast_write.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Bytes that read_planes may read, and not use, behind the bytes of a chunk.
inline constexpr std::uint32_t fast_read_slack = 12;

/// A lane's block as its code describes it, and where its parts begin.
struct BlockParts {
  std::uint32_t width, dense;
  bool marked;
  const std::uint8_t *dense_at, *masks_at, *bytes_at;
};

enum class FastRead {
  done,
  too_wide,  ///< for G groups of planes, not for more
  rare,      ///< not a chunk of this sort
};

/// PRMT selector that spreads bytes 0, 1, ... to the places that a mask of four bits names, and 0 to the others.
LACONIC_GPU_FN std::uint32_t spread_selector(std::uint32_t mask) {
  // Each bit goes to a nibble of its own; a running count of them is which byte comes there, and 4 is a zero byte.
  const std::uint32_t there = (mask & 1) | (mask & 2) << 3 | (mask & 4) << 6 | (mask & 8) << 9;
  const std::uint32_t before = there * 0x1110U;
  return (before & (there * 3)) | (there ^ 0x1111U) << 2;
}

/// The four bytes at any address, of which the mask's places get the first ones.
LACONIC_GPU_FN std::uint32_t spread(std::uint32_t bytes, std::uint32_t mask) {
  return byte_perm(bytes, 0, spread_selector(mask));
}

/// A sparse plane: its non-zero bytes from `bytes` on, which moves behind them.
LACONIC_GPU_FN void get_sparse(std::uint32_t mask, const std::uint8_t*& bytes, std::uint32_t& low,
                               std::uint32_t& high) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes);
  const std::uint8_t* aligned = bytes - (address & 3);
  const auto shift = static_cast<std::uint32_t>(8 * (address & 3));
  const std::uint32_t a = load32(aligned);
  const std::uint32_t b = load32(aligned + 4);
  const std::uint32_t c = load32(aligned + 8);
  const std::uint32_t first = funnel_right(a, b, shift);
  const std::uint32_t next = funnel_right(b, c, shift);
  const auto taken = static_cast<std::uint32_t>(count_ones(mask & 15));
  low = spread(first, mask & 15);
  high = spread(funnel_right(first, next, 8 * taken), mask >> 4);
  bytes += count_ones(mask);
}

/// Reads what comes before the planes and finds every block's parts. `in`: 4-byte aligned.
LACONIC_GPU_FN FastRead find_parts(const Warp& w, const std::uint8_t* in, std::uint32_t size, const ChunkShape& shape,
                                   std::uint32_t most_planes, Start& start, PerLane<BlockParts>& parts,
                                   std::uint32_t& widest) {
  Pieces pieces(in, size);
  PerLane<std::uint32_t> codes;
  if (!read_start<std::int32_t>(pieces, shape, start) || start.word.kind != Kind::coded) return FastRead::rare;
  if (!read_codes(w, pieces, start.word, codes)) return FastRead::rare;
  if (w.any([&](int l) {
        const auto code = static_cast<std::uint8_t>(codes[l]);
        return (code & 31) == slice::code_extended || slice::sparse_of(code) > (code & 31);
      }))
    return FastRead::rare;
  widest = w.max([&](int l) { return codes[l] & 31; });
  if (widest > most_planes) return FastRead::too_wide;

  std::uint32_t planes_total = 0;
  const PerLane<std::uint32_t> below = w.sum_below<std::uint32_t>(
      [&](int l) {
        const auto sparse = static_cast<std::uint32_t>(slice::sparse_of(static_cast<std::uint8_t>(codes[l])));
        parts[l].width = codes[l] & 31;
        parts[l].dense = parts[l].width - sparse;
        parts[l].marked = start.word.has_fill && (start.fill_blocks >> l & 1) != 0;
        return parts[l].dense | (sparse + (parts[l].marked ? 1 : 0)) << 16;
      },
      planes_total);
  const std::uint32_t masks = planes_total >> 16;
  const std::uint8_t* dense_at = pieces.take(8 * (planes_total & 0xFFFF));
  const std::uint8_t* masks_at = pieces.take(masks);
  if (dense_at == nullptr || masks_at == nullptr) return FastRead::rare;
  std::uint32_t bytes_total = 0;
  const PerLane<std::uint32_t> bytes_below = w.sum_below<std::uint32_t>(
      [&](int l) {
        parts[l].dense_at = dense_at + 8 * (below[l] & 0xFFFF);
        parts[l].masks_at = masks_at + (below[l] >> 16);
        const std::uint32_t n = parts[l].width - parts[l].dense + (parts[l].marked ? 1 : 0);
        std::uint32_t bytes = 0;
        LACONIC_GPU_KEEP_LOOP
        for (std::uint32_t i = 0; i < n; ++i)
          bytes += static_cast<std::uint32_t>(count_ones(std::uint32_t{parts[l].masks_at[i]}));
        return bytes;
      },
      bytes_total);
  if (pieces.left() != pad4(masks + bytes_total) - masks) return FastRead::rare;
  w.each([&](int l) { parts[l].bytes_at = masks_at + masks + bytes_below[l]; });
  return FastRead::done;
}

/// Reads a chunk's residuals, in two's complement, and the marks of its fill blocks. Every chunk that passes is valid,
/// but for marks behind the last element.
template <int G>
LACONIC_GPU_FN FastRead read_planes(const Warp& w, const std::uint8_t* in, std::uint32_t size, const ChunkShape& shape,
                                    Start& start, PerLane<Planes<G>>& planes, PerLane<std::uint64_t>& marks) {
  PerLane<BlockParts> parts;
  std::uint32_t widest = 0;
  const FastRead found = find_parts(w, in, size, shape, 8 * G, start, parts, widest);
  if (found != FastRead::done) return found;
  w.each([&](int l) {
    const BlockParts& b = parts[l];
    const std::uint8_t* masks = b.masks_at;
    const std::uint8_t* bytes = b.bytes_at;
    LACONIC_GPU_UNROLL
    for (int r = 0; r < 8 * G; ++r) {
      const auto ur = static_cast<std::uint32_t>(r);
      std::uint32_t low = 0;
      std::uint32_t high = 0;
      if (ur < widest) {
        if (ur < b.dense) {
          low = load32(b.dense_at + 8 * r);
          high = load32(b.dense_at + 8 * r + 4);
        } else if (ur < b.width) {
          get_sparse(*masks++, bytes, low, high);
        }
      }
      planes[l].half[r][0] = low;
      planes[l].half[r][1] = high;
    }
    marks[l] = 0;
    if (b.marked) {
      std::uint32_t low = 0;
      std::uint32_t high = 0;
      get_sparse(*masks, bytes, low, high);
      marks[l] = slice::marks_of(std::uint64_t{high} << 32 | low);
    }
    from_zigzag(planes[l]);
  });
  // A chain starts at its base.
  const bool starts_elsewhere = start.word.predictor != Predictor::none && w.any([&](int l) {
    std::uint32_t any = 0;
    LACONIC_GPU_UNROLL
    for (int r = 0; r < 8 * G; ++r) any |= planes[l].half[r][0];
    return l == 0 && (any & 1) != 0;
  });
  return starts_elsewhere ? FastRead::rare : FastRead::done;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
