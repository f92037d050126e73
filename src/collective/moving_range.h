// What a grid of data that only moves must know of them, without a pass over long arrays where that can be had.
#pragma once

#include <span>

#include "collective/memory.h"
#include "core/array.h"
#include "core/bound.h"
#include "core/range.h"

namespace laconic {

/// A range for a grid of f32 or f64 within this bound (not lossless, not a ratio, > 0). What lies beyond the grid
/// travels as exceptions, within the bound like everything else, so it need not hold all values.
///
/// An absolute bound: those that no grid could hold, such as fill values, are left out, and of long arrays on the host
/// whose sample is small beside a usual range that range stands for theirs.
///
/// A bound that refers to the range: of long arrays on the host the range of one KiB in 16 (of very long ones fewer),
/// where quarters of that sample have nearly as large a range by themselves; else the range of all values. Theirs is
/// never smaller, so what the bound comes to is never too large.
///
/// Source: ours.
Range moving_range(Memory& memory, std::span<const ConstArray> parts, const Bound& bound, int threads = 1);

/// The range of all values.
Range whole_range(Memory& memory, std::span<const ConstArray> parts, int threads = 1);

}  // namespace laconic
