#include "collective/allreduce.h"

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/exact.h"
#include "collective/movement.h"
#include "collective/plain_way.h"
#include "collective/reduction.h"
#include "schedule/direct.h"
#include "schedule/doubling.h"
#include "schedule/halving.h"
#include "schedule/ring.h"
#include "schedule/two_level.h"

namespace laconic {
namespace {

/// The budget of sums in steps counts on a ring where nobody chose, and has no use for plain elements.
Schedule schedule_for(ConstArray send, const Agreement& agreed, const Budget& budget, const schedule::Nodes& nodes,
                      Call& call) {
  const Schedule wish = call.options().schedule;
  if (budget.route == Route::stepwise) {
    return wish == Schedule::automatic || wish == Schedule::two_level ? Schedule::ring : wish;
  }
  if (wish != Schedule::automatic) return wish;
  return call.faster_schedule(send, budget, agreed, [&](std::optional<bool> direct_pays) {
    return choose_allreduce(nodes, send.bytes(), direct_pays);
  });
}

/// One block where everything goes in every step, else at least one for each rank.
schedule::Program program_for(Schedule schedule, const schedule::Nodes& nodes, int rank, std::size_t bytes) {
  if (schedule == Schedule::recursive_doubling) return schedule::doubling::allreduce(nodes.ranks(), rank);
  if (schedule == Schedule::rabenseifner) return schedule::halving::allreduce(nodes.ranks(), rank);
  if (schedule == Schedule::ring) return schedule::ring::allreduce(nodes.ranks(), rank);
  if (schedule == Schedule::direct) {
    const int slabs = choose_direct_slabs(bytes / static_cast<std::size_t>(nodes.ranks()), nodes.ranks());
    return schedule::direct::allreduce(nodes.ranks(), rank, slabs);
  }
  const int slabs = choose_slabs(bytes, nodes.most() * nodes.count());
  return schedule::two_level::allreduce(nodes, rank, slabs, schedule::ring::allreduce);
}

std::optional<Failure> on_grid(ConstArray send, MutArray recv, Op op, const Agreement& agreed, const Budget& budget,
                               Communicator& comm, Call& call) {
  const schedule::Nodes nodes(comm.transport().nodes());
  const Schedule schedule = schedule_for(send, agreed, budget, nodes, call);
  const auto program = program_for(schedule, nodes, comm.rank(), send.bytes());
  const auto shares = even_shares(send.count, program.blocks);
  // Slabs make blocks small, so that more of them are under way; that is no reason for smaller messages.
  const auto cut = schedule == Schedule::two_level ? even_shares(send.count, comm.size()) : shares;
  const Layout layout(shares, call.segment_values(agreed, send.dtype, cut));
  const auto kernel = comm.memory().reduction(op, split(send, shares), split(recv, shares), budget,
                                              {comm.size(), comm.size()}, call.options().threads);
  return Pipeline(comm, program, layout, *kernel, call.report()).run();
}

std::optional<Failure> exactly(ConstArray send, MutArray recv, const Agreement& agreed, Op op, Communicator& comm,
                               Call& call) {
  const auto shares = even_shares(send.count, comm.size());
  const auto results = split(recv, shares);
  const auto me = static_cast<std::size_t>(comm.rank());
  const int threads = call.options().threads;
  const Layout layout(shares, call.segment_values(agreed, send.dtype, shares));
  const auto failure =
      exact_reduce_scatter(split(send, shares), results[me], op, layout.segment_values(), threads, comm, call.report());
  std::vector<ConstArray> operands(results.size(), ConstArray{nullptr, 0, recv.dtype});
  operands[me] = results[me];
  MovementKernel kernel(operands, results, make_grid(recv.dtype, 0, 0), threads);
  auto program = choose_allgather(comm.size(), comm.rank(), recv.bytes());
  program.result[me] = false;  // is there already, and lossless
  return Pipeline(comm, program, layout, kernel, call.report()).run(failure);
}

}  // namespace

const Report& allreduce(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm,
                        const Options& options) {
  const auto plainly = [&](PlainCollectives& library) {
    const Op done = plain_op(op, send.dtype, library);
    library.allreduce(send, recv, done);
    finish_plain_average(op, done, recv, comm.size(), comm.memory());
  };
  const bool sound = send.count == recv.count && are_sound(send, recv, recv.data);
  const CallShape shape{Collective::allreduce, send.dtype, op, send.bytes()};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  Call call(Collective::allreduce, comm, options);
  call.check_reduction(send, recv, op);
  PlainWay plain(call, comm, {.bytes = send.bytes()}, plainly);
  if (const Report* done = plain.at_once()) return *done;
  call.scan_operand(send);
  plain.propose(send);
  const Agreement agreed = call.agree(CountRule::equal);
  call.verify(agreed, {{send}, {recv}, send.count}, [op](const Slab& s, Communicator& c, const Options& lossless) {
    allreduce(s.send, s.recv, op, c, lossless);
  });

  if (comm.size() == 1) return call.finish_alone(send, recv);
  if (const Report* done = plain.if_cheaper(agreed)) return *done;
  const Budget budget = call.decide(op, send, agreed);
  if (!needs_exact_sum(op, budget)) return call.finish(on_grid(send, recv, op, agreed, budget, comm, call));
  return call.finish(on_host(comm.memory(), send, recv,
                             [&](ConstArray s, MutArray r) { return exactly(s, r, agreed, op, comm, call); }));
}

const Report& allreduce(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm) {
  return allreduce(send, recv, op, comm, comm.defaults());
}

}  // namespace laconic
