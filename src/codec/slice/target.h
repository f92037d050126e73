// Which SIMD target runs the kernels. All write the same bytes; the choice is only about speed.
#pragma once

#include <string_view>

namespace laconic::slice {

enum class Target {
  scalar,    ///< the reference
  portable,  ///< Highway's 128-bit vectors: NEON on Arm, SSSE3 on x86-64
  avx2,      ///< AVX2 + FMA + BMI2
  avx512,    ///< AVX-512 F, BW, DQ, VL, CD
  avx512x,   ///< and GFNI, VBMI, VBMI2, BITALG, VNNI (Ice Lake, Zen 4 and later)
};

/// "scalar", "portable", "avx2", "avx512", "avx512x".
std::string_view name_of(Target t);

/// Compiled in, and this processor has the instructions.
bool supported(Target t);

/// The fastest supported one.
Target best();

/// What is used: best(), or what LACONIC_SIMD names or force() set. Throws Error(unsupported) for an unsupported one.
Target current();
void force(Target t);

}  // namespace laconic::slice
