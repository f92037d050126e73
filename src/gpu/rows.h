// A chunk's integers in shared memory: a row of 64 for each block, which is a lane's own. Rows are read by their lanes
// and, when elements are loaded or stored, across lanes; units of 16 bytes are shuffled within a row so that neither
// meets itself in a memory bank. Source: ours.
#pragma once

#include "codec/slice/kernels.h"
#include "gpu/warp.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

using slice::block_values;
using slice::chunk_blocks;
using slice::chunk_values;
using slice::Params;
static_assert(chunk_blocks == warp_lanes, "a lane owns a block");

/// 16 bytes of integers, loaded and stored at once.
template <class I>
struct alignas(16) Unit {
  static constexpr int size = 16 / static_cast<int>(sizeof(I));
  I v[size];
};

template <class I>
class Rows {
 public:
  static constexpr int bytes = chunk_values * static_cast<int>(sizeof(I));
  static constexpr int units = block_values / Unit<I>::size;  ///< of a row

  /// `memory`: 16-byte aligned, `bytes` long.
  LACONIC_GPU_FN explicit Rows(std::uint8_t* memory) : units_(reinterpret_cast<Unit<I>*>(memory)) {}

  /// Values size * u .. of a row.
  LACONIC_GPU_FN Unit<I>& unit(int row, int u) const { return units_[row * units + (u ^ (row & 7))]; }
  LACONIC_GPU_FN I& at(int row, int i) const { return unit(row, i / Unit<I>::size).v[i % Unit<I>::size]; }
  /// By the position in the chunk.
  LACONIC_GPU_FN I& operator[](int position) const { return at(position / block_values, position % block_values); }

 private:
  Unit<I>* units_;
};

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
