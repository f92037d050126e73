#include "gpu/kernels.cuh"

namespace laconic::gpu {

const KernelSet& kernels_bf16() {
  static const KernelSet k = on_device::make_kernel_set<on_device::BF16, std::int32_t>();
  return k;
}

}  // namespace laconic::gpu
