// From planes in registers to a chunk in shared memory: coded chunks without entries, constant ones, and the decision
// that the elements themselves would be shorter. Source: ours; the definition is codec/slice/chunk_writer.cc.
#pragma once

#include "gpu/planes.h"
#include "gpu/sections.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Blocks whose exceptions all have one value; fine for operands, whose fill value is an element.
struct Fill {
  bool any = false;
  std::uint32_t blocks = 0;
  std::uint64_t value = 0;
  PerLane<std::uint64_t> marks;
};

/// Where there are exceptions.
LACONIC_GPU_FN Fill fill_of(const Warp& w, const PerLane<std::uint64_t>& marks, std::uint64_t value) {
  return {true, w.ballot([&](int l) { return marks[l] != 0; }), value, marks};
}

/// How a lane's block is stored.
template <int G>
struct BlockPlan {
  std::uint32_t width, dense;
  std::uint32_t mark_bytes;    ///< mask of the plane of marks
  std::uint32_t masks[2 * G];  ///< byte r: the mask of plane r
};

/// The plan of zigzag planes; `widest`: no lane's block has more planes.
template <int G>
LACONIC_GPU_FN void plan_block(const Planes<G>& p, std::uint32_t width, std::uint32_t widest, BlockPlan<G>& plan) {
  plan.width = width;
  std::uint32_t run = 0;
  bool running = true;
  LACONIC_GPU_UNROLL
  for (int r = 0; r < 8 * G; ++r) {
    if (r % 4 == 0) plan.masks[r / 4] = 0;
    if (static_cast<std::uint32_t>(r) >= widest) continue;
    const std::uint32_t mask = non_zero_bytes(p.half[r][0], p.half[r][1]);
    plan.masks[r / 4] |= mask << (8 * (r % 4));
    const std::uint32_t zeros = mask ^ 255;
    running = running && static_cast<std::uint32_t>(r) < width && (zeros & (zeros - 1)) == 0;
    run += running ? 1 : 0;
  }
  plan.dense = static_cast<std::uint32_t>(slice::dense_planes_after(static_cast<int>(width), static_cast<int>(run)));
}

/// How many bytes the sparse planes take beside their masks.
template <int G>
LACONIC_GPU_FN std::uint32_t sparse_bytes(const BlockPlan<G>& plan) {
  std::uint32_t n = static_cast<std::uint32_t>(count_ones(plan.mark_bytes));
  LACONIC_GPU_UNROLL
  for (int i = 0; i < 2 * G; ++i) {
    const int dense_here = static_cast<int>(plan.dense) - 4 * i;
    const std::uint32_t sparse = dense_here >= 4 ? 0 : dense_here <= 0 ? ~0U : ~0U << (8 * dense_here);
    n += static_cast<std::uint32_t>(count_ones(plan.masks[i] & sparse));
  }
  return n;
}

LACONIC_GPU_FN void put_sparse(std::uint32_t word, std::uint8_t*& bytes) {
  LACONIC_GPU_UNROLL
  for (int g = 0; g < 4; ++g) {
    if ((word & 255U << (8 * g)) != 0) *bytes++ = static_cast<std::uint8_t>(word >> (8 * g));
  }
}

/// Stores a lane's planes at their places in the three sections.
template <int G>
LACONIC_GPU_FN void put_block(const Planes<G>& p, const BlockPlan<G>& plan, std::uint64_t mark_plane,
                              std::uint32_t widest, bool marked, std::uint8_t* dense, std::uint8_t* masks,
                              std::uint8_t* bytes) {
  LACONIC_GPU_UNROLL
  for (int r = 0; r < 8 * G; ++r) {
    const auto ur = static_cast<std::uint32_t>(r);
    if (ur >= widest) continue;
    if (ur < plan.dense) {
      store32(dense + 8 * r, p.half[r][0]);
      store32(dense + 8 * r + 4, p.half[r][1]);
    } else if (ur < plan.width) {
      *masks++ = static_cast<std::uint8_t>(plan.masks[r / 4] >> (8 * (r % 4)));
      put_sparse(p.half[r][0], bytes);
      put_sparse(p.half[r][1], bytes);
    }
  }
  if (!marked) return;
  *masks = static_cast<std::uint8_t>(plan.mark_bytes);
  put_sparse(static_cast<std::uint32_t>(mark_plane), bytes);
  put_sparse(static_cast<std::uint32_t>(mark_plane >> 32), bytes);
}

/// Whether all residuals are the same (zigzag planes); then that is `residual`.
template <int G>
LACONIC_GPU_FN bool all_residuals_equal(const Warp& w, const PerLane<Planes<G>>& planes, std::int32_t& residual) {
  // Most chunks show it in the lowest planes.
  if (w.any([&](int l) {
        const auto& half = planes[l].half;
        return half[0][0] != 0 - (half[0][0] & 1) || half[0][0] != half[0][1] || half[1][0] != 0 - (half[1][0] & 1) ||
               half[1][0] != half[1][1];
      }))
    return false;
  PerLane<std::uint32_t> first;
  const bool differ = w.any([&](int l) {
    bool same = true;
    std::uint32_t z = 0;
    LACONIC_GPU_UNROLL
    for (int r = 0; r < 8 * G; ++r) {
      const std::uint32_t bit = planes[l].half[r][0] & 1;
      z |= bit << r;
      same = same && planes[l].half[r][0] == 0 - bit && planes[l].half[r][1] == 0 - bit;
    }
    first[l] = z;
    return !same;
  });
  if (differ) return false;
  const std::uint32_t z = w.from(first, 0);
  residual = slice::unzigzag<std::int32_t>(z);
  return !w.any([&](int l) { return first[l] != z; });
}

/// Writes a constant chunk; returns its bytes.
template <class I>
LACONIC_GPU_FN std::uint32_t write_constant(const Warp& w, std::int64_t q, const ChunkShape& shape, std::uint8_t* out) {
  Start s;
  s.word.kind = Kind::constant;
  s.base = q;
  place_base(s);
  w.each([&](int l) {
    if (l == 0) write_start<I>(out, s, shape);
  });
  return start_bytes<I>(s, shape);
}

/// Writes the chunk of these residuals (two's complement; they become zigzag) and returns its bytes; 0, and nothing is
/// written, where `longest` bytes or more would be needed. `out`: 4-byte aligned shared memory.
template <int G>
LACONIC_GPU_FN std::uint32_t write_planes(const Warp& w, PerLane<Planes<G>>& planes, Choice<std::int32_t> choice,
                                          const Fill& fill, const ChunkShape& shape, std::uint32_t longest,
                                          std::uint8_t* out) {
  PerLane<BlockPlan<G>> plan;
  const std::uint32_t widest = w.max([&](int l) {
    to_zigzag(planes[l]);
    std::uint32_t width = 0;
    LACONIC_GPU_UNROLL
    for (int r = 0; r < 8 * G; ++r) {
      if ((planes[l].half[r][0] | planes[l].half[r][1]) != 0) width = static_cast<std::uint32_t>(r + 1);
    }
    plan[l].width = width;
    return width;
  });
  if (!fill.any) {
    std::int32_t residual = 0;
    const bool constant = choice.predictor == Predictor::none ? all_residuals_equal(w, planes, residual) : widest == 0;
    if (constant) return write_constant<std::int32_t>(w, wrap_add(choice.base, residual), shape, out);
  }

  PerLane<std::uint32_t> codes;
  w.each([&](int l) {
    plan[l].mark_bytes = fill.any ? non_zero_bytes(slice::mark_plane(fill.marks[l])) : 0;
    plan_block(planes[l], plan[l].width, widest, plan[l]);
    codes[l] = slice::make_code(static_cast<int>(plan[l].width), static_cast<int>(plan[l].dense));
  });
  const auto marked = [&](int l) { return fill.any && fill.marks[l] != 0; };
  std::uint32_t planes_total = 0;
  const PerLane<std::uint32_t> planes_below = w.sum_below<std::uint32_t>(
      [&](int l) { return plan[l].dense | (plan[l].width - plan[l].dense + (marked(l) ? 1 : 0)) << 16; }, planes_total);
  std::uint32_t bytes_total = 0;
  const PerLane<std::uint32_t> bytes_below =
      w.sum_below<std::uint32_t>([&](int l) { return sparse_bytes(plan[l]); }, bytes_total);

  Start start;
  start.word.predictor = choice.predictor;
  start.word.has_fill = fill.any;
  start.base = choice.base;
  start.fill_blocks = fill.blocks;
  start.fill = fill.value;
  place_base(start);
  const Dictionary dictionary = make_dictionary(w, codes);
  set_codes(start.word, dictionary);
  const std::uint32_t codes_at = start_bytes<std::int32_t>(start, shape);
  const std::uint32_t dense_at = codes_at + dictionary.bytes();
  const std::uint32_t masks_at = dense_at + 8 * (planes_total & 0xFFFF);
  const std::uint32_t bytes_at = masks_at + (planes_total >> 16);
  const std::uint32_t end = pad4(bytes_at + bytes_total);
  if (end >= longest) return 0;

  w.each([&](int l) {
    if (l == 0) store32(out + end - 4, 0);  // padding
  });
  w.each([&](int l) {
    if (l == 0) write_start<std::int32_t>(out, start, shape);
  });
  write_codes(w, dictionary, codes, out + codes_at);
  w.each([&](int l) {
    put_block(planes[l], plan[l], fill.any ? slice::mark_plane(fill.marks[l]) : 0, widest, marked(l),
              out + dense_at + 8 * (planes_below[l] & 0xFFFF), out + masks_at + (planes_below[l] >> 16),
              out + bytes_at + bytes_below[l]);
  });
  return end;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
