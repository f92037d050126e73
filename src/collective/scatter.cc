#include "collective/scatter.h"

#include <algorithm>
#include <vector>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/plain_way.h"

namespace laconic {

namespace {

/// Equal parts too have counts here.
const Report& scatter_parts(const ConstArray& send, const Parts& parts, const MutArray& recv, int root,
                            Communicator& comm, const Options& options) {
  const auto counts = parts.counts;
  Call call(Collective::scatter, comm, options);
  const auto me = static_cast<std::size_t>(comm.rank());
  const bool at_root = comm.rank() == root;
  std::vector<ConstArray> sent;  // by the root
  if (at_root) {
    call.check_parts(parts, send.count, recv.count);
    call.check_arrays(send, recv, send.data);
    if (!call.proposal().refused) {
      sent = split(send, counts, parts.displs);
      auto others = sent;
      if (sent[me].data == recv.data) others.erase(others.begin() + comm.rank());
      call.check_apart(others, {recv});
    }
    call.proposal().parts = counts;
  } else {
    call.check_arrays({nullptr, 0, recv.dtype}, recv, nullptr);
  }
  call.check_bound(recv.dtype);
  call.check_root(root);
  call.proposal().count = recv.count;
  const std::uint64_t elements = parts.equal ? recv.count * static_cast<std::uint64_t>(comm.size()) : 0;
  const auto plainly = [&](PlainCollectives& library) { library.scatter(send, parts, recv, root); };
  PlainWay plain(call, comm,
                 {.bytes = parts.equal ? elements * size_of(recv.dtype) : recv.bytes(),
                  .elements = elements,
                  .irregular = !parts.equal,
                  .known = parts.equal},
                 plainly);
  if (const Report* done = plain.at_once()) return *done;
  call.scan_operand(sent);
  const bool gaps = !parts.displs.empty();
  const ConstArray none{nullptr, 0, recv.dtype};
  plain.propose(gaps ? longest_of(sent, none) : at_root ? send : none);
  const Agreement agreed = call.agree(CountRule::shares);

  const std::vector<std::size_t> shares(agreed.counts.begin(), agreed.counts.end());
  std::vector<ConstArray> operands(shares.size(), ConstArray{nullptr, 0, recv.dtype});
  std::vector<MutArray> results(shares.size(), MutArray{nullptr, 0, recv.dtype});
  results[me] = recv;
  if (at_root) operands = split(send, shares, parts.displs);
  call.verify(agreed,
              {at_root ? operands : std::vector<ConstArray>{}, {recv}, *std::max_element(shares.begin(), shares.end())},
              [root](const Slab& s, Communicator& c, const Options& lossless) {
                scatter(s.send, s.send_counts, s.recv, root, c, lossless);
              });

  if (const Report* done = plain.if_cheaper(agreed)) return *done;

  const Budget budget = call.decide_movement(recv.dtype, agreed);
  const Layout layout(shares, call.segment_values(agreed, recv.dtype, shares));
  const auto program = choose_scatter(comm.size(), comm.rank(), root, layout.total() * size_of(recv.dtype));
  const auto kernel = comm.memory().movement(operands, results, budget, options.threads);
  return call.finish(Pipeline(comm, program, layout, *kernel, call.report()).run());
}

}  // namespace

const Report& scatter(const ConstArray& send, const Parts& parts, const MutArray& recv, int root, Communicator& comm,
                      const Options& options) {
  const Parts uneven{.counts = parts.counts, .displs = parts.displs};
  const auto plainly = [&](PlainCollectives& library) { library.scatter(send, uneven, recv, root); };
  const bool sound = comm.rank() == root ? elements_of_sound(send, parts, recv, comm).has_value()
                                         : is_rank(root, comm) && are_sound(recv, recv, recv.data);
  const CallShape shape{Collective::scatter, recv.dtype, Op::none, recv.bytes(), true, false};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  return scatter_parts(send, uneven, recv, root, comm, options);
}

const Report& scatter_equal(const ConstArray& send, const MutArray& recv, int root, Communicator& comm,
                            const Options& options) {
  const auto plainly = [&](PlainCollectives& library) { library.scatter(send, {true, {}}, recv, root); };
  const auto ranks = static_cast<std::size_t>(comm.size());
  const bool sound =
      comm.rank() == root ? is_sound_whole(send, recv, comm) : is_rank(root, comm) && are_sound(recv, recv, recv.data);
  const CallShape shape{Collective::scatter, recv.dtype, Op::none, ranks * recv.bytes()};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  const std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), recv.count);
  return scatter_parts(send, {.equal = true, .counts = counts}, recv, root, comm, options);
}

}  // namespace laconic
