// Binomial tree: ceil(log2(n)) steps, for short data. Ranks are counted from the root; v's parent is v without its
// lowest set bit.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::tree {

/// One block, the root brings it; every rank ends with it.
Program bcast(int ranks, int rank, int root);

/// One block, every rank brings it; the root ends with the sum.
Program reduce(int ranks, int rank, int root);

/// n blocks, the root brings all of them; rank r ends with block r.
Program scatter(int ranks, int rank, int root);

/// n blocks, rank r brings block r; the root ends with all of them.
Program gather(int ranks, int rank, int root);

}  // namespace laconic::schedule::tree
