// One rank of laconic stack from loading the images to the report; rank 0 speaks.
#pragma once

#include "stack/measure.h"

namespace laconic::app {

/// Collective. Returns the exit code, the same on every rank.
int run_stack_rank(const StackOptions& options, bool json, bool quiet, Transport& transport,
                   const PlainAllreduce& plain);

}  // namespace laconic::app
