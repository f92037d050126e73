// The processor's caches, as far as it matters whether an array is still in one when it is used next.
#pragma once

#include <cstddef>

namespace laconic {

/// Bytes of the largest cache, which cores share; 0 where the processor does not say. Asked for once; any thread.
std::size_t largest_cache_bytes();

}  // namespace laconic
