#include "gpu/kernels.cuh"

namespace laconic::gpu {

const KernelSet& kernels_f64_wide() {
  static const KernelSet k = on_device::make_kernel_set<on_device::F64, std::int64_t>();
  return k;
}

}  // namespace laconic::gpu
