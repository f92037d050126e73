#include "collective/reduce.h"

#include <memory>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/exact.h"
#include "collective/movement.h"
#include "collective/plain_way.h"
#include "collective/pool.h"
#include "collective/reduction.h"

namespace laconic {
namespace {

std::optional<Failure> on_grid(ConstArray send, MutArray recv, Op op, int root, const Agreement& agreed,
                               const Budget& budget, Communicator& comm, Call& call) {
  const schedule::Nodes nodes(comm.transport().nodes());
  const bool two_levels =
      budget.route == Route::on_grid && choose_two_levels(call.options().schedule, nodes, send.bytes());
  const std::size_t segment_values = call.segment_values(agreed, send.dtype, {send.count});
  const auto program =
      two_levels ? choose_two_level_reduce(nodes, comm.rank(), root, send.bytes())
                 : choose_reduce(comm.size(), comm.rank(), root, Layout({send.count}, segment_values).segments(0));
  const auto shares = even_shares(send.count, program.blocks);
  const Layout layout(shares, call.segment_values(agreed, send.dtype, shares));
  const auto kernel = comm.memory().reduction(op, split(send, shares), split(recv, shares), budget,
                                              {comm.size(), comm.size()}, call.options().threads);
  return Pipeline(comm, program, layout, *kernel, call.report()).run();
}

/// Every rank sums its share, the root gathers them. `recv` is null elsewhere.
std::optional<Failure> exactly(ConstArray send, MutArray recv, Op op, int root, const Agreement& agreed,
                               Communicator& comm, Call& call) {
  const auto me = static_cast<std::size_t>(comm.rank());
  const bool at_root = comm.rank() == root;
  const auto shares = even_shares(send.count, comm.size());
  const auto results = split(recv, shares);
  const Layout layout(shares, call.segment_values(agreed, send.dtype, shares));
  std::unique_ptr<std::uint8_t[]> room;
  MutArray own = results[me];
  if (!at_root) {
    room = std::make_unique_for_overwrite<std::uint8_t[]>(own.bytes());
    comm.pool().hold_beside(own.bytes());
    own.data = room.get();
  }
  const int threads = call.options().threads;
  const auto failure =
      exact_reduce_scatter(split(send, shares), own, op, layout.segment_values(), threads, comm, call.report());
  std::vector<ConstArray> operands(shares.size(), ConstArray{nullptr, 0, send.dtype});
  operands[me] = own;
  MovementKernel kernel(operands, results, make_grid(send.dtype, 0, 0), threads);
  auto program = choose_gather(comm.size(), comm.rank(), root, send.bytes());
  if (at_root) program.result[me] = false;  // is there already
  return Pipeline(comm, program, layout, kernel, call.report()).run(failure);
}

}  // namespace

const Report& reduce(const ConstArray& send, MutArray recv, Op op, int root, Communicator& comm,
                     const Options& options) {
  // What recv is elsewhere does not matter: there is something that passes every check.
  if (comm.rank() != root) recv = {const_cast<void*>(send.data), send.count, send.dtype};
  const auto plainly = [&](PlainCollectives& library) {
    const MutArray wanted{comm.rank() == root ? recv.data : nullptr, recv.count, recv.dtype};
    const Op done = plain_op(op, send.dtype, library);
    library.reduce(send, wanted, done, root);
    if (comm.rank() == root) finish_plain_average(op, done, recv, comm.size(), comm.memory());
  };
  const bool sound = is_rank(root, comm) && send.count == recv.count && are_sound(send, recv, recv.data);
  const CallShape shape{Collective::reduce, send.dtype, op, send.bytes()};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  Call call(Collective::reduce, comm, options);
  call.check_root(root);
  call.check_reduction(send, recv, op);
  if (comm.rank() != root) recv.data = nullptr;
  PlainWay plain(call, comm, {.bytes = send.bytes()}, plainly);
  if (const Report* done = plain.at_once()) return *done;
  call.scan_operand(send);
  plain.propose(send);
  const Agreement agreed = call.agree(CountRule::equal);
  Verification::Blocks blocks{{send}, {}, send.count};
  if (comm.rank() == root) blocks.results = {recv};
  call.verify(agreed, blocks, [op, root](const Slab& s, Communicator& c, const Options& lossless) {
    reduce(s.send, s.recv, op, root, c, lossless);
  });

  if (comm.size() == 1) return call.finish_alone(send, recv);
  if (const Report* done = plain.if_cheaper(agreed)) return *done;
  const Budget budget = call.decide(op, send, agreed);
  if (!needs_exact_sum(op, budget)) return call.finish(on_grid(send, recv, op, root, agreed, budget, comm, call));
  return call.finish(on_host(comm.memory(), send, recv,
                             [&](ConstArray s, MutArray r) { return exactly(s, r, op, root, agreed, comm, call); }));
}

}  // namespace laconic
