// Rate control: a ratio in place of a bound, by any codec that keeps bounds. What is looked for is the finest grid
// whose payload has no more bytes than that; each array gets its own.
#pragma once

#include <cstddef>

#include "codec/codec.h"
#include "codec/grid.h"
#include "core/array.h"

namespace laconic {

/// The finest grid, within a few hundredths of the bytes, on which `codec` (Promise::bounded) encodes x, of a float
/// type, to at most `most_bytes`; lossless where that is enough (of large arrays: where a sample says so), and of fewer
/// elements than a chunk (2048) where nothing is. Takes the time of some five encodings of a large array, of ten and
/// more of a few thousand elements. Where even a grid of one point takes more, as NaN and infinities may, Error
/// (unsupported) or lossless, which is `beyond`. Depends on the values alone. Source: ours (bisection over a sample of
/// chunks, then steps of what was missed over all).
Grid grid_within_bytes(const Codec& codec, ConstArray x, Extents extents, std::size_t most_bytes, int threads,
                       BeyondRatio beyond = BeyondRatio::refused);

}  // namespace laconic
