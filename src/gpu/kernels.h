// The kernels as the launcher sees them: addresses and what they need, one set for each element type and integer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/plan.h"

namespace laconic::gpu {

struct KernelSet {
  const void* encode = nullptr;    ///< (Params, const void* x, Sink)
  const void* decode = nullptr;    ///< (Params, Source, u64 count, void* y, Report*)
  const void* sum = nullptr;       ///< (SumPlan, const void* x, Sources, ScratchPool, Sink)
  std::uint32_t shared_bytes = 0;  ///< of a thread block
  std::size_t (*scratch_bytes)(int operands) = nullptr;
};

const KernelSet& kernels_f32();
const KernelSet& kernels_f64();
const KernelSet& kernels_f64_wide();  ///< integers of 64 bits
const KernelSet& kernels_f16();
const KernelSet& kernels_bf16();

}  // namespace laconic::gpu
