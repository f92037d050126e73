#include "collective/bcast.h"

#include <cstring>
#include <vector>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/plain_way.h"

namespace laconic {

const Report& bcast(const MutArray& data, int root, Communicator& comm, const Options& options) {
  const auto plainly = [&](PlainCollectives& library) { library.bcast(data, root); };
  const bool sound = is_rank(root, comm) && are_sound(data, data, data.data);
  const CallShape shape{Collective::bcast, data.dtype, Op::none, data.bytes()};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  Call call(Collective::bcast, comm, options);
  call.check_arrays(data, data, data.data);
  call.check_bound(data.dtype);
  call.check_root(root);
  PlainWay plain(call, comm, {.bytes = data.bytes()}, plainly);
  if (const Report* done = plain.at_once()) return *done;
  if (comm.rank() == root) call.scan_operand(data);
  plain.propose(comm.rank() == root ? ConstArray(data) : ConstArray{nullptr, 0, data.dtype});
  const Agreement agreed = call.agree(CountRule::equal);
  const auto exactly = [root](const Slab& s, Communicator& c, const Options& lossless) {
    if (c.rank() == root && s.send.count != 0) std::memcpy(s.recv.data, s.send.data, s.send.bytes());
    bcast(s.recv, root, c, lossless);
  };
  std::vector<ConstArray> operands;
  if (comm.rank() == root) operands = {data};
  call.verify(agreed, {operands, {data}, data.count}, exactly);
  if (comm.size() == 1) return call.finish();
  if (const Report* done = plain.if_cheaper(agreed)) return *done;

  const Budget budget = call.decide_movement(data.dtype, agreed);
  const Layout layout({data.count}, call.segment_values(agreed, data.dtype, {data.count}));
  const schedule::Nodes nodes(comm.transport().nodes());
  auto program = !budget.reopens && choose_two_levels(options.schedule, nodes, data.bytes())
                     ? choose_bcast(nodes, comm.rank(), root, layout.segments(0))
                     : choose_bcast(comm.size(), comm.rank(), root, layout.segments(0));
  if (budget.grid.lossless() && comm.rank() == root) program.result[0] = false;  // what the others decode is there
  const auto kernel = comm.memory().movement({data}, {data}, budget, options.threads);
  return call.finish(Pipeline(comm, program, layout, *kernel, call.report()).run());
}

}  // namespace laconic
