// What a collective must come to, computed in another way than the library does: 80-bit sums of f32 (exact for the
// numbers of ranks and spreads used here), and for f64 sums in 128-bit floats.
#pragma once

#include <vector>

namespace laconic::reference {

/// Each element of `got` within bound + half an ulp of the exact sum divided by `divisor`. Of float or double.
template <typename T>
void expect_sum(const std::vector<T>& got, const std::vector<std::vector<T>>& operands, double bound, int divisor = 1);

}  // namespace laconic::reference
