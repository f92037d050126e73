// Pairwise exchange: in every step a rank is busy with one peer each way, so that every link carries one message each
// way per step. n * n blocks: block from * n + to is what rank `from` has for rank `to`.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::pairwise {

/// Each rank ends with the blocks for it. In step s rank r sends to r + s and receives from r - s.
Program alltoall(int ranks, int rank);

/// The same, but sending to and receiving from the same peer in a step: what is received may replace in memory what was
/// sent. One step more: in step s ranks r and s - r meet (a rank that would meet itself rests).
Program exchange(int ranks, int rank);

}  // namespace laconic::schedule::pairwise
