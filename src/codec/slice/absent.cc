#include "codec/slice/kernel_sets.h"
namespace laconic::slice {
const Kernels* portable_kernels() { return nullptr; }
}  // namespace laconic::slice
