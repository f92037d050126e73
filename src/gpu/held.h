// Held values (docs/format.md, section 8): positions that are exceptions, or lie behind the last element, repeat the
// integer before them. Source: ours; the definition is hold_marked() in codec/slice/chunk_writer.cc.
#pragma once

#include "gpu/rows.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// The positions of block b at which a chunk of `count` elements has one.
LACONIC_GPU_FN std::uint64_t elements_of_block(int count, int b) {
  const int n = count - b * block_values;
  return n >= block_values ? ~std::uint64_t{0} : n <= 0 ? 0 : (std::uint64_t{1} << n) - 1;
}

template <class R>
LACONIC_GPU_RARE void hold(const Warp& w, const Rows<R>& rows, const PerLane<std::uint64_t>& marks, int count) {
  PerLane<std::uint64_t> good;
  PerLane<R> first;
  PerLane<R> last;
  w.each([&](int l) {
    good[l] = elements_of_block(count, l) & ~marks[l];
    if (good[l] == 0) return;
    first[l] = rows.at(l, trailing_zeros(good[l]));
    last[l] = rows.at(l, 63 - leading_zeros(good[l]));
  });
  const std::uint32_t lanes = w.ballot([&](int l) { return good[l] != 0; });
  const R start = lanes != 0 ? w.from(first, trailing_zeros(lanes)) : R{0};
  const PerLane<R> before = w.gather(last, [&](int l) {
    const int source = last_below(lanes, l);
    return source < 0 ? l : source;
  });
  w.each([&](int l) {
    if (~good[l] == 0) return;
    R held = last_below(lanes, l) < 0 ? start : before[l];
    std::uint64_t left = good[l];
    LACONIC_GPU_KEEP_LOOP
    for (int u = 0; u < Rows<R>::units; ++u, left >>= Unit<R>::size) {
      Unit<R> v = rows.unit(l, u);
      LACONIC_GPU_UNROLL
      for (int e = 0; e < Unit<R>::size; ++e) {
        if ((left >> e & 1) == 0) v.v[e] = held;
        held = v.v[e];
      }
      rows.unit(l, u) = v;
    }
  });
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
