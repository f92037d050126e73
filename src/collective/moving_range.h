// How far the grid of data that only moves must reach, where the bound is absolute: that needs no pass over the data.
#pragma once

#include <span>

#include "collective/memory.h"
#include "core/array.h"
#include "core/range.h"

namespace laconic {

/// A range for a grid of f32 or f64 within this bound (> 0). What lies beyond it travels as exceptions, within the
/// bound like everything else, so it need not hold all values: those that no grid could hold, such as fill values, are
/// left out, and of long arrays on the host whose sample is small beside a usual range that range stands for theirs.
/// Source: ours.
Range moving_range(Memory& memory, std::span<const ConstArray> parts, double bound);

}  // namespace laconic
