// The sum of several arrays, exact and rounded once: the same bits whatever the order. The fallback where no grid fits,
// and the reference that tests compare with.
#pragma once

#include <vector>

#include "core/array.h"
#include "core/op.h"

namespace laconic {

/// out[i] = sum (or average) over k of operands[k][i]. Floats: the exact value rounded once to the dtype, NaN (the
/// positive quiet one) and infinities as in IEEE arithmetic. Integers: the sum modulo 2^bits; the average exactly,
/// rounded toward zero as C divides. All arrays have out's dtype and count; out may be one of them. At least one
/// operand.
void sum_exactly(const std::vector<ConstArray>& operands, MutArray out, Op op);

}  // namespace laconic
