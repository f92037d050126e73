// The processor's caches, as far as it matters whether an array is still in one when it is used next, and how what is
// not comes there.
#pragma once

#include <cstddef>

namespace laconic {

/// Bytes of the largest cache, which cores share; 0 where the processor does not say. Asked for once; any thread.
std::size_t largest_cache_bytes();

/// Whether lines that are asked for ahead of their use should be asked for little by little, over all that is done
/// meanwhile: some 16 may be on their way to a core, and whatever comes after one too many waits. So it was measured on
/// an Intel Xeon (docs/design.md); a Zen 4 takes more, and is faster where all are asked for early.
bool few_lines_on_their_way();

}  // namespace laconic
