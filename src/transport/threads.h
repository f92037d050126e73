// Ranks in one process: each rank is a thread, messages are copies. For tests, and for programs without MPI.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transport/timeout.h"
#include "transport/transport.h"

namespace laconic {

/// A group of `ranks` transports that talk to each other in memory. Element r belongs to the thread that plays rank r.
/// They share their state and may outlive each other in any order. `nodes`: where the ranks say that they are, for
/// tests of what depends on that; empty: all on one node, which is true.
std::vector<std::unique_ptr<Transport>> make_threads_group(int ranks, double timeout_seconds = default_timeout(),
                                                           std::vector<int> nodes = {});

/// Plays `ranks` ranks: runs body on as many threads, each with its own Transport, and joins them. A body that throws
/// wakes all the others, whose calls then fail with Error(transport) naming it. Rethrows the error that came first.
void run_ranks(int ranks, const std::function<void(Transport&)>& body, double timeout_seconds = default_timeout(),
               std::vector<int> nodes = {});

}  // namespace laconic
