// From a chunk's bytes in shared memory to planes, in registers or beside them: coded chunks without entries.
// Source: ours; the definition is codec/slice/chunk_reader.cc. Whatever else a chunk may be, valid or not, is left to
// rare_read.h.
#pragma once

#include "gpu/fast_write.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Bytes that read_planes may read, and not use, behind the bytes of a chunk.
inline constexpr std::uint32_t fast_read_slack = 12;

/// A lane's block as its code describes it, and where its parts begin, from the chunk's beginning.
struct BlockParts {
  std::uint32_t width, dense;
  bool marked;
  std::uint32_t dense_at, masks_at, bytes_at;
};

/// A coded chunk whose blocks' parts have been found.
struct FoundParts {
  Start start;
  std::uint32_t widest = 0;  ///< most planes of a block
  PerLane<BlockParts> blocks;
};

enum class FastRead {
  done,
  too_wide,  ///< of this sort, but of more planes than there is room for
  rare,      ///< not a chunk of this sort
  unlike,    ///< sums: of this sort, but to be added in integers
  filled,    ///< sums: has a fill value, and such are not added here
};

/// Whether a chunk that is not coded is a constant one, and whole.
LACONIC_GPU_FN bool is_constant_chunk(const Start& start, std::uint32_t bytes) {
  return bytes >= 4 && start.word.kind == Kind::constant && bytes == 4U + (start.word.long_base ? 4U : 0U);
}

/// PRMT selector that spreads bytes 0, 1, ... to the places that a mask of four bits names, and 0 to the others.
LACONIC_GPU_FN std::uint32_t spread_selector(std::uint32_t mask) {
  // Each bit goes to a nibble of its own; a running count of them is which byte comes there, and 4 is a zero byte.
  // Products are what multiprocessors have units to spare for.
  const std::uint32_t pairs = mask * 0x41U & 0x303U;
  const std::uint32_t there = pairs * 9U & 0x1111U;
  return (there * 0x1110U & there * 3U) | (0x4444U - there * 4U);
}

/// The four bytes at any address, of which the mask's places get the first ones.
LACONIC_GPU_FN std::uint32_t spread(std::uint32_t bytes, std::uint32_t mask) {
  return byte_perm(bytes, 0, spread_selector(mask));
}

/// The eight bytes from any place of a chunk on.
LACONIC_GPU_FN void load_eight(const std::uint8_t* chunk, std::uint32_t place, std::uint32_t& low,
                               std::uint32_t& high) {
  const std::uint8_t* aligned = chunk + (place & ~3U);
  const std::uint32_t shift = 8 * (place & 3);
  const std::uint32_t middle = load32(aligned + 4);
  low = funnel_right(load32(aligned), middle, shift);
  high = funnel_right(middle, load32(aligned + 8), shift);
}

/// A sparse plane: its non-zero bytes from `place` on, which moves behind them.
LACONIC_GPU_FN void get_sparse(const std::uint8_t* chunk, std::uint32_t mask, std::uint32_t& place, std::uint32_t& low,
                               std::uint32_t& high) {
  std::uint32_t first = 0;
  std::uint32_t next = 0;
  load_eight(chunk, place, first, next);
  const auto taken = static_cast<std::uint32_t>(count_ones(mask & 15));
  low = spread(first, mask & 15);
  high = spread(funnel_right(first, next, 8 * taken), mask >> 4);
  place += static_cast<std::uint32_t>(count_ones(mask));
}

/// How many bytes n masks announce. A block has at most seven, but for one that has all its planes sparse.
LACONIC_GPU_FN std::uint32_t bytes_of_masks(const std::uint8_t* chunk, std::uint32_t place, std::uint32_t n) {
  std::uint32_t bytes = 0;
  LACONIC_GPU_KEEP_LOOP
  for (; n > 0; place += 8) {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    load_eight(chunk, place, low, high);
    const std::uint32_t beyond = n >= 8 ? 0 : 64 - 8 * n;  // bits that are no masks
    bytes += static_cast<std::uint32_t>(beyond >= 32 ? count_ones(low << (beyond - 32))
                                                     : count_ones(low) + count_ones(high << beyond));
    n -= n >= 8 ? 8 : n;
  }
  return bytes;
}

/// Reads what comes before the planes and finds every block's parts. `in`: 4-byte aligned.
LACONIC_GPU_FN FastRead find_parts(const Warp& w, const std::uint8_t* in, std::uint32_t size, const ChunkShape& shape,
                                   std::uint32_t most_planes, FoundParts& found) {
  Pieces pieces(in, size);
  PerLane<std::uint32_t> codes;
  const Start& start = found.start;
  PerLane<BlockParts>& parts = found.blocks;
  if (!read_start<std::int32_t>(pieces, shape, found.start) || start.word.kind != Kind::coded) return FastRead::rare;
  if (!read_codes(w, pieces, start.word, codes)) return FastRead::rare;
  if (w.any([&](int l) {
        const auto code = static_cast<std::uint8_t>(codes[l]);
        return (code & 31) == slice::code_extended || slice::sparse_of(code) > (code & 31);
      }))
    return FastRead::rare;
  found.widest = w.max([&](int l) { return codes[l] & 31; });
  if (found.widest > most_planes) return FastRead::too_wide;

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
  std::uint32_t dense_at = 0;
  std::uint32_t masks_at = 0;
  if (!pieces.take(8 * (planes_total & 0xFFFF), dense_at) || !pieces.take(masks, masks_at)) return FastRead::rare;
  std::uint32_t bytes_total = 0;
  const PerLane<std::uint32_t> bytes_below = w.sum_below<std::uint32_t>(
      [&](int l) {
        parts[l].dense_at = dense_at + 8 * (below[l] & 0xFFFF);
        parts[l].masks_at = masks_at + (below[l] >> 16);
        const std::uint32_t n = parts[l].width - parts[l].dense + (parts[l].marked ? 1 : 0);
        return bytes_of_masks(in, parts[l].masks_at, n);
      },
      bytes_total);
  if (pieces.left() != pad4(masks + bytes_total) - masks) return FastRead::rare;
  w.each([&](int l) { parts[l].bytes_at = masks_at + masks + bytes_below[l]; });
  return FastRead::done;
}

/// Takes a lane's zigzag planes one after the other.
class PlanesIn {
 public:
  LACONIC_GPU_FN PlanesIn(const std::uint8_t* in, const BlockParts& block, std::uint32_t widest)
      : in_(in), block_(block), widest_(widest), mask_(block.masks_at), byte_(block.bytes_at) {}

  /// Plane r, which follows on the one before.
  LACONIC_GPU_FN void next(std::uint32_t r, std::uint32_t& low, std::uint32_t& high) {
    low = high = 0;
    if (r >= widest_) return;
    if (r < block_.dense) {
      low = load32(in_ + block_.dense_at + 8 * r);
      high = load32(in_ + block_.dense_at + 8 * r + 4);
    } else if (r < block_.width) {
      get_sparse(in_, in_[mask_++], byte_, low, high);
    }
  }
  /// What follows the last plane.
  LACONIC_GPU_FN std::uint64_t marks() {
    if (!block_.marked) return 0;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    get_sparse(in_, in_[mask_], byte_, low, high);
    return slice::marks_of(std::uint64_t{high} << 32 | low);
  }

 private:
  const std::uint8_t* in_;
  const BlockParts& block_;
  std::uint32_t widest_, mask_, byte_;
};

/// Whether a chain does not start at its base; any: of a lane's planes, the union of their first halves.
LACONIC_GPU_FN bool starts_elsewhere(const Warp& w, const FoundParts& found, const PerLane<std::uint32_t>& any) {
  return found.start.word.predictor != Predictor::none && w.any([&](int l) { return l == 0 && (any[l] & 1) != 0; });
}

/// Reads a chunk's residuals, in two's complement, and the marks of its fill blocks. False: the chunk is not valid; one
/// that passes is, but for marks behind the last element.
template <int G>
LACONIC_GPU_FN bool read_planes(const Warp& w, const std::uint8_t* in, const FoundParts& found,
                                PerLane<Planes<G>>& planes, PerLane<std::uint64_t>& marks) {
  PerLane<std::uint32_t> any;
  w.each([&](int l) {
    PlanesIn from(in, found.blocks[l], found.widest);
    LACONIC_GPU_UNROLL
    for (int r = 0; r < 8 * G; ++r) {
      auto& plane = planes[l].half[r];
      from.next(static_cast<std::uint32_t>(r), plane[0], plane[1]);
      any[l] |= plane[0];
    }
    marks[l] = from.marks();
    from_zigzag(planes[l]);
  });
  return !starts_elsewhere(w, found, any);
}

/// The same into shared memory.
LACONIC_GPU_FN bool read_planes(const Warp& w, const std::uint8_t* in, const FoundParts& found, PlaneStore& planes,
                                PerLane<std::uint64_t>& marks) {
  planes.count = found.widest > 0 ? static_cast<int>(found.widest) : 1;
  PerLane<std::uint32_t> any;
  w.each([&](int l) {
    PlanesIn from(in, found.blocks[l], found.widest);
    Plane sign;
    from.next(0, sign.half[0], sign.half[1]);
    any[l] = sign.half[0];
    LACONIC_GPU_KEEP_LOOP
    for (int r = 0; r < planes.count; ++r) {  // plane r is zigzag plane r + 1, turned over by the sign
      Plane z;
      from.next(static_cast<std::uint32_t>(r + 1), z.half[0], z.half[1]);
      any[l] |= z.half[0];
      planes.at(r, l) = z ^ sign;
    }
    marks[l] = from.marks();
  });
  return !starts_elsewhere(w, found, any);
}

/// Adds a chunk's residuals to `sum`, which has room for one plane more than either has; or puts them there, if it has
/// none yet. `marked`: also reads the marks of its fill blocks.
template <bool marked>
LACONIC_GPU_FN bool add_read_planes(const Warp& w, const std::uint8_t* in, const FoundParts& found, PlaneStore& sum,
                                    PerLane<std::uint64_t>& marks) {
  const int before = sum.count;
  const auto widest = static_cast<int>(found.widest);
  const int after = before == 0 && widest > 0 ? widest : (before > widest ? before : widest) + 1;
  PerLane<std::uint32_t> any;
  w.each([&](int l) {
    PlanesIn from(in, found.blocks[l], found.widest);
    Plane sign;
    from.next(0, sign.half[0], sign.half[1]);
    any[l] = sign.half[0];
    std::uint32_t carry[2] = {0, 0};
    Plane of_sum;
    LACONIC_GPU_KEEP_LOOP
    for (int r = 0; r < after; ++r) {
      if (r < before) of_sum = sum.at(r, l);  // else like the highest
      Plane result = of_sum;
      Plane z;
      from.next(static_cast<std::uint32_t>(r + 1), z.half[0], z.half[1]);
      any[l] |= z.half[0];
      LACONIC_GPU_UNROLL
      for (int h = 0; h < 2; ++h) add_bits(result.half[h], z.half[h] ^ sign.half[h], carry[h]);
      sum.at(r, l) = result;
    }
    if constexpr (marked) marks[l] = from.marks();
  });
  sum.count = after;
  if (before > 0) sum.trim(w);
  return !starts_elsewhere(w, found, any);
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
