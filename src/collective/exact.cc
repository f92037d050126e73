#include "collective/exact.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "collective/exact_sum.h"
#include "collective/movement.h"
#include "collective/pairs.h"
#include "collective/pool.h"
#include "frame/frame.h"
#include "schedule/pairwise.h"

namespace laconic {
namespace {

// A block goes through in slabs, so that the scratch stays small however many ranks there are: a quarter of the array,
// or so many elements where that is more. Ranks wait for each other after each.
constexpr std::size_t least_scratch = std::size_t{1} << 20, most_of_a_slab = std::size_t{1} << 20;

/// Elements of a slab where room for so many is needed, of an array of so many elements: whole chunks. The same on all
/// ranks.
std::size_t slab_values(std::size_t slabs, std::size_t elements) {
  const std::size_t values = std::min(std::max(least_scratch, elements / 4) / slabs, most_of_a_slab);
  return std::max<std::size_t>(values / frame::chunk_values, 1) * frame::chunk_values;
}

/// Elements [first, first + slab) of a block, as far as there are any.
ConstArray slab_of(ConstArray block, std::size_t first, std::size_t slab) {
  if (first >= block.count) return {nullptr, 0, block.dtype};
  return slice_of(block, first, std::min(slab, block.count - first));
}

std::size_t longest_of(const std::vector<ConstArray>& blocks) {
  std::size_t longest = 0;
  for (const ConstArray& block : blocks) longest = std::max(longest, block.count);
  return longest;
}

std::size_t elements_of(const std::vector<ConstArray>& blocks) {
  std::size_t sum = 0;
  for (const ConstArray& block : blocks) sum += block.count;
  return sum;
}

/// Room for one slab of this rank's block for each of so many.
class Slabs {
 public:
  Slabs(std::size_t ranks, std::size_t slab, std::size_t block, DType dtype, BufferPool& pool)
      : bytes_(std::min(slab, block) * size_of(dtype)),
        dtype_(dtype),
        room_(std::make_unique_for_overwrite<std::uint8_t[]>(bytes_ * ranks)) {
    pool.hold_beside(bytes_ * ranks);
  }
  [[nodiscard]] MutArray of(std::size_t k, std::size_t count) const {
    return {room_.get() + k * bytes_, count, dtype_};
  }

 private:
  std::size_t bytes_;
  DType dtype_;
  std::unique_ptr<std::uint8_t[]> room_;
};

/// Lossless exchanges in which every rank has something for every rank.
class Exchange {
 public:
  Exchange(DType dtype, std::size_t segment_values, int threads, Communicator& comm, Report& report)
      : grid_(make_grid(dtype, 0, 0)),
        segment_values_(segment_values),
        threads_(threads),
        comm_(comm),
        report_(report),
        program_(schedule::narrow(schedule::pairwise::alltoall(comm.size(), comm.rank()))) {}

  /// out[to] goes, in[from] comes. What is a rank's own stays where it is. Keeps in mind what went wrong before.
  void run(std::vector<ConstArray> out, std::vector<MutArray> in) {
    const auto me = static_cast<std::size_t>(comm_.rank());
    out[me] = in[me] = {nullptr, 0, grid_.dtype};
    Pairs pairs = pairs_of(program_, out, in, 0);
    MovementKernel kernel(std::move(pairs.operands), std::move(pairs.results), grid_, threads_);
    const Layout layout(std::move(pairs.counts), segment_values_);
    failure_ = Pipeline(comm_, program_.program, layout, kernel, report_).run(failure_);
  }

  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }

 private:
  Grid grid_;
  std::size_t segment_values_;
  int threads_;
  Communicator& comm_;
  Report& report_;
  schedule::Narrowed program_;
  std::optional<Failure> failure_;
};

/// Brings the slab at `first` of this rank's block together: what each rank has of it. `slabs`: for all but this one.
std::vector<ConstArray> collect(const std::vector<ConstArray>& operands, std::size_t first, std::size_t slab,
                                const Slabs& slabs, std::size_t me, Exchange& exchange) {
  const std::size_t n = operands.size();
  const ConstArray own = slab_of(operands[me], first, slab);
  std::vector<ConstArray> out(n), summands(n, own);
  std::vector<MutArray> in(n);
  for (std::size_t r = 0; r < n; ++r) {
    if (r == me) continue;
    out[r] = slab_of(operands[r], first, slab);
    summands[r] = in[r] = slabs.of(r < me ? r : r - 1, own.count);
  }
  exchange.run(std::move(out), std::move(in));
  return summands;
}

}  // namespace

std::optional<Failure> exact_reduce_scatter(const std::vector<ConstArray>& operands, MutArray result, Op op,
                                            std::size_t segment_values, int threads, Communicator& comm,
                                            Report& report) {
  const auto me = static_cast<std::size_t>(comm.rank());
  const std::size_t n = operands.size(), slab = slab_values(n, elements_of(operands));
  const Slabs slabs(n - 1, slab, result.count, result.dtype, comm.pool());
  Exchange exchange(result.dtype, segment_values, threads, comm, report);
  for (std::size_t first = 0; first < longest_of(operands); first += slab) {
    const auto summands = collect(operands, first, slab, slabs, me, exchange);
    if (exchange.failure() || summands[me].count == 0) continue;
    const Timed clock(report.stats.compute_seconds);
    sum_exactly(summands, slice_of(result, first, summands[me].count), op);
  }
  return exchange.failure();
}

// A slab of recv is written when all of send that lies there has gone.
std::optional<Failure> exact_scan(ConstArray send, MutArray recv, Op op, bool exclusive, std::size_t segment_values,
                                  int threads, Communicator& comm, Report& report) {
  const auto n = static_cast<std::size_t>(comm.size());
  const auto me = static_cast<std::size_t>(comm.rank());
  const auto shares = even_shares(send.count, comm.size());
  const auto operands = split(send, shares);
  const auto results = split(recv, shares);
  const std::size_t nobody = exclusive ? 0 : n;  // the rank that gets nothing
  const std::size_t slab = slab_values(2 * n, send.count);
  const Slabs slabs(n - 1, slab, shares[me], send.dtype, comm.pool());
  const Slabs sums(n, slab, shares[me], send.dtype, comm.pool());
  Exchange exchange(send.dtype, segment_values, threads, comm, report);
  for (std::size_t first = 0; first < longest_of(operands); first += slab) {
    const auto summands = collect(operands, first, slab, slabs, me, exchange);
    const std::size_t own = summands[me].count;
    std::vector<ConstArray> out(n, ConstArray{nullptr, 0, send.dtype});
    std::vector<MutArray> in(n, MutArray{nullptr, 0, send.dtype});
    if (!exchange.failure()) {
      const Timed clock(report.stats.compute_seconds);
      for (std::size_t r = exclusive ? 1 : 0; r < n && own != 0; ++r) {
        const auto end = summands.begin() + static_cast<std::ptrdiff_t>(r + (exclusive ? 0 : 1));
        sum_exactly({summands.begin(), end}, sums.of(r, own), op);
      }
    }
    for (std::size_t r = 0; r < n; ++r) {
      if (r != nobody) out[r] = sums.of(r, own);
      if (me != nobody)
        in[r] = slice_of(results[r], std::min(first, shares[r]), slab_of(operands[r], first, slab).count);
    }
    exchange.run(out, in);
    if (me != nobody && own != 0 && !exchange.failure()) std::memcpy(in[me].data, out[me].data, out[me].bytes());
  }
  return exchange.failure();
}

}  // namespace laconic
