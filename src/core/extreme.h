// Minimum and maximum of arrays.
#pragma once

#include "core/array.h"
#include "core/op.h"

namespace laconic {

/// a[i] = min (max) of a[i] and b[i], independent of order: NaN if either is (always the positive quiet one), -0 below
/// +0. Same dtype and count.
void take_extreme(Op op, MutArray a, ConstArray b);

}  // namespace laconic
