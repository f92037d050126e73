// A CUDA stream, without CUDA's headers.
#pragma once

struct CUstream_st;  // what cudaStream_t points to

namespace laconic::gpu {

using Stream = CUstream_st*;

}  // namespace laconic::gpu
