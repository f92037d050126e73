// Ring: rank r sends to r + 1 and receives from r - 1. The least bytes per rank for large data; n - 1 steps a phase.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::ring {

/// n blocks, every rank brings all of them; rank r ends with the sum of block r.
Program reduce_scatter(int ranks, int rank);

/// n blocks, rank r brings block r; every rank ends with all of them.
Program allgather(int ranks, int rank);

/// reduce_scatter, then allgather of the sums.
Program allreduce(int ranks, int rank);

}  // namespace laconic::schedule::ring
