// The sets of kernels that exist. Each is null where it was not compiled in or the processor lacks its instructions.
#pragma once

#include "codec/slice/kernels.h"

namespace laconic::slice {

const Kernels* portable_kernels();
const Kernels* avx2_kernels();
const Kernels* avx512_kernels();
const Kernels* avx512x_kernels();

/// Those of target current().
const Kernels& kernels();

}  // namespace laconic::slice
