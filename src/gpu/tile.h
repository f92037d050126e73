// Several warps that write chunks one behind the other: each makes a chunk, the tile finds out where its chunks begin
// by looking back at the tiles before it, and each warp puts its chunk there. Source: decoupled look-back is Merrill
// and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016; the rest ours.
#pragma once

#include "codec/codec.h"
#include "codec/slice/slice.h"
#include "frame/layout.h"
#include "gpu/faults.h"
#include "gpu/sections.h"

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
LACONIC_GPU_FN void release(std::uint32_t* p) {
  __threadfence();
  atomicExch(p, 0U);
}
LACONIC_GPU_FN void acquire_fence() { __threadfence(); }
LACONIC_GPU_FN void xor_shared(std::uint32_t* p, std::uint32_t v) { atomicXor(p, v); }
LACONIC_GPU_FN std::uint64_t add_shared(std::uint64_t* p, std::uint64_t v) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(p), v);
}
LACONIC_GPU_FN void max_shared(std::uint64_t* p, std::uint64_t v) {
  atomicMax(reinterpret_cast<unsigned long long*>(p), v);
}
/// Counts up after everything that was written before; who counted earlier has been seen to write. Returns how many.
LACONIC_GPU_FN std::uint64_t arrive(std::uint64_t* p) {
  __threadfence();
  const std::uint64_t before = add_shared(p, 1);
  __threadfence();
  return before;
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
inline void acquire_fence() {}
inline void xor_shared(std::uint32_t* p, std::uint32_t v) { *p ^= v; }
inline std::uint64_t add_shared(std::uint64_t* p, std::uint64_t v) {
  const std::uint64_t before = *p;
  *p += v;
  return before;
}
inline void max_shared(std::uint64_t* p, std::uint64_t v) { *p = v > *p ? v : *p; }
inline std::uint64_t arrive(std::uint64_t* p) { return add_shared(p, 1); }

#endif

/// A tile's state as others see it: nothing yet, the bytes of its own chunks, or those of all chunks up to its last.
struct TileState {
  static constexpr std::uint64_t own = std::uint64_t{1} << 62;
  static constexpr std::uint64_t all = std::uint64_t{2} << 62;
  static constexpr std::uint64_t bytes_mask = own - 1;
};

/// Publishes the bytes of a tile's chunks and returns those of all tiles before it. `states`: one for each tile, zero
/// at first. One warp; tiles must begin in the order of their numbers.
LACONIC_GPU_FN std::uint64_t bytes_before(const Warp& w, std::uint64_t tile, std::uint64_t bytes,
                                          std::uint64_t* states) {
  std::uint64_t before = 0;
  if (tile > 0) {
    w.each([&](int l) {
      if (l == 0) store_shared_state(&states[tile], TileState::own | bytes);
    });
    auto last = static_cast<std::int64_t>(tile) - 1;
    for (;;) {
      PerLane<std::uint64_t> state;
      w.each([&](int l) {
        state[l] = TileState::all;
        if (last - l < 0) return;
        do state[l] = load_shared_state(&states[last - l]);
        while (state[l] == 0);
      });
      const std::uint32_t complete = w.ballot([&](int l) { return (state[l] & TileState::all) != 0; });
      const int stop = complete != 0 ? trailing_zeros(complete) : warp_lanes - 1;
      before += w.sum<std::uint64_t>([&](int l) { return l <= stop ? state[l] & TileState::bytes_mask : 0; });
      if (complete != 0) break;
      last -= warp_lanes;
    }
  }
  w.each([&](int l) {
    if (l == 0) store_shared_state(&states[tile], TileState::all | (before + bytes));
  });
  return before;
}

/// Where chunks go: into a frame, one behind the other; or each to a slot of its own.
struct Sink {
  std::uint8_t* out = nullptr;      ///< frame, 16-byte aligned; or slots
  std::uint64_t capacity = 0;       ///< bytes at `out`
  std::uint64_t count = 0;          ///< elements
  std::uint64_t* states = nullptr;  ///< of tiles; frames only
  std::uint16_t* sizes = nullptr;   ///< of slots, in units of 4 bytes; null for a frame
  std::uint32_t slot_bytes = 0;
  Params params;  ///< of the frame
  Report* report = nullptr;
};

/// Version, dtype, codec and qbits, as they stand in the header.
LACONIC_GPU_FN std::uint32_t kind_word(const Grid& g) {
  constexpr auto slice_id = static_cast<std::uint32_t>(CodecId::slice);
  return static_cast<std::uint32_t>(frame::version) | static_cast<std::uint32_t>(g.dtype) << 8 | slice_id << 16 |
         static_cast<std::uint32_t>(g.qbits) << 24;
}

/// The header of a frame, but for its checksum, which is 0.
LACONIC_GPU_FN void write_header(const Sink& sink, std::uint64_t bytes) {
  std::uint8_t* h = sink.out;
  const Grid& g = sink.params.grid;
  store32(h + frame::at_magic, frame::magic);
  store32(h + frame::at_version, kind_word(g));
  store32(h + frame::at_operands, sink.params.operands);
  store32(h + frame::at_crc, 0);
  store64(h + frame::at_count, sink.count);
  store64(h + frame::at_bytes, bytes);
  store64(h + frame::at_step, std::bit_cast<std::uint64_t>(g.step));
  store64(h + frame::at_bound, std::bit_cast<std::uint64_t>(g.bound));
}

LACONIC_GPU_FN void store16(std::uint8_t* p, std::uint16_t v) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<std::uint16_t*>(p) = v;
#else
  slice::store(p, v);
#endif
}

/// What the warps of a tile tell each other, in shared memory.
struct TileShared {
  std::uint32_t bytes[tile_warps];
  std::uint64_t begin[tile_warps];  ///< of each chunk, from the frame's first byte
};

LACONIC_GPU_FN int elements_in(std::uint64_t count, std::uint64_t chunk) {
  const std::uint64_t left = count - chunk * chunk_values;
  return left < chunk_values ? static_cast<int>(left) : chunk_values;
}

/// Puts a chunk that has been made into its slot.
template <class Op>
LACONIC_GPU_FN void place_in_slot(const Warp& w, int k, std::uint64_t chunk, int count, std::uint32_t bytes, Op& op,
                                  const Sink& sink, std::uint8_t* region) {
  const bool fits = bytes <= sink.slot_bytes;
  w.each([&](int l) {
    if (l != 0) return;
    if (!fits) or_shared(&sink.report->faults, static_cast<std::uint32_t>(Fault::too_small));
    sink.sizes[chunk] = static_cast<std::uint16_t>(fits ? bytes / 4 : 0);
  });
  if (bytes != 0 && fits) op.place(w, k, chunk, count, region, sink.out + chunk * sink.slot_bytes);
}

/// Finds where a tile's chunks begin; its last one ends the frame. One warp.
LACONIC_GPU_FN void find_begin(const Warp& w, std::uint64_t number, const Sink& sink, TileShared& shared) {
  const std::uint64_t chunks = slice::chunks_of(sink.count);
  std::uint32_t total = 0;
  const PerLane<std::uint32_t> below =
      w.sum_below<std::uint32_t>([&](int l) { return l < tile_warps ? shared.bytes[l] : 0U; }, total);
  const std::uint64_t payload_at = frame::header_bytes + slice::table_bytes(sink.count);
  const std::uint64_t begin = payload_at + bytes_before(w, number, total, sink.states);
  w.each([&](int l) {
    if (l < tile_warps) shared.begin[l] = begin + below[l];
    if (l != 0) return;
    if ((number + 1) * tile_warps < chunks) return;
    const std::uint64_t end = begin + total;
    sink.report->bytes = end;
    if (end > sink.capacity) {
      or_shared(&sink.report->faults, static_cast<std::uint32_t>(Fault::too_small));
      return;
    }
    write_header(sink, end);
    if (chunks % 2 != 0) store16(sink.out + frame::header_bytes + 2 * chunks, 0);
  });
}

/// Makes the chunks of a tile and places them: one behind the other in a frame, or in slots, where nobody waits for
/// anybody. `op.make(warp, k, chunk, count, region, fault)` returns a chunk's bytes, 0 where there was a fault;
/// `op.place(warp, k, chunk, count, region, out)` puts that chunk to out.
template <class Op>
LACONIC_GPU_FN void run_tile(const Tile& tile, std::uint64_t number, Op& op, const Sink& sink, TileShared& shared,
                             std::uint8_t* regions, std::uint32_t region_bytes) {
  const std::uint64_t chunks = slice::chunks_of(sink.count);
  const bool slots = sink.sizes != nullptr;
  PerWarp<std::uint32_t> bytes;
  const auto chunk_of = [&](int k) { return number * tile_warps + static_cast<std::uint64_t>(k); };
  const auto make = [&](const Warp& w, int k) {
    std::uint8_t* region = regions + k * region_bytes;
    const std::uint64_t chunk = chunk_of(k);
    const int count = elements_in(sink.count, chunk);
    std::uint32_t fault = 0;
    bytes[k] = op.make(w, k, chunk, count, region, fault);
    w.each([&](int l) {
      if (l == 0 && fault != 0) or_shared(&sink.report->faults, fault);
    });
    if (slots) place_in_slot(w, k, chunk, count, bytes[k], op, sink, region);
  };
  tile.each_warp([&](const Warp& w, int k) {
    bytes[k] = 0;
    if (chunk_of(k) < chunks) make(w, k);
    w.each([&](int l) {
      if (l == 0) shared.bytes[k] = bytes[k];
    });
  });
  if (slots) return;
  tile.each_warp([&](const Warp& w, int k) {
    if (k == 0) find_begin(w, number, sink, shared);
  });
  tile.each_warp([&](const Warp& w, int k) {
    if (bytes[k] == 0) return;
    const std::uint64_t at = shared.begin[k];
    if (at + bytes[k] > sink.capacity) return;
    w.each([&](int l) {
      if (l == 0) store16(sink.out + frame::header_bytes + 2 * chunk_of(k), static_cast<std::uint16_t>(bytes[k] / 4));
    });
    op.place(w, k, chunk_of(k), elements_in(sink.count, chunk_of(k)), regions + k * region_bytes, sink.out + at);
  });
}

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
