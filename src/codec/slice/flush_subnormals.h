// For the vector kernels of x86 processors.
#pragma once

#include <immintrin.h>

namespace laconic::slice {

/// Subnormal inputs would make every multiplication take a hundred cycles. For as long as this lives they are taken for
/// 0, and so are results. That changes no decision: steps, bounds and products are normal numbers (make_grid(), and
/// frame::check() of others' frames), and a subnormal is 0 on every grid.
class FlushSubnormals {
 public:
  FlushSubnormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
  ~FlushSubnormals() { _mm_setcsr(saved_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned saved_;
};

}  // namespace laconic::slice
