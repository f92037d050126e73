#include "collective/exact.h"

#include <algorithm>
#include <memory>

#include "collective/exact_sum.h"
#include "collective/movement.h"
#include "schedule/pairwise.h"

namespace laconic {
namespace {

// A block goes through in slabs of this many elements, so that the scratch stays small whatever the array's size.
constexpr std::size_t slab_values = std::size_t{1} << 20;

/// Elements [first, first + slab_values) of a block, as far as there are any.
ConstArray slab_of(ConstArray block, std::size_t first) {
  if (first >= block.count) return {nullptr, 0, block.dtype};
  return slice_of(block, first, std::min(slab_values, block.count - first));
}

}  // namespace

std::optional<Failure> exact_reduce_scatter(const std::vector<ConstArray>& operands, MutArray result, Op op,
                                            std::size_t segment_values, int threads, Communicator& comm,
                                            Report& report) {
  const auto n = static_cast<std::size_t>(comm.size());
  const auto me = static_cast<std::size_t>(comm.rank());
  const Grid grid = make_grid(result.dtype, 0, 0);
  schedule::Program program = schedule::pairwise::alltoall(comm.size(), comm.rank());
  program.result[me * n + me] = false;  // our own operand is summed where it lies

  std::size_t longest = 0;
  for (const ConstArray& block : operands) longest = std::max(longest, block.count);
  const std::size_t slab_bytes = std::min(slab_values, result.count) * size_of(result.dtype);
  const auto scratch = std::make_unique_for_overwrite<std::uint8_t[]>(slab_bytes * n);

  for (std::size_t first = 0; first < longest; first += slab_values) {
    std::vector<std::size_t> counts(n * n, 0);
    std::vector<ConstArray> outgoing(n * n, ConstArray{nullptr, 0, result.dtype});
    std::vector<MutArray> incoming(n * n, MutArray{nullptr, 0, result.dtype});
    std::vector<ConstArray> summands(n);
    for (std::size_t r = 0; r < n; ++r) {
      outgoing[me * n + r] = slab_of(operands[r], first);
      const std::size_t own = slab_of(operands[me], first).count;
      incoming[r * n + me] = {scratch.get() + r * slab_bytes, own, result.dtype};
      summands[r] = r == me ? slab_of(operands[me], first) : ConstArray(incoming[r * n + me]);
      for (std::size_t to = 0; to < n; ++to) counts[r * n + to] = slab_of(operands[to], first).count;
      counts[r * n + r] = 0;
    }
    MovementKernel kernel(outgoing, incoming, grid, threads);
    const Layout layout(counts, segment_values);
    if (auto failure = Pipeline(comm, program, layout, kernel, report).run()) return failure;
    if (summands[me].count == 0) continue;
    const Timed clock(report.stats.compute_seconds);
    sum_exactly(summands, slice_of(result, first, summands[me].count), op);
  }
  return std::nullopt;
}

}  // namespace laconic
