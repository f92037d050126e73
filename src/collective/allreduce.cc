#include "collective/allreduce.h"

#include <cstring>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/exact.h"
#include "collective/movement.h"
#include "collective/reduction.h"
#include "schedule/ring.h"

namespace laconic {
namespace {

std::optional<Failure> on_grid(ConstArray send, MutArray recv, const Layout& layout,
                               const std::vector<std::size_t>& shares, const Grid& grid, std::uint32_t divisor,
                               Communicator& comm, Call& call) {
  GridReductionKernel kernel(split(send, shares), split(recv, shares), grid, divisor, call.options().threads);
  const auto program = schedule::ring::allreduce(comm.size(), comm.rank());
  return Pipeline(comm, program, layout, kernel, call.report()).run();
}

std::optional<Failure> exactly(ConstArray send, MutArray recv, const Layout& layout,
                               const std::vector<std::size_t>& shares, Op op, Communicator& comm, Call& call) {
  const auto results = split(recv, shares);
  const auto me = static_cast<std::size_t>(comm.rank());
  const int threads = call.options().threads;
  auto failure =
      exact_reduce_scatter(split(send, shares), results[me], op, layout.segment_values(), threads, comm, call.report());
  // Everyone must know before the second half starts: who failed in the first would not take part as expected.
  confirm(comm, failure, true, call.report());
  std::vector<ConstArray> operands(results.size(), ConstArray{nullptr, 0, recv.dtype});
  operands[me] = results[me];
  MovementKernel kernel(operands, results, make_grid(recv.dtype, 0, 0), threads);
  auto program = schedule::ring::allgather(comm.size(), comm.rank());
  program.result[me] = false;  // is there already, and lossless
  return Pipeline(comm, program, layout, kernel, call.report()).run();
}

}  // namespace

Report allreduce(ConstArray send, MutArray recv, Op op, Communicator& comm, const Options& options) {
  Call call(Collective::allreduce, comm, options);
  call.check_arrays(send, recv, recv.data);
  call.check_op(op, send.dtype);
  call.check_bound(send.dtype);
  call.check([&] {
    if (send.count == recv.count) return;
    throw Error(Code::invalid_argument, "send has " + std::to_string(send.count) + " elements, recv has " +
                                            std::to_string(recv.count) + "; allreduce wants the same");
  });
  call.scan_operand(send);
  const Agreement agreed = call.agree(CountRule::equal);

  if (comm.size() == 1) {
    if (send.data != recv.data && send.count != 0) std::memcpy(recv.data, send.data, send.bytes());
    return call.finish();
  }
  const Budget budget = call.decide(op, send, agreed);
  const auto shares = even_shares(send.count, comm.size());
  const Layout layout(shares, call.segment_values(agreed, send.dtype, shares));
  if (budget.route == Route::on_grid) {
    const auto divisor = static_cast<std::uint32_t>(op == Op::average ? comm.size() : 1);
    return call.finish(on_grid(send, recv, layout, shares, budget.grid, divisor, comm, call));
  }
  return call.finish(exactly(send, recv, layout, shares, op, comm, call));
}

Report allreduce(ConstArray send, MutArray recv, Op op, Communicator& comm) {
  return allreduce(send, recv, op, comm, comm.defaults());
}

}  // namespace laconic
