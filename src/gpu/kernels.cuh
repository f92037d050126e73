// The kernels: thread blocks of tile_warps warps that run the operations of operations.h. Included by one file for each
// element type, so that they compile side by side.
#pragma once

#include "gpu/kernels.h"
#include "gpu/operations.h"

namespace laconic::gpu::on_device {

/// Operands of a sum, passed by value.
struct Sources {
  Source of[most_operands];
};

/// Thread blocks that a multiprocessor is to hold: as many as shared memory admits on an H100, which leaves 80 registers
/// a thread. An A100 has room for two, and could have more registers, but both are compiled from one PTX; what encoding
/// and adding spill for it are one to three instructions in a hundred, by tools/ptx_count.
template <class R>
inline constexpr int resident_blocks = sizeof(R) == 4 ? 3 : 1;

/// Of all warps.
__device__ __forceinline__ std::uint8_t* regions() {
  extern __shared__ __align__(128) std::uint8_t shared_memory[];
  return shared_memory;
}

template <class R, class Op>
__device__ __forceinline__ void write_tile(const Op& op, const Sink& sink) {
  __shared__ TileShared shared;
  TileWriter<Op>(op, sink, blockIdx.x, shared, regions(), region_bytes<R>).run(Tile());
}

template <class T, class R>
__global__ void __launch_bounds__(tile_threads, resident_blocks<R>)
    encode_kernel(const __grid_constant__ Params p, const typename T::Bits* x, const __grid_constant__ Sink sink) {
  write_tile<R>(EncodeOp<T, R>{p, x, sink.count}, sink);
}

template <class T, class R>
__global__ void __launch_bounds__(tile_threads, resident_blocks<R>)
    decode_kernel(const __grid_constant__ Params p, const __grid_constant__ Source source, std::uint64_t count,
                  typename T::Bits* y, Report* report) {
  __shared__ TurnsShared shared;
  decode_tiles<T, R>(Tile(), p, source, count, y, shared, regions(), report);
}

template <class T, class R>
__global__ void __launch_bounds__(tile_threads, resident_blocks<R>)
    sum_kernel(const __grid_constant__ SumPlan plan, const typename T::Bits* x, const __grid_constant__ Sources sources,
               const __grid_constant__ ScratchPool pool, const __grid_constant__ Sink sink) {
  write_tile<R>(SumOp<T, R>{plan, x, sources.of, pool, sink.count}, sink);
}

template <class T, class R>
KernelSet make_kernel_set() {
  KernelSet k;
  k.encode = reinterpret_cast<const void*>(&encode_kernel<T, R>);
  k.decode = reinterpret_cast<const void*>(&decode_kernel<T, R>);
  k.sum = reinterpret_cast<const void*>(&sum_kernel<T, R>);
  k.shared_bytes = tile_warps * region_bytes<R>;
  k.scratch_bytes = [](int operands) { return SumScratch<R>::bytes(operands); };
  return k;
}

}  // namespace laconic::gpu::on_device
