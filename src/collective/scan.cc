#include "collective/scan.h"

#include <algorithm>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/exact.h"
#include "collective/plain_way.h"
#include "collective/reduction.h"
#include "schedule/chain.h"

namespace laconic {
namespace {

const Report& scan_either(Collective collective, const ConstArray& send, const MutArray& recv, Op op,
                          Communicator& comm, const Options& options) {
  const bool exclusive = collective == Collective::exscan;
  const int formed = comm.rank() + 1;  // passed on; an exclusive result lacks this rank's own
  const Summands summands{formed, exclusive ? std::max(comm.rank(), 1) : formed};
  const auto plainly = [&](PlainCollectives& library) {
    const Op done = plain_op(op, send.dtype, library);
    library.scan(send, recv, done, exclusive);
    if (!exclusive || comm.rank() != 0) finish_plain_average(op, done, recv, summands.averaged, comm.memory());
  };
  const bool sound = send.count == recv.count && are_sound(send, recv, recv.data);
  if (by_shortcut(sound, {collective, send.dtype, op, send.bytes()}, comm, options, plainly)) return comm.last();
  Call call(collective, comm, options);
  call.check_reduction(send, recv, op);
  PlainWay plain(call, comm, {.bytes = send.bytes()}, plainly);
  if (const Report* done = plain.at_once()) return *done;
  call.scan_operand(send);
  plain.propose(send);
  const Agreement agreed = call.agree(CountRule::equal);
  Verification::Blocks blocks{{send}, {recv}, send.count};
  if (exclusive && comm.rank() == 0) blocks.results.clear();
  call.verify(agreed, blocks, [=](const Slab& s, Communicator& c, const Options& lossless) {
    scan_either(collective, s.send, s.recv.count == s.send.count ? s.recv : s.send, op, c, lossless);
  });

  if (comm.size() == 1) return exclusive ? call.finish() : call.finish_alone(send, recv);
  if (const Report* done = plain.if_cheaper(agreed)) return *done;
  const Budget budget = call.decide(op, send, agreed);
  const Layout layout({send.count}, call.segment_values(agreed, send.dtype, {send.count}));
  if (needs_exact_sum(op, budget)) {
    return call.finish(on_host(comm.memory(), send, recv, [&](ConstArray s, MutArray r) {
      return exact_scan(s, r, op, exclusive, layout.segment_values(), options.threads, comm, call.report());
    }));
  }
  const auto program = exclusive ? schedule::chain::exscan(comm.size(), comm.rank())
                                 : choose_scan(comm.size(), comm.rank(), layout.segments(0));
  const auto kernel = comm.memory().reduction(op, {send}, {recv}, budget, summands, options.threads);
  return call.finish(Pipeline(comm, program, layout, *kernel, call.report()).run());
}

}  // namespace

const Report& scan(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm, const Options& options) {
  return scan_either(Collective::scan, send, recv, op, comm, options);
}

const Report& exscan(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm, const Options& options) {
  return scan_either(Collective::exscan, send, recv, op, comm, options);
}

}  // namespace laconic
