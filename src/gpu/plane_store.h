// A block's residuals as bit planes in shared memory. Loops over planes in registers have to be unrolled, and a
// multiprocessor keeps few instructions near: what does the same to all planes goes over these. Source: ours.
#pragma once

#include "gpu/planes.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Half h of a plane: bit i is that of value 32 h + i of the block.
struct alignas(8) Plane {
  std::uint32_t half[2] = {0, 0};

  [[nodiscard]] LACONIC_GPU_FN bool any() const { return (half[0] | half[1]) != 0; }
  friend LACONIC_GPU_FN Plane operator^(const Plane& a, const Plane& b) {
    return {{a.half[0] ^ b.half[0], a.half[1] ^ b.half[1]}};
  }
};

/// The lanes' planes, in two's complement: those above the highest are like it. Writing a chunk makes them the
/// zigzag's.
class PlaneStore {
 public:
  static constexpr int most = 16;
  static constexpr std::uint32_t bytes = most * warp_lanes * sizeof(Plane);
  static constexpr std::uint32_t mask_bytes = most * warp_lanes;

  int count = 0;

  /// `memory`: 8-byte aligned, `bytes` long.
  LACONIC_GPU_FN explicit PlaneStore(std::uint8_t* memory) : planes_(reinterpret_cast<Plane*>(memory)) {}

  LACONIC_GPU_FN Plane& at(int r, int lane) const { return planes_[r * warp_lanes + lane]; }
  /// Which bytes of a plane are not 0, for who writes them; in the mask_bytes before the planes' memory.
  LACONIC_GPU_FN std::uint8_t& mask(int r, int lane) const {
    return (reinterpret_cast<std::uint8_t*>(planes_) - mask_bytes)[r * warp_lanes + lane];
  }
  [[nodiscard]] LACONIC_GPU_FN Plane top(int lane) const { return at(count - 1, lane); }
  /// Plane r of the zigzag; `sign`: top().
  [[nodiscard]] LACONIC_GPU_FN Plane zigzag(int r, int lane, const Plane& sign) const {
    return r == 0 ? sign : at(r - 1, lane) ^ sign;
  }

  template <int G>
  LACONIC_GPU_FN void put(const Warp& w, const PerLane<Planes<G>>& planes) {
    static_assert(Planes<G>::count <= most);
    count = Planes<G>::count;
    w.each([&](int l) {
      LACONIC_GPU_UNROLL
      for (int r = 0; r < Planes<G>::count; ++r) at(r, l) = {{planes[l].half[r][0], planes[l].half[r][1]}};
    });
  }
  /// At most Planes<G>::count planes.
  template <int G>
  LACONIC_GPU_FN void get(const Warp& w, PerLane<Planes<G>>& planes) const {
    w.each([&](int l) {
      LACONIC_GPU_UNROLL
      for (int r = 0; r < Planes<G>::count; ++r) {
        const Plane p = at(r < count ? r : count - 1, l);
        planes[l].half[r][0] = p.half[0];
        planes[l].half[r][1] = p.half[1];
      }
    });
  }
  /// Leaves out planes that say nothing.
  LACONIC_GPU_FN void trim(const Warp& w) {
    LACONIC_GPU_KEEP_LOOP
    while (count > 1 && !w.any([&](int l) { return (at(count - 1, l) ^ at(count - 2, l)).any(); })) --count;
  }

 private:
  Plane* planes_;
};

/// Makes of residuals their differences, which are the residuals of the next predictor; there has to be room for a
/// plane more. Returns the first one, which a chain has in its base, and leaves 0.
LACONIC_GPU_FN std::int32_t raise_residuals(const Warp& w, PlaneStore& planes) {
  PerLane<std::uint32_t> ends;  // bit r: plane r of the block's last residual; bit 16 + r: of its first
  w.each([&](int l) {
    LACONIC_GPU_KEEP_LOOP
    for (int r = 0; r < planes.count; ++r) {
      const Plane p = planes.at(r, l);
      ends[l] |= p.half[1] >> 31 << r | (p.half[0] & 1) << (16 + r);
    }
  });
  const PerLane<std::uint32_t> before = w.gather(ends, [](int l) { return l == 0 ? 0 : l - 1; });
  const std::uint32_t first = w.from(ends, 0) >> 16;
  w.each([&](int l) {
    const std::uint32_t entering = l == 0 ? first : before[l];
    std::uint32_t borrow[2] = {0, 0};
    std::uint32_t enters = 0;
    Plane own;
    LACONIC_GPU_KEEP_LOOP
    for (int r = 0; r <= planes.count; ++r) {
      if (r < planes.count) {  // else like the highest
        own = planes.at(r, l);
        enters = entering >> r & 1;
      }
      const Plane one_before{{own.half[0] << 1 | enters, funnel_right(own.half[0], own.half[1], 31)}};
      Plane result = own;
      LACONIC_GPU_UNROLL
      for (int h = 0; h < 2; ++h) subtract_bits(result.half[h], one_before.half[h], borrow[h]);
      planes.at(r, l) = result;
    }
  });
  const int unused = 32 - planes.count;
  ++planes.count;
  planes.trim(w);
  return static_cast<std::int32_t>(first << unused) >> unused;
}

/// Whether all residuals are the same; then that is `residual`.
LACONIC_GPU_FN bool all_residuals_equal(const Warp& w, const PlaneStore& planes, std::int32_t& residual) {
  std::uint32_t value = 0;
  LACONIC_GPU_KEEP_LOOP
  for (int r = 0; r < planes.count; ++r) {
    const std::uint32_t bit = planes.at(r, 0).half[0] & 1;
    if (w.any([&](int l) { return (planes.at(r, l) ^ Plane{{0 - bit, 0 - bit}}).any(); })) return false;
    value |= bit << r;
  }
  const int unused = 32 - planes.count;
  residual = static_cast<std::int32_t>(value << unused) >> unused;
  return true;
}

/// How many zigzag planes the widest block has.
LACONIC_GPU_FN int widest_block(const Warp& w, const PlaneStore& planes) {
  int n = planes.count;
  LACONIC_GPU_KEEP_LOOP
  while (n > 0 && !w.any([&](int l) { return planes.zigzag(n - 1, l, planes.top(l)).any(); })) --n;
  return n;
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
