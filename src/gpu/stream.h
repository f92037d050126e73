// A CUDA stream and an event, without CUDA's headers.
#pragma once

struct CUstream_st;  // what cudaStream_t points to
struct CUevent_st;   // and cudaEvent_t

namespace laconic::gpu {

using Stream = CUstream_st*;
using Event = CUevent_st*;

}  // namespace laconic::gpu
