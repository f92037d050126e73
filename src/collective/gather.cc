#include "collective/gather.h"

#include <algorithm>
#include <vector>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/plain_way.h"

namespace laconic {

namespace {

/// Equal parts too have counts here.
const Report& gather_parts(const ConstArray& send, const MutArray& recv, const Parts& parts, int root,
                           Communicator& comm, const Options& options) {
  const auto counts = parts.counts;
  Call call(Collective::gather, comm, options);
  const auto me = static_cast<std::size_t>(comm.rank());
  const bool at_root = comm.rank() == root;
  if (at_root) {
    call.check_parts(parts, recv.count, send.count);
    call.check_arrays(send, recv, send.data);
    if (!call.proposal().refused) {
      const auto written = split(recv, counts, parts.displs);
      const bool in_place = send.data == written[me].data;
      call.check_apart(in_place ? std::vector<ConstArray>{} : std::vector<ConstArray>{send}, written);
    }
    call.proposal().parts = counts;
  } else {
    call.check_arrays(send, {nullptr, 0, send.dtype}, nullptr);
  }
  call.check_bound(send.dtype);
  call.check_root(root);
  const std::uint64_t elements = parts.equal ? send.count * static_cast<std::uint64_t>(comm.size()) : 0;
  const auto plainly = [&](PlainCollectives& library) { library.gather(send, recv, parts, root); };
  PlainWay plain(call, comm,
                 {.bytes = parts.equal ? elements * size_of(send.dtype) : send.bytes(),
                  .elements = elements,
                  .irregular = !parts.equal,
                  .known = parts.equal},
                 plainly);
  if (const Report* done = plain.at_once()) return *done;
  call.scan_operand(send);
  plain.propose(send);
  const Agreement agreed = call.agree(CountRule::shares);

  const std::vector<std::size_t> shares(agreed.counts.begin(), agreed.counts.end());
  std::vector<ConstArray> operands(shares.size(), ConstArray{nullptr, 0, send.dtype});
  std::vector<MutArray> results(shares.size(), MutArray{nullptr, 0, send.dtype});
  operands[me] = send;
  if (at_root) results = split(recv, shares, parts.displs);
  call.verify(agreed,
              {{send}, at_root ? results : std::vector<MutArray>{}, *std::max_element(shares.begin(), shares.end())},
              [root](const Slab& s, Communicator& c, const Options& lossless) {
                gather(s.send, s.recv, s.recv_counts, root, c, lossless);
              });

  if (const Report* done = plain.if_cheaper(agreed)) return *done;

  const Budget budget = call.decide_movement(send.dtype, agreed);
  const Layout layout(shares, call.segment_values(agreed, send.dtype, shares));
  const auto program = choose_gather(comm.size(), comm.rank(), root, layout.total() * size_of(send.dtype));
  const auto kernel = comm.memory().movement(operands, results, budget, options.threads);
  return call.finish(Pipeline(comm, program, layout, *kernel, call.report()).run());
}

}  // namespace

const Report& gather(const ConstArray& send, const MutArray& recv, const Parts& parts, int root, Communicator& comm,
                     const Options& options) {
  const Parts uneven{.counts = parts.counts, .displs = parts.displs};
  const auto plainly = [&](PlainCollectives& library) { library.gather(send, recv, uneven, root); };
  const bool sound = comm.rank() == root ? elements_of_sound(recv, parts, send, comm).has_value()
                                         : is_rank(root, comm) && are_sound(send, {nullptr, 0, send.dtype}, nullptr);
  const CallShape shape{Collective::gather, send.dtype, Op::none, send.bytes(), true, false};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  return gather_parts(send, recv, uneven, root, comm, options);
}

const Report& gather_equal(const ConstArray& send, const MutArray& recv, int root, Communicator& comm,
                           const Options& options) {
  const auto plainly = [&](PlainCollectives& library) { library.gather(send, recv, {true, {}}, root); };
  const auto ranks = static_cast<std::size_t>(comm.size());
  const bool sound = comm.rank() == root ? is_sound_whole(recv, send, comm)
                                         : is_rank(root, comm) && are_sound(send, {nullptr, 0, send.dtype}, nullptr);
  const CallShape shape{Collective::gather, send.dtype, Op::none, ranks * send.bytes()};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  const std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), send.count);
  return gather_parts(send, recv, {.equal = true, .counts = counts}, root, comm, options);
}

}  // namespace laconic
