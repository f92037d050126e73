// What a reduction's operation does to plain elements, one after another, rounded each time as plain MPI would.
#pragma once

#include "core/array.h"
#include "core/op.h"

namespace laconic {

/// a[i] = a[i] op b[i]; average as sum. Integers wrap, and all NaN are the same one. Minimum and maximum as
/// take_extreme(). Same dtype and count.
void operate(Op op, MutArray a, ConstArray b);

/// a[i] = a[i] / divisor; floating-point dtypes.
void divide(MutArray a, int divisor);

}  // namespace laconic
