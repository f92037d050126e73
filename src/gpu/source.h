// Chunks in device memory: of a frame whose table has been read, or in slots.
#pragma once

#include "gpu/warp.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// A chunk's bytes, 4-byte aligned, in memory that may be read in units of 16 aligned bytes, up to `limit`.
struct ChunkIn {
  const std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
  const std::uint8_t* limit = nullptr;
};

/// Chunks in device memory that a kernel reads: of a frame, or in slots.
struct Source {
  const std::uint8_t* data = nullptr;      ///< 16-byte aligned
  std::uint64_t readable = 0;              ///< bytes there
  const std::uint64_t* offsets = nullptr;  ///< frames: where each chunk begins and the last one ends; made by locate
  const std::uint16_t* sizes = nullptr;    ///< slots
  std::uint32_t slot_bytes = 0;

  /// A chunk that is not there has no bytes.
  [[nodiscard]] LACONIC_GPU_FN ChunkIn chunk(std::uint64_t c) const {
    const std::uint64_t begin = offsets != nullptr ? offsets[c] : c * slot_bytes;
    const std::uint64_t end = offsets != nullptr ? offsets[c + 1] : begin + 4 * std::uint64_t{sizes[c]};
    if (begin > end || end > readable) return {};
    return {data + begin, static_cast<std::uint32_t>(end - begin), data + readable};
  }
};

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
