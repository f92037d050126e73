// What the survey's kernels are told, worked out on the host. Thread safe.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace laconic::gpu {

/// Which magnitudes count_outliers() counts, by their bits: those of a float without its sign are in the order of the
/// values, so integers tell on the device what comparing doubles tells on the host.
struct OutlierBits {
  std::uint64_t first = 0;                 ///< of the smallest outlier
  std::uint64_t size = 0;                  ///< outliers have bits below first + size
  std::uint64_t fill = ~std::uint64_t{0};  ///< of the fill value; no element's bits where the dtype has no such value
};

/// limit < |x| <= fill; |x| == fill. Floating-point dtypes.
OutlierBits outlier_bits(DType dtype, double limit, double fill);

}  // namespace laconic::gpu
