#include "collective/alltoall.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "collective/block_counts.h"
#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/pairs.h"
#include "collective/plain_way.h"
#include "schedule/pairwise.h"

namespace laconic {
namespace {

using Counts = std::vector<std::size_t>;

/// Moves the blocks. `largest`: of all blocks of all ranks; where others' pass this rank, all are as long.
std::optional<Failure> move(const std::vector<ConstArray>& parts, const std::vector<MutArray>& places,
                            std::size_t largest, schedule::Program program, const Agreement& agreed, Communicator& comm,
                            Call& call) {
  const DType dtype = parts[0].dtype;
  const Budget budget = call.decide_movement(dtype, agreed);
  const auto narrowed = schedule::narrow(std::move(program));
  Pairs pairs = pairs_of(narrowed, parts, places, largest);
  const auto kernel =
      comm.memory().movement(std::move(pairs.operands), std::move(pairs.results), budget, call.options().threads);
  const Layout layout(std::move(pairs.counts), call.segment_values(agreed, dtype, {largest}));
  return Pipeline(comm, narrowed.program, layout, *kernel, call.report()).run();
}

/// What a result is verified with.
void exact_slab(const Slab& s, Communicator& comm, const Options& lossless) {
  alltoallv(s.send, s.send_counts, s.recv, s.recv_counts, comm, lossless);
}

/// `send`, or a copy where it lies in the place of the result, of its parts one after the other: MPI has it either way,
/// but alike on all ranks.
class Aside {
 public:
  Aside(std::span<const ConstArray> parts, ConstArray send, ConstArray recv, Memory& memory) : send_(send) {
    if (send.data != recv.data) return;
    send_.count = 0;
    for (const ConstArray& part : parts) send_.count += part.count;
    copy_ = memory.array_room(send_.bytes());
    send_.data = copy_.get();
    std::size_t at = 0;
    for (const ConstArray& part : parts) {
      if (part.count != 0) memory.copy(copy_.get() + at, part.data, part.bytes());
      at += part.bytes();
    }
  }
  [[nodiscard]] ConstArray get() const { return send_; }
  [[nodiscard]] bool is_copy() const { return copy_ != nullptr; }

 private:
  ConstArray send_;
  Room copy_;
};

}  // namespace

// In place, what arrives from a peer takes the place of what goes there: it must have been encoded by then, which the
// schedule that meets one peer at a time sees to.
const Report& alltoall(const ConstArray& send, const MutArray& recv, Communicator& comm, const Options& options) {
  const auto n = static_cast<std::size_t>(comm.size());
  const auto plainly = [&](PlainCollectives& library) {
    library.alltoall(Aside(std::span(&send, 1), send, recv, comm.memory()).get(), {true, {}}, recv, {true, {}});
  };
  const bool sound = send.count == recv.count && send.count % n == 0 && are_sound(send, recv, recv.data);
  const CallShape shape{Collective::alltoall, send.dtype, Op::none, send.bytes()};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  Call call(Collective::alltoall, comm, options);
  call.check_arrays(send, recv, recv.data);
  call.check_bound(send.dtype);
  call.check([&] {
    if (send.count == recv.count && send.count % n == 0) return;
    throw Error(Code::invalid_argument, "send has " + std::to_string(send.count) + " elements, recv has " +
                                            std::to_string(recv.count) + "; alltoall wants the same multiple of " +
                                            std::to_string(n));
  });
  call.proposal().in_place = send.data == recv.data;
  PlainWay plain(call, comm, {.bytes = send.bytes(), .elements = send.count}, plainly);
  if (const Report* done = plain.at_once()) return *done;
  call.scan_operand(send);
  plain.propose(send);
  const Agreement agreed = call.agree(CountRule::equal);

  const std::size_t block = send.count / n;
  const auto parts = split(send, Counts(n, block));
  const auto places = split(recv, Counts(n, block));
  call.verify(agreed, {parts, places, block}, exact_slab);
  if (const Report* done = plain.if_cheaper(agreed)) return *done;
  auto program = agreed.in_place ? schedule::pairwise::exchange(comm.size(), comm.rank())
                                 : choose_alltoall(comm.size(), comm.rank(), block * size_of(send.dtype));
  return call.finish(move(parts, places, block, std::move(program), agreed, comm, call));
}

const Report& alltoallv(const ConstArray& send, const Parts& out, const MutArray& recv, const Parts& in,
                        Communicator& comm, const Options& options) {
  const auto me = static_cast<std::size_t>(comm.rank());
  const auto send_counts = out.counts;
  const auto recv_counts = in.counts;
  const std::size_t own = me < send_counts.size() ? send_counts[me] : 0;
  const auto by_library = [&](PlainCollectives& library) {
    library.alltoall(send, {false, send_counts, out.displs}, recv, {false, recv_counts, in.displs});
  };
  const bool sound = are_sound(send, recv, nullptr) && elements_in_order(out, send, own, comm) &&
                     elements_in_order(in, recv, own, comm);
  const CallShape shape{Collective::alltoall, send.dtype, Op::none, send.bytes(), true, false};
  if (by_shortcut(sound, shape, comm, options, by_library)) return comm.last();
  Call call(Collective::alltoall, comm, options);
  call.check_arrays(send, recv, send.data);
  call.check_bound(send.dtype);
  call.check([&] {
    const bool alike = std::ranges::equal(send_counts, recv_counts) && std::ranges::equal(out.displs, in.displs);
    if (send.data != recv.data || send.count == 0 || alike) return;
    throw Error(Code::invalid_argument, "in place, counts and displs of send and recv must be the same");
  });
  call.check([&] {
    if (me >= send_counts.size() || me >= recv_counts.size() || send_counts[me] == recv_counts[me]) return;
    const std::string entry = " counts[" + std::to_string(me) + "] is ";
    throw Error(Code::invalid_argument, "send" + entry + std::to_string(send_counts[me]) + ", recv" + entry +
                                            std::to_string(recv_counts[me]) + ": what a rank sends itself it receives");
  });
  call.check_parts(out, send.count, own, "send ");
  call.check_parts(in, recv.count, own, "recv ");
  std::vector<ConstArray> parts;
  std::vector<MutArray> places;
  call.check([&] {
    parts = split(send, send_counts, out.displs);
    places = split(recv, recv_counts, in.displs);
  });
  call.check_apart(send.data == recv.data ? std::vector<ConstArray>{} : parts, places);
  call.proposal().in_place = send.data == recv.data;
  const auto plainly = [&](PlainCollectives& library) {
    const Aside sent(parts, send, recv, comm.memory());
    const auto displs = sent.is_copy() ? std::span<const std::size_t>{} : out.displs;
    library.alltoall(sent.get(), {false, send_counts, displs}, recv, {false, recv_counts, in.displs});
  };
  PlainWay plain(call, comm, {.bytes = send.bytes(), .irregular = true, .known = false}, plainly);
  if (const Report* done = plain.at_once()) return *done;
  call.scan_operand(parts);
  plain.propose(out.displs.empty() ? send : longest_of(parts, {nullptr, 0, send.dtype}));
  const Agreement agreed = call.agree(CountRule::any);

  const std::size_t largest = largest_block(comm, send_counts, recv_counts, call.report());
  call.verify(agreed, {parts, places, largest}, exact_slab);
  if (const Report* done = plain.if_cheaper(agreed)) return *done;
  auto program = agreed.in_place ? schedule::pairwise::exchange(comm.size(), comm.rank())
                                 : schedule::pairwise::alltoall(comm.size(), comm.rank());
  return call.finish(move(parts, places, largest, std::move(program), agreed, comm, call));
}

}  // namespace laconic
