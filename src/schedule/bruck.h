// Bruck's algorithms: ceil(log2(n)) steps for any n, at distances 1, 2, 4, ...; for short data. (Bruck, Ho, Kipnis,
// Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport message-passing systems, 1997.)
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::bruck {

/// n blocks, rank r brings block r; every rank ends with all of them.
Program allgather(int ranks, int rank);

/// n * n blocks: block from * n + to is what rank `from` has for rank `to`. A block travels the distance to - from in
/// powers of two, through other ranks: fewer messages and more bytes than a pairwise exchange.
Program alltoall(int ranks, int rank);

}  // namespace laconic::schedule::bruck
