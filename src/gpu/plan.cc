#include "gpu/plan.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace laconic::gpu {

SumPlan plan_sum(std::span<const Operand> of, bool local) {
  if (of.size() < 2 || of.size() > most_operands)
    throw Error(Code::invalid_argument,
                "operands: " + std::to_string(of.size()) + ", but a sum takes 2 to " + std::to_string(most_operands));
  if (local && of[0].operands != 1)
    throw Error(Code::invalid_argument, "operands: the local array counts as one operand");
  SumPlan plan;
  plan.operands = static_cast<int>(of.size());
  plan.local = local;
  Grid grid = of[0].grid;
  std::uint64_t arrays = 0;
  for (std::size_t j = 0; j < of.size(); ++j) {
    if (!of[j].grid.same_points(grid))
      throw Error(Code::mismatch, "operands: the grid of operand " + std::to_string(j) + " has other points");
    if (of[j].operands == 0) throw Error(Code::invalid_argument, "operands: a stream of no arrays");
    grid.qbits = std::max(grid.qbits, of[j].grid.qbits);
    grid.bound = std::max(grid.bound, of[j].grid.bound);
    arrays += of[j].operands;
    if (grid.lossless() || !sum_fits(grid, arrays))
      throw Error(Code::unsupported, "operands: the sum of " + std::to_string(arrays) +
                                         " arrays could leave the grid's integers, or the grid is lossless");
    plan.operand[j] = slice::params_for(of[j].grid, of[j].operands);
    plan.result = slice::params_for(grid, static_cast<std::uint32_t>(arrays));
    if (plan.result.wide) plan.wide_partials |= 1U << j;
  }
  return plan;
}

}  // namespace laconic::gpu
