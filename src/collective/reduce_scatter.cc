#include "collective/reduce_scatter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collective/budget.h"
#include "collective/call.h"
#include "collective/choice.h"
#include "collective/exact.h"
#include "collective/plain_way.h"
#include "collective/pool.h"
#include "collective/reduction.h"
#include "schedule/direct.h"
#include "schedule/ring.h"

namespace laconic {
namespace {

/// Elements of the blocks of lower ranks.
std::size_t elements_before(std::span<const std::size_t> counts, int rank) {
  const auto lower = counts.first(std::min(counts.size(), static_cast<std::size_t>(rank)));
  return std::accumulate(lower.begin(), lower.end(), std::size_t{0});
}

/// Whether the result lies where this rank's own block of the operand does.
bool is_own_block(ConstArray recv, ConstArray send, std::size_t before, const Communicator& comm) {
  return comm.rank() != 0 && send.data != nullptr && send.dtype == recv.dtype && before + recv.count <= send.count &&
         slice_of(send, before, recv.count).data == recv.data;
}

/// The result in its place or, where it would be written over what is still to be read, beside it.
class Beside {
 public:
  Beside(MutArray recv, bool beside, Memory& memory) : recv_(recv), memory_(memory) {
    if (beside) room_ = memory.array_room(recv.bytes());
  }
  [[nodiscard]] MutArray get() const {
    return {room_ != nullptr ? static_cast<void*>(room_.get()) : recv_.data, recv_.count, recv_.dtype};
  }
  void finish() const {
    if (room_ != nullptr) memory_.copy(recv_.data, room_.get(), recv_.bytes());
  }

 private:
  MutArray recv_;
  Memory& memory_;
  Room room_;
};

/// Libraries do not agree about a result within the operand but not at its front. `own`: it is in the place of the
/// rank's own block.
bool plain_needs_room(ConstArray send, ConstArray recv, bool own, const PlainCollectives& library) {
  return recv.data != send.data && overlap(recv, send) && !(own && library.scatters_in_own_part());
}

/// Sums in steps have a budget for those of a ring. `share`: the most bytes of any rank.
Schedule schedule_for(ConstArray send, std::size_t share, const Agreement& agreed, const Budget& budget,
                      Communicator& comm, Call& call) {
  if (budget.route == Route::stepwise) return Schedule::ring;
  if (call.options().schedule != Schedule::automatic) return call.options().schedule;
  const schedule::Nodes nodes(comm.transport().nodes());
  return call.faster_schedule(send, budget, agreed, [&](std::optional<bool> direct_pays) {
    return choose_reduce_scatter(nodes, send.bytes(), share, direct_pays);
  });
}

// In place: the ring finishes with the rank's own block, segment by segment, so what a decoded segment is written over
// has been encoded before: other blocks in earlier steps, the own one no later than the segment itself. That holds for
// a result at the front of the operand, as MPI has it, and for one in the place of the rank's own block, as NCCL has
// it. The first slab of a direct exchange is written when others have yet to be encoded: only to the own block's place.
std::optional<Failure> on_grid(ConstArray send, MutArray recv, const std::vector<std::size_t>& shares, Op op,
                               const Agreement& agreed, const Budget& budget, Communicator& comm, Call& call) {
  const std::size_t longest = *std::ranges::max_element(shares) * size_of(send.dtype);
  const bool direct = schedule_for(send, longest, agreed, budget, comm, call) == Schedule::direct;
  const int slabs = direct ? choose_direct_slabs(longest, comm.size()) : 1;
  const auto blocks_each = static_cast<std::size_t>(slabs);
  std::vector<std::size_t> blocks;  // owner after owner
  for (const std::size_t share : shares) {
    const auto slices = even_shares(share, slabs);
    blocks.insert(blocks.end(), slices.begin(), slices.end());
  }
  const auto operands = split(send, blocks);
  const std::size_t mine = blocks_each * static_cast<std::size_t>(comm.rank());
  const Beside beside(recv, slabs > 1 && overlap(recv, send) && recv.data != operands[mine].data, comm.memory());
  if (beside.get().data != recv.data) comm.pool().hold_beside(recv.bytes());
  std::vector<MutArray> results(blocks.size(), MutArray{nullptr, 0, recv.dtype});
  std::ranges::copy(split(beside.get(), std::span(blocks).subspan(mine, blocks_each)),
                    results.begin() + static_cast<std::ptrdiff_t>(mine));
  const Layout layout(blocks, call.segment_values(agreed, send.dtype, blocks));
  const auto kernel = comm.memory().reduction(op, operands, std::move(results), budget, {comm.size(), comm.size()},
                                              call.options().threads);
  const auto program = direct ? schedule::direct::reduce_scatter(comm.size(), comm.rank(), slabs)
                              : schedule::ring::reduce_scatter(comm.size(), comm.rank());
  auto failure = Pipeline(comm, program, layout, *kernel, call.report()).run();
  if (!failure) beside.finish();
  return failure;
}

}  // namespace

const Report& reduce_scatter(const ConstArray& send, const MutArray& recv, std::span<const std::size_t> counts, Op op,
                             Communicator& comm, const Options& options) {
  const bool equal = std::ranges::all_of(counts, [&](std::size_t c) { return c == counts.front(); });
  const std::size_t before = elements_before(counts, comm.rank());
  Call call(Collective::reduce_scatter, comm, options);
  const bool own = is_own_block(recv, send, before, comm);
  call.check_arrays(send, recv, own ? send.data : recv.data);
  call.check_op(op, send.dtype);
  call.check_bound(send.dtype);
  call.check_parts({.counts = counts}, send.count, recv.count);
  call.proposal().parts = counts;
  const auto plainly = [&](PlainCollectives& library) {
    const Beside result(recv, plain_needs_room(send, recv, own, library), comm.memory());
    const Op done = plain_op(op, send.dtype, library);
    library.reduce_scatter(send, result.get(), {equal, counts}, done);
    result.finish();
    finish_plain_average(op, done, recv, comm.size(), comm.memory());
  };
  PlainWay plain(call, comm, {.bytes = send.bytes(), .elements = send.count}, plainly);
  if (const Report* done = plain.at_once()) return *done;
  call.scan_operand(send);
  plain.propose(send);
  const Agreement agreed = call.agree(CountRule::equal);
  const std::vector<std::size_t> shares(counts.begin(), counts.end());
  const std::size_t longest = *std::max_element(shares.begin(), shares.end());
  call.verify(agreed, {split(send, shares), {recv}, longest, send.data == recv.data},
              [op](const Slab& s, Communicator& c, const Options& lossless) {
                reduce_scatter(s.send, s.recv, s.send_counts, op, c, lossless);
              });

  if (comm.size() == 1) return call.finish_alone(send, recv);
  if (const Report* done = plain.if_cheaper(agreed)) return *done;
  const Budget budget = call.decide(op, send, agreed);
  if (!needs_exact_sum(op, budget)) {
    return call.finish(on_grid(send, recv, shares, op, agreed, budget, comm, call));
  }
  const Layout layout(shares, call.segment_values(agreed, send.dtype, shares));
  return call.finish(on_host(comm.memory(), send, recv, [&](ConstArray s, MutArray r) {
    return exact_reduce_scatter(split(s, shares), r, op, layout.segment_values(), options.threads, comm, call.report());
  }));
}

const Report& reduce_scatter_block(const ConstArray& send, const MutArray& recv, Op op, Communicator& comm,
                                   const Options& options) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const bool own = is_own_block(recv, send, recv.count * static_cast<std::size_t>(comm.rank()), comm);
  const auto plainly = [&](PlainCollectives& library) {
    const Beside result(recv, plain_needs_room(send, recv, own, library), comm.memory());
    const Op done = plain_op(op, send.dtype, library);
    library.reduce_scatter(send, result.get(), {true, {}}, done);
    result.finish();
    finish_plain_average(op, done, recv, comm.size(), comm.memory());
  };
  const bool sound = send.count == recv.count * ranks && are_sound(send, recv, own ? send.data : recv.data);
  const CallShape shape{Collective::reduce_scatter, send.dtype, op, send.bytes()};
  if (by_shortcut(sound, shape, comm, options, plainly)) return comm.last();
  const std::vector<std::size_t> counts(ranks, recv.count);
  return reduce_scatter(send, recv, counts, op, comm, options);
}

}  // namespace laconic
