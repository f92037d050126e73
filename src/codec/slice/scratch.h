// Memory for what is too large for the stacks of other people's threads.
#pragma once

#include <cstddef>

namespace laconic::slice {

/// Memory of the thread's own, as it was left: at least so many bytes, aligned to 64. For one kernel at a time; it
/// stays until the thread ends. Throws std::bad_alloc.
void* sum_scratch(std::size_t bytes);

}  // namespace laconic::slice
