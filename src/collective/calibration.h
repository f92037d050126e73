// What the cost model must know of this machine: link and codec, each measured once and kept (cost_cache.h).
//
// Collective: the same on all ranks, the worst that any of them has. A measurement that every rank finds in its cache
// is used; otherwise all measure together, and keep what they find. `memory`: of this rank's arrays. `folder`: as
// CostCache has it. Both throw Error(transport).
#pragma once

#include <string>

#include "collective/cost.h"
#include "collective/memory.h"
#include "transport/transport.h"

namespace laconic {

/// Kept for each class of pairs of nodes and description of the transport. Takes some hundredths of a second at 1 Gb/s.
Link calibrate_link(Transport& transport, Memory& memory, const std::string& folder);

/// Kept for each host and number of ranks there. Takes some milliseconds, so that each kind can wait until it is met.
CodecSpeed calibrate_codec(CodecKind kind, Transport& transport, Memory& memory, const std::string& folder);

}  // namespace laconic
