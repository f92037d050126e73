// Thread blocks, what they and others tell each other by way of memory, and where things begin that lie one behind the
// other. Source: decoupled look-back is Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled
// Look-back", 2016; the rest ours.
#pragma once

#include "gpu/warp.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// Chunks that a tile makes, and warps that it has.
inline constexpr int tile_warps = 8;
inline constexpr int tile_threads = tile_warps * warp_lanes;

#if defined(__CUDACC__)

template <class T>
struct PerWarp {
  T value{};
  LACONIC_GPU_FN T& operator[](int) { return value; }
};

/// A thread block: one step of all its warps after another.
class Tile {
 public:
  /// f(warp, k) for every warp k; then a barrier.
  template <class F>
  LACONIC_GPU_FN void each_warp(F f) const {
    f(Warp(), static_cast<int>(threadIdx.x / warp_lanes));
    __syncthreads();
  }
  /// Without the barrier.
  template <class F>
  LACONIC_GPU_FN void each_warp_freely(F f) const {
    f(Warp(), static_cast<int>(threadIdx.x / warp_lanes));
  }
};

LACONIC_GPU_FN std::uint64_t load_shared_state(const std::uint64_t* p) {
  std::uint64_t v = 0;
  asm volatile("ld.relaxed.gpu.global.u64 %0,[%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
LACONIC_GPU_FN void store_shared_state(std::uint64_t* p, std::uint64_t v) {
  asm volatile("st.relaxed.gpu.global.u64 [%0],%1;" ::"l"(p), "l"(v) : "memory");
}
LACONIC_GPU_FN void or_shared(std::uint32_t* p, std::uint32_t v) { atomicOr(p, v); }
LACONIC_GPU_FN std::uint32_t swap_if(std::uint32_t* p, std::uint32_t expected, std::uint32_t v) {
  return atomicCAS(p, expected, v);
}
/// Not __threadfence(): that is sequentially consistent, which takes longer, and which nothing here needs.
LACONIC_GPU_FN void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
LACONIC_GPU_FN void fence_in_block() { asm volatile("fence.acq_rel.cta;" ::: "memory"); }
LACONIC_GPU_FN void release(std::uint32_t* p) {
  fence();
  atomicExch(p, 0U);
}
LACONIC_GPU_FN void let_others_run() { __nanosleep(40); }
LACONIC_GPU_FN void xor_shared(std::uint32_t* p, std::uint32_t v) { atomicXor(p, v); }
LACONIC_GPU_FN std::uint32_t add_shared(std::uint32_t* p, std::uint32_t v) { return atomicAdd(p, v); }
LACONIC_GPU_FN std::uint64_t add_shared(std::uint64_t* p, std::uint64_t v) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(p), v);
}
LACONIC_GPU_FN void max_shared(std::uint64_t* p, std::uint64_t v) {
  atomicMax(reinterpret_cast<unsigned long long*>(p), v);
}
/// Counts up after everything that was written, and read, before. Returns how many did earlier; a fence() then
/// shows what those wrote.
template <class U>
LACONIC_GPU_FN U count_behind(U* p) {
  fence();
  return add_shared(p, U{1});
}
/// The same among the warps of a block, in shared memory. Who comes last knows by a fence() of its own that whoever has
/// seen what it writes then sees what they all wrote before: causality order is transitive.
LACONIC_GPU_FN std::uint32_t count_behind_in_block(std::uint32_t* p) {
  fence_in_block();
  return atomicAdd_block(p, 1U);
}

#else

template <class T>
struct PerWarp {
  T value[tile_warps]{};
  T& operator[](int k) { return value[k]; }
};

class Tile {
 public:
  template <class F>
  void each_warp(F f) const {
    for (int k = 0; k < tile_warps; ++k) f(Warp(), k);
  }
  template <class F>
  void each_warp_freely(F f) const {
    each_warp(f);
  }
};

inline std::uint64_t load_shared_state(const std::uint64_t* p) { return *p; }
inline void store_shared_state(std::uint64_t* p, std::uint64_t v) { *p = v; }
inline void or_shared(std::uint32_t* p, std::uint32_t v) { *p |= v; }
inline std::uint32_t swap_if(std::uint32_t* p, std::uint32_t expected, std::uint32_t v) {
  const std::uint32_t before = *p;
  if (before == expected) *p = v;
  return before;
}
inline void release(std::uint32_t* p) { *p = 0; }
inline void fence() {}
inline void fence_in_block() {}
inline void let_others_run() {}
inline void xor_shared(std::uint32_t* p, std::uint32_t v) { *p ^= v; }
template <class U>
inline U add_shared(U* p, U v) {
  const U before = *p;
  *p += v;
  return before;
}
inline void max_shared(std::uint64_t* p, std::uint64_t v) { *p = v > *p ? v : *p; }
template <class U>
inline U count_behind(U* p) {
  return add_shared(p, U{1});
}
inline std::uint32_t count_behind_in_block(std::uint32_t* p) { return add_shared(p, 1U); }

#endif

/// The state of one of those that are found or written one behind the other, as others see it: nothing yet, the bytes
/// of its own, or those of all up to its end.
struct State {
  static constexpr std::uint64_t own = std::uint64_t{1} << 62;
  static constexpr std::uint64_t all = std::uint64_t{2} << 62;
  static constexpr std::uint64_t bytes_mask = own - 1;
};

/// Publishes the bytes of what this one has of its own.
LACONIC_GPU_FN void announce(const Warp& w, std::uint64_t number, std::uint64_t bytes, std::uint64_t* states) {
  w.each([&](int l) {
    if (l == 0) store_shared_state(&states[number], State::own | bytes);
  });
}

/// The bytes of this one, when it has been announced, and all before it; then its state says so. `states`: one for
/// each, zero at first. One warp; all before it have begun earlier, as blocks do in the order of their numbers, and
/// announce without waiting for any that comes later.
LACONIC_GPU_FN std::uint64_t bytes_up_to(const Warp& w, std::uint64_t number, std::uint64_t* states) {
  std::uint64_t sum = 0;
  for (auto last = static_cast<std::int64_t>(number); last >= 0; last -= warp_lanes) {
    PerLane<std::uint64_t> state;
    w.each([&](int l) {
      state[l] = State::all;
      if (last - l < 0) return;
      while ((state[l] = load_shared_state(&states[last - l])) == 0) let_others_run();
    });
    const std::uint32_t complete = w.ballot([&](int l) { return (state[l] & State::all) != 0; });
    const int stop = complete != 0 ? trailing_zeros(complete) : warp_lanes - 1;
    sum += w.sum<std::uint64_t>([&](int l) { return l <= stop ? state[l] & State::bytes_mask : 0; });
    if (complete != 0) break;
  }
  w.each([&](int l) {
    fence();  // of what was read, and before what is written
    if (l == 0) store_shared_state(&states[number], State::all | sum);
  });
  return sum;
}

/// Waits until so many have counted up behind what they wrote, or read.
LACONIC_GPU_FN void wait_for(const std::uint32_t* count, std::uint32_t least) {
  while (*reinterpret_cast<const volatile std::uint32_t*>(count) < least) let_others_run();
  fence();
}

/// The same among the warps of a block, in shared memory.
LACONIC_GPU_FN void raise(std::uint32_t* flag) {
  fence_in_block();
  *reinterpret_cast<volatile std::uint32_t*>(flag) = 1;
}
LACONIC_GPU_FN void wait_until_raised(const std::uint32_t* flag) {
  while (*reinterpret_cast<const volatile std::uint32_t*>(flag) == 0) let_others_run();
  fence_in_block();
}

/// What the warps of a tile tell each other, in shared memory.
struct TileShared {
  std::uint32_t bytes[tile_warps];
  std::uint64_t begin;    ///< of its first chunk
  std::uint64_t end;      ///< of the last chunk of a tile that it looks after
  std::uint32_t arrived;  ///< warps
  std::uint32_t placed;   ///< warps that have placed a chunk
  std::uint32_t found;    ///< whether `end` has been
};

/// The same of thread blocks that work on tile after tile, which all draw from one counter. There are two places, used
/// in turn, since some warps may still read one while others have come to the next tile.
struct TurnsShared {
  std::uint32_t number[2];  ///< of tiles
};

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
