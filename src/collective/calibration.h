// What the cost model must know of this machine: link and codec, measured once and kept in the user's cache folder.
#pragma once

#include <string>

#include "collective/cost.h"
#include "collective/memory.h"
#include "transport/transport.h"

namespace laconic {

/// Collective: the same on all ranks, the worst that any of them has. Measurements that every rank finds in its cache
/// (one file for each class of pairs of hosts, a day old at most) are used; otherwise all measure together, which takes
/// some hundredths of a second at 1 Gb/s, and keep what they find. A cache that cannot be read or written is done
/// without. `memory`: of this rank's arrays, which the codec is measured with. `folder`: empty for the user's cache
/// folder, "off" for none. Throws Error(transport).
Costs calibrate(Transport& transport, Memory& memory, const std::string& folder);

}  // namespace laconic
