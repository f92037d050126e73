// What the host's sides share: checked arguments, checked launches.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/beside_captures.h"
#include "core/error.h"
#include "gpu/cuda.h"
#include "gpu/stream.h"
#include "gpu/tile.h"

namespace laconic::gpu {

inline void require_aligned(const void* p, std::size_t to, const char* what) {
  if (p == nullptr || reinterpret_cast<std::uintptr_t>(p) % to != 0)
    throw Error(Code::invalid_argument,
                std::string(what) + ": must be aligned to " + std::to_string(to) + " bytes, and not null");
}

/// Thread blocks for n things of which each takes so many; at least one.
inline std::uint64_t tiles_of(std::uint64_t n, std::uint64_t each) { return n == 0 ? 1 : (n + each - 1) / each; }

/// Has the current device load a kernel.
inline void load(const void* kernel) {
  const BesideCaptures beside;
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
}

/// Lets a kernel have so much shared memory; false where the device has less for a block. More than 48 KiB must be
/// asked for, and each time: which device is current may change.
inline bool allow_shared(const void* kernel, std::uint32_t bytes) {
  const BesideCaptures beside;
  const auto e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (e == cudaErrorInvalidValue) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check_cuda(e, "cudaFuncSetAttribute");
  return true;
}

/// Into a graph, too: CUDA loads a kernel when it is first launched unless load() has been there, which a capture in
/// another mode than the relaxed one does not survive.
template <std::size_t n>
void launch(const void* kernel, dim3 blocks, dim3 threads, std::uint32_t shared_bytes, std::array<void*, n> arguments,
            Stream stream) {
  const BesideCaptures beside;
  check_cuda(cudaLaunchKernel(kernel, blocks, threads, arguments.data(), shared_bytes, stream), "cudaLaunchKernel");
}

/// A kernel of tiles.
template <std::size_t n>
void launch(const void* kernel, std::uint64_t blocks, std::uint32_t shared_bytes, std::array<void*, n> arguments,
            Stream stream) {
  if (blocks > 0x7FFFFFFFU) throw Error(Code::unsupported, "gpu: too many elements for one call");
  if (shared_bytes > 0 && !allow_shared(kernel, shared_bytes)) {  // see can_code()
    throw Error(Code::unsupported,
                "gpu: this device has less shared memory for a block than " + std::to_string(shared_bytes) + " bytes");
  }
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(on_device::tile_threads), shared_bytes, arguments, stream);
}

}  // namespace laconic::gpu
