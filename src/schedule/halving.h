// Recursive halving (Rabenseifner): acting ranks exchange half of what they are still responsible for, then a quarter,
// and so on. As few bytes as a ring in log2(n) steps; where n is no power of two, the fold costs the whole data once.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::halving {

/// n blocks, every rank brings all of them; rank r ends with the sum of block r.
Program reduce_scatter(int ranks, int rank);

/// n blocks, every rank brings all of them and ends with all sums: halving, then doubling.
Program allreduce(int ranks, int rank);

}  // namespace laconic::schedule::halving
