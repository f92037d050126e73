#include "gpu/kernels.cuh"

namespace laconic::gpu {

const KernelSet& kernels_f64() {
  static const KernelSet k = on_device::make_kernel_set<on_device::F64, std::int32_t>();
  return k;
}

}  // namespace laconic::gpu
