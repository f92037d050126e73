#include "collective/reduce_scatter.h"

#include <algorithm>
#include <utility>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/exact.h"
#include "collective/plain_way.h"
#include "collective/reduction.h"
#include "schedule/ring.h"

namespace laconic {
namespace {

std::optional<Failure> on_grid(ConstArray send, MutArray recv, const std::vector<std::size_t>& shares,
                               const Layout& layout, Op op, const Budget& budget, Communicator& comm, Call& call) {
  std::vector<MutArray> results(shares.size(), MutArray{nullptr, 0, recv.dtype});
  results[static_cast<std::size_t>(comm.rank())] = recv;
  const auto kernel =
      comm.memory().reduction(op, split(send, shares), std::move(results), budget, comm.size(), call.options().threads);
  const auto program = schedule::ring::reduce_scatter(comm.size(), comm.rank());
  return Pipeline(comm, program, layout, *kernel, call.report()).run();
}

}  // namespace

// In place: the ring finishes with the rank's own block, segment by segment, so what a decoded segment is written over
// has been encoded before: other blocks in earlier steps, the own one no later than the segment itself.
Report reduce_scatter(ConstArray send, MutArray recv, std::span<const std::size_t> counts, Op op, Communicator& comm,
                      const Options& options) {
  const bool equal = std::ranges::all_of(counts, [&](std::size_t c) { return c == counts.front(); });
  Call call(Collective::reduce_scatter, comm, options);
  call.check_arrays(send, recv, recv.data);
  call.check_op(op, send.dtype);
  call.check_bound(send.dtype);
  call.check_parts({.counts = counts}, send.count, recv.count);
  call.proposal().layout = digest({counts.begin(), counts.end()});
  const auto plainly = [&](PlainCollectives& library) {
    library.reduce_scatter(send, recv, {equal, counts}, plain_op(op));
    finish_plain_average(op, recv, comm.size(), comm.memory());
  };
  PlainWay plain(call, comm, {.bytes = send.bytes(), .elements = send.count}, plainly);
  if (auto done = plain.at_once()) return *done;
  call.scan_operand(send);
  plain.propose(send);
  const Agreement agreed = call.agree(CountRule::equal);
  const std::vector<std::size_t> shares(counts.begin(), counts.end());
  const std::size_t longest = *std::max_element(shares.begin(), shares.end());
  call.verify(agreed, {split(send, shares), {recv}, longest},
              [op](const Slab& s, Communicator& c, const Options& lossless) {
                reduce_scatter(s.send, s.recv, s.send_counts, op, c, lossless);
              });

  if (comm.size() == 1) return call.finish_alone(send, recv);
  if (auto done = plain.if_cheaper(agreed)) return *done;
  const Budget budget = call.decide(op, send, agreed);
  const Layout layout(shares, call.segment_values(agreed, send.dtype, shares));
  if (!needs_exact_sum(op, budget)) {
    return call.finish(on_grid(send, recv, shares, layout, op, budget, comm, call));
  }
  return call.finish(on_host(comm.memory(), send, recv, [&](ConstArray s, MutArray r) {
    return exact_reduce_scatter(split(s, shares), r, op, layout.segment_values(), options.threads, comm, call.report());
  }));
}

Report reduce_scatter_block(ConstArray send, MutArray recv, Op op, Communicator& comm, const Options& options) {
  const auto plainly = [&](PlainCollectives& library) {
    library.reduce_scatter(send, recv, {true, {}}, plain_op(op));
    finish_plain_average(op, recv, comm.size(), comm.memory());
  };
  const bool sound =
      send.count == recv.count * static_cast<std::size_t>(comm.size()) && are_sound(send, recv, recv.data);
  const CallShape shape{Collective::reduce_scatter, send.dtype, op, send.bytes()};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  const std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), recv.count);
  return reduce_scatter(send, recv, counts, op, comm, options);
}

}  // namespace laconic
