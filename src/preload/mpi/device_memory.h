// Whether the program's memory is that of a GPU, which an MPI that knows of GPUs takes, and the host cannot touch.
#pragma once

#include <cstdint>

namespace laconic::preload {

/// Of NVIDIA's GPUs (CUDA's driver says it), AMD's (ROCm's runtime), and what the kernel cannot read in a process that
/// has Level Zero, as Intel's. No for what the host can use as well: pinned and managed memory. Asks those of them that
/// the process has loaded by now. Thread safe.
bool is_device_memory(std::uintptr_t at);

}  // namespace laconic::preload
