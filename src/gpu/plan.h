// What a sum of streams on the device is, worked out on the host before anything is launched. Thread safe.
#pragma once

#include <cstdint>
#include <span>

#include "codec/slice/kernels.h"

namespace laconic::gpu {

/// Streams that one call can add, a local array among them.
inline constexpr int most_operands = 8;

/// What an operand of a sum is announced to be.
struct Operand {
  Grid grid;
  std::uint32_t operands = 1;  ///< arrays that were summed into it
};

/// What is added, the same for all chunks. Plain data, passed to kernels by value.
struct SumPlan {
  int operands = 0;                      ///< arrays and streams
  bool local = false;                    ///< the first is an array of elements
  slice::Params result;                  ///< of the sum
  slice::Params operand[most_operands];  ///< of each
  std::uint32_t wide_partials = 0;       ///< bit j: the sum of operands 0..j has integers of 64 bits
};

/// The plan of ((of[0] + of[1]) + of[2]) + ... `local`: of[0] is an array, quantised on its grid. Throws Error:
/// invalid_argument for fewer than 2 or more than most_operands operands, or a local one of several arrays; mismatch
/// for other dtypes or steps than the first; unsupported where the grid is lossless or could not hold the sum.
SumPlan plan_sum(std::span<const Operand> of, bool local);

}  // namespace laconic::gpu
