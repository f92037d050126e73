// CUDA's errors as Laconic's.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "core/error.h"

namespace laconic::gpu {

inline void check_cuda(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // one that does not stay must not reach the caller's next call
  const bool is_absent = e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver ||
                         e == cudaErrorNoKernelImageForDevice || e == cudaErrorUnsupportedPtxVersion;
  throw Error(is_absent ? Code::unsupported : Code::internal, std::string(what) + ": " + cudaGetErrorString(e));
}

}  // namespace laconic::gpu
