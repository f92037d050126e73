#include "collective/allgather.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/plain_way.h"
#include "collective/pool.h"

namespace laconic {

namespace {

/// Where this rank's own part belongs, whose length is that of `own`.
const void* own_place(const MutArray& recv, const ConstArray& own, const Parts& parts, const Communicator& comm) {
  const auto me = static_cast<std::size_t>(comm.rank());
  if (parts.equal) return slice_of(recv, me * own.count, own.count).data;
  return split(recv, parts.counts, parts.displs)[me].data;
}

/// `send`, or a copy where it overlaps the result and is not in its place there: another rank's part could come before
/// it has gone.
class Apart {
 public:
  Apart(ConstArray send, const MutArray& recv, const void* place, Memory& memory) : send_(send) {
    if (send.data == place || !overlap(send, recv)) return;
    copy_ = memory.array_room(send.bytes());
    memory.copy(copy_.get(), send.data, send.bytes());
    send_.data = copy_.get();
  }
  [[nodiscard]] ConstArray get() const { return send_; }

 private:
  ConstArray send_;
  Room copy_;
};

/// Counts may be left out; they are found out then, and parts lie one after the other.
const Report& allgather_parts(ConstArray send, const MutArray& recv, const Parts& parts, Communicator& comm,
                              const Options& options) {
  Call call(Collective::allgather, comm, options);
  // Where the own part lies is known only when the counts are: overlap is looked at then.
  call.check_arrays(send, recv, send.data);
  call.check_bound(send.dtype);
  std::vector<std::size_t> counts(parts.counts.begin(), parts.counts.end());
  call.proposal().total = recv.count;
  if (!counts.empty()) {
    call.check_parts(parts, recv.count, send.count);
    if (!call.proposal().refused) call.check_apart({}, split(recv, counts, parts.displs));
    call.proposal().total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    call.proposal().parts = parts.counts;
  }
  const auto plainly = [&](PlainCollectives& library) {
    const void* const place = own_place(recv, send, {parts.equal, counts, parts.displs}, comm);
    const Apart sent(send, recv, place, comm.memory());
    library.allgather(sent.get(), recv, {parts.equal, counts, parts.displs});
  };
  const bool counts_are_known = parts.equal || !counts.empty();  // the library wants them
  const std::size_t total = call.proposal().total;
  PlainWay plain(
      call, comm,
      {.bytes = total * size_of(recv.dtype), .elements = total, .irregular = !parts.equal, .known = counts_are_known},
      plainly);
  if (const Report* done = counts_are_known ? plain.at_once() : nullptr) return *done;
  call.scan_operand(send);
  plain.propose(send);
  const Agreement agreed = call.agree(CountRule::gather);

  counts.assign(agreed.counts.begin(), agreed.counts.end());
  const auto results = split(recv, counts, parts.displs);
  const auto me = static_cast<std::size_t>(comm.rank());
  const bool in_place = send.data == results[me].data;
  call.verify(agreed, {{send}, results, *std::max_element(counts.begin(), counts.end())},
              [](const Slab& s, Communicator& c, const Options& lossless) {
                allgather_parts(s.send, s.recv, {}, c, lossless);
              });
  if (comm.size() == 1) {
    if (!in_place) comm.memory().copy(results[me].data, send.data, send.bytes());
    return call.finish();
  }
  if (const Report* done = plain.if_cheaper(agreed)) return *done;
  const Apart sent(send, recv, results[me].data, comm.memory());
  if (sent.get().data != send.data) comm.pool().hold_beside(send.bytes());
  send = sent.get();
  const Budget budget = call.decide_movement(send.dtype, agreed);
  std::vector<ConstArray> operands(results.size(), ConstArray{nullptr, 0, send.dtype});
  operands[me] = send;
  const auto kernel = comm.memory().movement(operands, results, budget, options.threads);
  const std::size_t bytes = call.proposal().total * size_of(recv.dtype);
  const schedule::Nodes nodes(comm.transport().nodes());
  auto program = budget.reopens ? choose_allgather(comm.size(), comm.rank(), bytes)
                                : choose_allgather(options.schedule, nodes, comm.rank(), bytes);
  if (budget.grid.lossless()) {  // what the others decode is what we have
    if (!in_place) comm.memory().copy(results[me].data, send.data, send.bytes());
    program.result[me] = false;
  }
  const Layout layout(counts, call.segment_values(agreed, send.dtype, counts));
  return call.finish(Pipeline(comm, program, layout, *kernel, call.report()).run());
}

}  // namespace

const Report& allgather(const ConstArray& send, const MutArray& recv, Communicator& comm, const Options& options) {
  return allgather_parts(send, recv, {}, comm, options);
}

const Report& allgather(const ConstArray& send, const MutArray& recv, const Parts& parts, Communicator& comm,
                        const Options& options) {
  const Parts uneven{.counts = parts.counts, .displs = parts.displs};
  const auto plainly = [&](PlainCollectives& library) { library.allgather(send, recv, uneven); };
  const auto elements = elements_of_sound(recv, parts, send, comm);
  const CallShape shape{Collective::allgather, send.dtype, Op::none, elements.value_or(0) * size_of(recv.dtype), true};
  if (by_shortcut(elements.has_value(), shape, comm, options, plainly)) return comm.last();
  return allgather_parts(send, recv, uneven, comm, options);
}

const Report& allgather_equal(const ConstArray& send, const MutArray& recv, Communicator& comm,
                              const Options& options) {
  const auto plainly = [&](PlainCollectives& library) { library.allgather(send, recv, {true, {}}); };
  const CallShape shape{Collective::allgather, send.dtype, Op::none, recv.bytes()};
  if (by_shortcut(is_sound_whole(recv, send, comm), shape, comm, options, plainly)) return comm.last();
  return allgather_parts(send, recv, {.equal = true}, comm, options);
}

const Report& allgather(const ConstArray& send, const MutArray& recv, Communicator& comm) {
  return allgather(send, recv, comm, comm.defaults());
}

}  // namespace laconic
