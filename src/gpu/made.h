// A chunk on its way into a stream.
#pragma once

#include "gpu/warp.h"

namespace laconic::gpu::LACONIC_GPU_SIDE {

/// What has become of a chunk so far.
struct Made {
  enum class As : std::uint32_t {
    bytes,  ///< lies in the warp's region
    again,  ///< is to be written by the way that can do everything
    raw,    ///< the elements are to be copied
  };
  As as = As::again;
  std::uint32_t bytes = 0;
};

}  // namespace laconic::gpu::LACONIC_GPU_SIDE
