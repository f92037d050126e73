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
