// Recursive doubling: in step s acting ranks whose numbers differ in bit s exchange all that they have. log2(n) steps,
// two more for the fold where n is no power of two: the fewest messages, for short data.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::doubling {

/// One block, every rank brings it; every rank ends with the sum.
Program allreduce(int ranks, int rank);

/// n blocks, rank r brings block r; every rank ends with all of them.
Program allgather(int ranks, int rank);

/// One block, every rank brings it; rank r ends with the sum over ranks 0 .. r. In step s rank r sends what it has to
/// r + 2^s (Hillis and Steele 1986), for any n without a fold.
Program scan(int ranks, int rank);

}  // namespace laconic::schedule::doubling
