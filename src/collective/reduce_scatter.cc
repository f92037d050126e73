#include "collective/reduce_scatter.h"

#include <cstring>
#include <numeric>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/exact.h"
#include "collective/reduction.h"
#include "schedule/ring.h"

namespace laconic {
namespace {

void check_counts(ConstArray send, MutArray recv, std::span<const std::size_t> counts, const Communicator& comm) {
  if (counts.size() != static_cast<std::size_t>(comm.size())) {
    throw Error(Code::invalid_argument, "counts has " + std::to_string(counts.size()) +
                                            " entries, want one for each of " + std::to_string(comm.size()) + " ranks");
  }
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  if (total != send.count) {
    throw Error(Code::invalid_argument,
                "send has " + std::to_string(send.count) + " elements, counts add up to " + std::to_string(total));
  }
  const std::size_t own = counts[static_cast<std::size_t>(comm.rank())];
  if (own != recv.count) {
    throw Error(Code::invalid_argument, "recv has " + std::to_string(recv.count) + " elements, counts[" +
                                            std::to_string(comm.rank()) + "] is " + std::to_string(own));
  }
}

std::optional<Failure> on_grid(ConstArray send, MutArray recv, const std::vector<std::size_t>& shares,
                               const Layout& layout, const Grid& grid, std::uint32_t divisor, Communicator& comm,
                               Call& call) {
  std::vector<MutArray> results(shares.size(), MutArray{nullptr, 0, recv.dtype});
  results[static_cast<std::size_t>(comm.rank())] = recv;
  GridReductionKernel kernel(split(send, shares), results, grid, divisor, call.options().threads);
  const auto program = schedule::ring::reduce_scatter(comm.size(), comm.rank());
  return Pipeline(comm, program, layout, kernel, call.report()).run();
}

}  // namespace

// In place: the ring finishes with the rank's own block, segment by segment, so what a decoded segment is written over
// has been encoded before: other blocks in earlier steps, the own one no later than the segment itself.
Report reduce_scatter(ConstArray send, MutArray recv, std::span<const std::size_t> counts, Op op, Communicator& comm,
                      const Options& options) {
  Call call(Collective::reduce_scatter, comm, options);
  call.check_arrays(send, recv, recv.data);
  call.check_op(op, send.dtype);
  call.check_bound(send.dtype);
  call.check([&] { check_counts(send, recv, counts, comm); });
  call.proposal().layout = digest({counts.begin(), counts.end()});
  call.scan_operand(send);
  const Agreement agreed = call.agree(CountRule::equal);

  if (comm.size() == 1) {
    if (send.data != recv.data && send.count != 0) std::memcpy(recv.data, send.data, send.bytes());
    return call.finish();
  }
  const Budget budget = call.decide(op, send, agreed);
  const std::vector<std::size_t> shares(counts.begin(), counts.end());
  const Layout layout(shares, call.segment_values(agreed, send.dtype, shares));
  if (budget.route == Route::on_grid) {
    const auto divisor = static_cast<std::uint32_t>(op == Op::average ? comm.size() : 1);
    return call.finish(on_grid(send, recv, shares, layout, budget.grid, divisor, comm, call));
  }
  return call.finish(exact_reduce_scatter(split(send, shares), recv, op, layout.segment_values(), options.threads, comm,
                                          call.report()));
}

Report reduce_scatter_block(ConstArray send, MutArray recv, Op op, Communicator& comm, const Options& options) {
  const std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), recv.count);
  return reduce_scatter(send, recv, counts, op, comm, options);
}

}  // namespace laconic
