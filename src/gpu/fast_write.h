// From planes to a chunk in shared memory: coded chunks without entries, constant ones, and the decision
// that the elements themselves would be shorter. Source: ours; the definition is codec/slice/chunk_writer.cc.
#pragma once

#include "gpu/plane_store.h"
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
struct BlockPlan {
  std::uint32_t width, dense;
  std::uint32_t mark_bytes;    ///< mask of the plane of marks
  std::uint32_t sparse_bytes;  ///< of planes and marks, beside their masks
};

/// The plan of a lane's planes, which become those of the zigzag, with their masks; `widest`: no block has more.
LACONIC_GPU_FN void plan_block(const PlaneStore& planes, int l, int widest, BlockPlan& plan) {
  constexpr std::uint64_t ones = 0x1111111111111111;
  const Plane sign = planes.top(l);
  std::uint64_t bytes = 0;  // four bits a plane: how many are not zero
  Plane* plane = &planes.at(widest - 1, l);
  std::uint8_t* mask = &planes.mask(widest - 1, l);
  LACONIC_GPU_KEEP_LOOP
  for (int r = widest - 1; r >= 0; --r) {
    const Plane z = r > 0 ? plane[-warp_lanes] ^ sign : sign;
    const std::uint32_t there = flags_of_bytes(z.half[0], z.half[1]);
    *plane = z;
    *mask = static_cast<std::uint8_t>(bits_of_flags(there));
    bytes = bytes << 4 | static_cast<std::uint32_t>(count_ones(there));
    plane -= warp_lanes;
    mask -= warp_lanes;
  }
  const int width = (bit_width(bytes) + 3) / 4;
  const std::uint64_t fewer = ~(bytes + ones) & 8 * ones;  // than 7
  const int dense = slice::dense_planes_after(width, trailing_zeros(fewer) / 4);
  const std::uint64_t sparse = dense >= PlaneStore::most ? 0 : bytes >> (4 * dense);
  plan.width = static_cast<std::uint32_t>(width);
  plan.dense = static_cast<std::uint32_t>(dense);
  plan.sparse_bytes = sum_of_nibbles(sparse) + static_cast<std::uint32_t>(count_ones(plan.mark_bytes));
}

/// Stores the bytes that `mask` has behind `last`, which becomes the last of them.
LACONIC_GPU_FN void put_sparse(Plane plane, std::uint32_t mask, std::uint8_t*& last) {
  LACONIC_GPU_UNROLL
  for (int g = 0; g < 8; ++g) {
    if ((mask & 1U << g) != 0) *++last = static_cast<std::uint8_t>(plane.half[g / 4] >> (8 * (g % 4)));
  }
}

/// Stores a lane's planes, those of the zigzag, at their places in the three sections.
LACONIC_GPU_FN void put_block(const PlaneStore& planes, int l, const BlockPlan& plan, std::uint64_t mark_plane,
                              bool marked, std::uint8_t* dense, std::uint8_t* masks, std::uint8_t* bytes) {
  const Plane* from = &planes.at(0, l);
  LACONIC_GPU_KEEP_LOOP
  for (std::uint32_t left = plan.dense; left != 0; --left) {
    const Plane z = *from;
    from += warp_lanes;
    store32(dense, z.half[0]);
    store32(dense + 4, z.half[1]);
    dense += 8;
  }
  const std::uint8_t* mask = &planes.mask(static_cast<int>(plan.dense), l);
  std::uint8_t* last = bytes - 1;
  LACONIC_GPU_KEEP_LOOP
  for (std::uint32_t left = plan.width - plan.dense; left != 0; --left) {
    const Plane z = *from;
    const std::uint32_t m = *mask;
    from += warp_lanes;
    mask += warp_lanes;
    *masks++ = static_cast<std::uint8_t>(m);
    put_sparse(z, m, last);
  }
  if (!marked) return;
  *masks = static_cast<std::uint8_t>(plan.mark_bytes);
  put_sparse({{static_cast<std::uint32_t>(mark_plane), static_cast<std::uint32_t>(mark_plane >> 32)}}, plan.mark_bytes,
             last);
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

/// Writes the chunk of these residuals and returns its bytes; 0, and nothing is written, where `longest` bytes or more
/// would be needed; the planes' content is lost. `out`: 4-byte aligned shared memory, with room before the planes'
/// masks, if they lie behind it, for what all planes take at most.
LACONIC_GPU_FN std::uint32_t write_planes(const Warp& w, const PlaneStore& planes, Choice<std::int32_t> choice,
                                          const Fill& fill, const ChunkShape& shape, std::uint32_t longest,
                                          std::uint8_t* out) {
  const int widest = widest_block(w, planes);
  if (!fill.any) {
    std::int32_t residual = 0;
    const bool constant = choice.predictor == Predictor::none ? all_residuals_equal(w, planes, residual) : widest == 0;
    if (constant) return write_constant<std::int32_t>(w, wrap_add(choice.base, residual), shape, out);
  }

  PerLane<BlockPlan> plan;
  PerLane<std::uint32_t> codes;
  w.each([&](int l) {
    plan[l].mark_bytes = fill.any ? non_zero_bytes(slice::mark_plane(fill.marks[l])) : 0;
    plan_block(planes, l, widest, plan[l]);
    codes[l] = slice::make_code(static_cast<int>(plan[l].width), static_cast<int>(plan[l].dense));
  });
  const auto marked = [&](int l) { return fill.any && fill.marks[l] != 0; };
  std::uint32_t planes_total = 0;
  const PerLane<std::uint32_t> planes_below = w.sum_below<std::uint32_t>(
      [&](int l) { return plan[l].dense | (plan[l].width - plan[l].dense + (marked(l) ? 1 : 0)) << 16; }, planes_total);
  std::uint32_t bytes_total = 0;
  const PerLane<std::uint32_t> bytes_below =
      w.sum_below<std::uint32_t>([&](int l) { return plan[l].sparse_bytes; }, bytes_total);

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
    put_block(planes, l, plan[l], fill.any ? slice::mark_plane(fill.marks[l]) : 0, marked(l),
              out + dense_at + 8 * (planes_below[l] & 0xFFFF), out + masks_at + (planes_below[l] >> 16),
              out + bytes_at + bytes_below[l]);
  });
  return end;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
