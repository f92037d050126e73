// Chain: each rank passes what it has to the next one. With data cut in many segments all links are busy at the same
// time, and every rank sends the data once only: for long data.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::chain {

/// One block, the root brings it; every rank ends with it. From the root upwards.
Program bcast(int ranks, int rank, int root);

/// One block, every rank brings it; the root ends with the sum. From the rank before the root downwards.
Program reduce(int ranks, int rank, int root);

/// One block, every rank brings it; rank r ends with the sum over ranks 0 .. r.
Program scan(int ranks, int rank);

/// The same over ranks 0 .. r - 1. Rank 0 ends with nothing.
Program exscan(int ranks, int rank);

}  // namespace laconic::schedule::chain
