// Star: the root deals with every other rank directly. No byte travels twice, and the root's link is busy all the time:
// for long data.
#pragma once

#include "schedule/schedule.h"

namespace laconic::schedule::star {

/// n blocks, the root brings all of them; rank r ends with block r.
Program scatter(int ranks, int rank, int root);

/// n blocks, rank r brings block r; the root ends with all of them.
Program gather(int ranks, int rank, int root);

}  // namespace laconic::schedule::star
