// Whether the program's memory is that of a GPU, which an MPI that knows of GPUs takes, and the host cannot touch.
#pragma once

#include <cstdint>

namespace laconic::preload {

/// Of CUDA's. No for what the host can use as well: pinned and managed memory. Asks CUDA's driver, if the process has
/// loaded it by now. Thread safe.
bool is_device_memory(std::uintptr_t at);

}  // namespace laconic::preload
