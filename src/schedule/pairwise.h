// Pairwise exchange: in step s rank r sends to r + s and receives from r - s, so every rank is busy with one peer at a
// time and every link carries one message each way per step.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::pairwise {

/// n * n blocks: block from * n + to is what rank `from` has for rank `to`. Each rank ends with the blocks for it.
Program alltoall(int ranks, int rank);

}  // namespace laconic::schedule::pairwise
