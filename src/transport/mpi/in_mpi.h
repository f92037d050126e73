// Calls in which MPI may carry on what the program has begun.
#pragma once

#include <utility>

#include "core/float_environment.h"

namespace laconic {

/// Runs one: sums may be among what the program has begun.
template <typename Work>
int in_mpi(Work&& work) {
  // For the flags alone it is not worth it: looking for a message takes less time.
  if (!FloatEnvironment::is_in_the_way()) return work();
  return FloatEnvironment::as_the_program(std::forward<Work>(work));
}

}  // namespace laconic
