#include "preload/mpi/call.h"

#include <algorithm>
#include <vector>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/gather.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scatter.h"
#include "core/error.h"
#include "preload/mpi/array.h"
#include "preload/mpi/datatypes.h"
#include "preload/mpi/writable.h"
#include "transport/mpi/mpi.h"

namespace laconic::preload {
namespace {

// (In place and null are told apart by value: no MPI has MPI_IN_PLACE where a buffer could be.)
bool in_place(const Side& side) { return side.buffer == MPI_IN_PLACE; }

bool is_rooted(Collective c) {
  return c == Collective::reduce || c == Collective::bcast || c == Collective::scatter || c == Collective::gather;
}

/// The side that every rank has, in elements whose signature they share.
const Side& common_side(const Call& call, int rank) {
  switch (call.collective) {
    case Collective::gather:
      return rank == call.root && in_place(call.send) ? call.recv : call.send;
    case Collective::scatter:
      return rank == call.root && in_place(call.recv) ? call.send : call.recv;
    case Collective::reduce:
    case Collective::bcast:
      return call.send;
    default:
      return call.recv;
  }
}

/// Elements of all blocks; nothing if a count is negative, or places are missing.
std::optional<MPI_Count> elements_of(const Side& side, int size) {
  if (side.displacements.missing()) return std::nullopt;
  if (!side.counts.differ()) {
    if (side.counts[0] < 0) return std::nullopt;
    return side.counts[0] * (side.all ? size : 1);
  }
  MPI_Count sum = 0;
  for (int r = 0; r < size; ++r) {
    if (side.counts[r] < 0) return std::nullopt;
    sum += side.counts[r];
  }
  return sum;
}

/// Whether any of its elements begin at the address itself. (Blocks may be anywhere else.)
bool has_block_there(const Side& side, int size) {
  for (int r = 0; r < (side.all ? size : 1); ++r)
    if (side.counts[r] > 0 && (!side.displacements.differ() || side.displacements[r] == 0)) return true;
  return false;
}

/// Whether there is memory for what the side says it has. Derived types, and blocks, may hold absolute addresses.
bool has_memory(const Side& side, MPI_Count elements, int size) {
  if (elements == 0 || !info_of(side.type).dense) return true;
  return !in_place(side) && (side.buffer != nullptr || !has_block_there(side, size));
}

/// Whether MPI refuses it for where it is: in place where that means nothing, or where there is no memory. (Elements of
/// derived types may be anywhere.)
bool is_misplaced(const Side& side, int size) {
#ifdef OPEN_MPI
  if (in_place(side)) return true;
#else
  if (in_place(side)) return elements_of(side, size) != MPI_Count{0};
#endif
  return side.buffer == nullptr && info_of(side.type).dense && has_block_there(side, size);
}

/// Whether MPI lets the side have its type: one that has been committed. Open MPI does not look at those of some sides.
bool is_type(const Call& call, const Side& side) {
#ifdef OPEN_MPI
  if (&side == &call.recv && call.collective != Collective::alltoall) return side.type != MPI_DATATYPE_NULL;
#else
  static_cast<void>(call);
#endif
  return info_of(side.type).usable;
}

/// Elements that are understood, from memory that is there; or none at all.
bool is_sound(const Side& side, DType dtype, int size) {
  const auto elements = elements_of(side, size);
  if (!elements) return false;
  const TypeInfo& type = info_of(side.type);
  if (*elements == 0 || type.empty) return true;
  return type.base && *type.base == dtype && has_memory(side, *elements, size);
}

/// Blocks of one rank in an array of blocks of all.
Side own_block(const Side& side, int rank) {
  Side own = side;
  own.counts = side.counts[rank];
  own.displacements = {};
  own.all = false;
  return own;
}

/// What a call writes on this rank: of a reduce_scatter, whose counts are those of the operand, its own share.
Side written_side(const Call& call, int rank) {
  return call.collective == Collective::reduce_scatter && !in_place(call.send) ? own_block(call.recv, rank) : call.recv;
}

std::uint64_t bytes_of(const Side& side, int size) {
  return static_cast<std::uint64_t>(elements_of(side, size).value_or(0)) * bytes_in(side.type);
}

/// One call on this rank, as plain arrays.
class Maker {
 public:
  Maker(const Call& call, const Shape& shape, Communicator& comm, const Options& options)
      : call_(call), shape_(shape), comm_(comm), options_(options), rank_(comm.rank()), size_(comm.size()) {}

  Report run() {
    switch (call_.collective) {
      case Collective::allreduce:
        return allreduce();
      case Collective::reduce:
        return reduce();
      case Collective::reduce_scatter:
        return reduce_scatter();
      case Collective::bcast:
        return bcast();
      case Collective::scatter:
        return scatter();
      case Collective::gather:
        return gather();
      case Collective::alltoall:
        return alltoall();
      default:
        return allgather();
    }
  }

 private:
  [[nodiscard]] bool is_root() const { return rank_ == call_.root; }
  [[nodiscard]] PlainArray array(const Side& side) const { return {side, shape_.dtype, size_}; }
  [[nodiscard]] PlainArray loaded(const Side& side) const {
    PlainArray a = array(side);
    a.load();
    return a;
  }
  [[nodiscard]] ConstArray nothing() const { return {nullptr, 0, shape_.dtype}; }

  Report allreduce() {
    PlainArray recv = array(call_.recv);
    if (in_place(call_.send)) {
      recv.load();
      Report report = laconic::allreduce(recv.data(), recv.data(), shape_.op, comm_, options_);
      recv.store();
      return report;
    }
    const PlainArray send = loaded(call_.send);
    Report report = laconic::allreduce(send.data(), recv.data(), shape_.op, comm_, options_);
    recv.store();
    return report;
  }

  Report reduce() {
    if (!is_root()) {
      const PlainArray send = loaded(call_.send);
      return laconic::reduce(send.data(), {nullptr, send.data().count, shape_.dtype}, shape_.op, call_.root, comm_,
                             options_);
    }
    PlainArray recv = array(call_.recv);
    std::optional<PlainArray> send;
    if (in_place(call_.send)) {
      recv.load();
    } else {
      send.emplace(loaded(call_.send));
    }
    Report report =
        laconic::reduce(send ? send->data() : recv.data(), recv.data(), shape_.op, call_.root, comm_, options_);
    recv.store();
    return report;
  }

  Report reduce_scatter() {
    Side all = call_.recv;  // the shares of all ranks: the counts of the operand
    all.all = true;
    if (in_place(call_.send)) {
      PlainArray both = loaded(all);
      both.detach();  // what is not this rank's share must stay as it was
      const std::size_t own = both.counts()[static_cast<std::size_t>(rank_)];
      Report report = laconic::reduce_scatter(both.data(), {both.data().data, own, shape_.dtype}, both.counts(),
                                              shape_.op, comm_, options_);
      both.store_front(own);
      return report;
    }
    const std::vector<std::size_t> counts = counts_of(all);
    all.buffer = call_.send.buffer;
    const PlainArray send = loaded(all);
    const PlainArray recv = array(own_block(call_.recv, rank_));
    Report report = laconic::reduce_scatter(send.data(), recv.data(), counts, shape_.op, comm_, options_);
    recv.store();
    return report;
  }

  /// Within a bound the root keeps what the others get. But constant data may be broadcast, too.
  Report bcast() {
    PlainArray data = array(call_.send);
    if (!is_root()) {
      Report report = laconic::bcast(data.data(), call_.root, comm_, options_);
      data.store();
      return report;
    }
    const bool lossy = options_.bound.kind != BoundKind::lossless && is_float(shape_.dtype);
    if (data.direct() && lossy && !is_writable(call_.send))
      data.detach();
    else
      data.load();
    Report report = laconic::bcast(data.data(), call_.root, comm_, options_);
    const bool changed = lossy && report.operand_bound != 0;
    if (changed && !data.direct() && is_writable(call_.send)) data.store();
    return report;
  }

  Report allgather() {
    const PlainArray recv = array(call_.recv);
    std::optional<PlainArray> send;
    if (in_place(call_.send)) {
      recv.load(rank_);
    } else {
      send.emplace(loaded(call_.send));
    }
    const ConstArray own = send ? send->data() : recv.block(rank_);
    const Parts parts{.counts = recv.counts()};
    Report report = call_.recv.counts.differ() ? laconic::allgather(own, recv.data(), parts, comm_, options_)
                                               : allgather_equal(own, recv.data(), comm_, options_);
    recv.store();
    return report;
  }

  Report gather() {
    if (!is_root()) {
      const PlainArray send = loaded(call_.send);
      if (!call_.irregular) return gather_equal(send.data(), {nullptr, 0, shape_.dtype}, call_.root, comm_, options_);
      return laconic::gather(send.data(), {nullptr, 0, shape_.dtype}, Parts{}, call_.root, comm_, options_);
    }
    const PlainArray recv = array(call_.recv);
    std::optional<PlainArray> send;
    if (in_place(call_.send)) {
      recv.load(rank_);
    } else {
      send.emplace(loaded(call_.send));
    }
    const ConstArray own = send ? send->data() : recv.block(rank_);
    Report report = call_.irregular ? laconic::gather(own, recv.data(), recv.counts(), call_.root, comm_, options_)
                                    : gather_equal(own, recv.data(), call_.root, comm_, options_);
    recv.store();
    return report;
  }

  Report scatter() {
    if (!is_root()) {
      const PlainArray recv = array(call_.recv);
      Report report = call_.irregular ? laconic::scatter(nothing(), Parts{}, recv.data(), call_.root, comm_, options_)
                                      : scatter_equal(nothing(), recv.data(), call_.root, comm_, options_);
      recv.store();
      return report;
    }
    const PlainArray send = loaded(call_.send);
    std::optional<PlainArray> recv;
    if (!in_place(call_.recv)) recv.emplace(array(call_.recv));
    const MutArray own = recv ? recv->data() : send.block(rank_);  // its own part is not written to
    Report report = call_.irregular ? laconic::scatter(send.data(), send.counts(), own, call_.root, comm_, options_)
                                    : scatter_equal(send.data(), own, call_.root, comm_, options_);
    if (recv) recv->store();
    return report;
  }

  Report alltoall() {
    const PlainArray recv = array(call_.recv);
    std::optional<PlainArray> send;
    if (in_place(call_.send)) {
      recv.load();
    } else {
      send.emplace(loaded(call_.send));
    }
    const PlainArray& from = send ? *send : recv;
    Report report = call_.irregular
                        ? laconic::alltoallv(from.data(), from.counts(), recv.data(), recv.counts(), comm_, options_)
                        : laconic::alltoall(from.data(), recv.data(), comm_, options_);
    recv.store();
    return report;
  }

  [[nodiscard]] std::vector<std::size_t> counts_of(const Side& side) const {
    std::vector<std::size_t> counts(static_cast<std::size_t>(size_));
    for (int r = 0; r < size_; ++r)
      counts[static_cast<std::size_t>(r)] = static_cast<std::size_t>(side.counts[r]) * info_of(side.type).numbers;
    return counts;
  }

  const Call& call_;
  const Shape& shape_;
  Communicator& comm_;
  const Options& options_;
  int rank_, size_;
};

#ifndef OPEN_MPI
/// Whether MPICH looks for aliases: users can turn that off.
bool looks_for_aliases() {
  static const bool looks = [] {
    try {
      const OwnComm own(MPI_COMM_SELF);
      int x = 0;
      return PMPI_Allreduce(&x, &x, 1, MPI_INT, MPI_MIN, own.get()) != MPI_SUCCESS;
    } catch (const Error&) {  // there are too many communicators to ask over one
      return true;
    }
  }();
  return looks;
}
#endif

/// Sum, minimum or maximum of something that has one.
std::optional<Op> op_for(const Call& call, const TypeInfo& type) {
  const std::optional<Op> op = op_of(call.op);
  if (!op || !type.reducible || (is_extreme(*op) && type.numbers != 1)) return std::nullopt;  // 2: complex
  return op;
}

}  // namespace

Sides sides_of(const Call& call, int rank) {
  Sides sides;
  const bool root = rank == call.root;
  const auto consider = [&](const Side& side, bool used, bool may_be_in_place) {
    if (used && !(may_be_in_place && in_place(side))) sides.add(side);
  };
  const bool all = !is_rooted(call.collective), scatters = call.collective == Collective::scatter;
  const bool receives = call.collective != Collective::bcast && (all || root);
  consider(call.send, !scatters || root, receives && !scatters);
  consider(call.recv, scatters || receives, scatters && root);
  return sides;
}

int alias_error(const Call& call, int rank, int size) {
  // Different types at one address may well lie apart.
  if (sides_of(call, rank).size() != 2 || call.send.type != call.recv.type) return MPI_SUCCESS;
#ifdef OPEN_MPI
  static_cast<void>(size);
  const bool allreduces = call.collective == Collective::allreduce;
  if (!allreduces && call.collective != Collective::reduce) return MPI_SUCCESS;
  const bool twice = call.send.counts[0] > (allreduces ? 1 : 0) && call.send.buffer == call.recv.buffer;
  return !twice ? MPI_SUCCESS : allreduces ? MPI_ERR_BUFFER : MPI_ERR_ARG;
#else
  // Where elements have gaps, MPICH is wrong about the place of a rank's own.
  const auto own_place = [rank](const Side& side) {
    const MPI_Count block = side.displacements.differ() ? side.displacements[rank] : rank * side.counts[rank];
    const std::uint64_t offset = side.all ? static_cast<std::uint64_t>(block) * bytes_in(side.type) : 0;
    return reinterpret_cast<std::uintptr_t>(side.buffer) + offset;  // which may be no pointer
  };
  const bool parts = call.collective == Collective::allgather || call.collective == Collective::gather ||
                     call.collective == Collective::scatter;
  bool twice = parts ? own_place(call.send) == own_place(call.recv) : call.send.buffer == call.recv.buffer;
  if (call.collective == Collective::alltoall && call.irregular)  // whatever the counts are
    twice = twice && call.send.counts.array() == call.recv.counts.array();
  else if (call.collective == Collective::reduce_scatter)
    twice = twice && elements_of(call.send, size) != MPI_Count{0};
  else
    twice = twice && call.send.counts[rank] != 0 && call.recv.counts[rank] != 0;
  return twice && looks_for_aliases() ? MPI_ERR_BUFFER : MPI_SUCCESS;
#endif
}

std::uint64_t bytes_at_a_glance(Call& call) {
  const auto ask = [&](int (*what)(MPI_Comm, int*)) {
    int answer = -1;
    const int code = call.refused ? MPI_SUCCESS : what(call.comm, &answer);
    if (!call.refused && answer < 0) call.refused = code;
    return std::max(answer, 0);
  };
  // Between groups there are counts of the others, whose number this does not know.
  const bool between =
      call.collective == Collective::allgather && call.recv.counts.differ() && ask(&PMPI_Comm_test_inter) != 0;
  if (between) return ~std::uint64_t{0};
  const int size = !call.irregular && (call.recv.all || call.send.all) ? ask(&PMPI_Comm_size) : 1;
  const int rank = !call.irregular && is_rooted(call.collective) ? ask(&PMPI_Comm_rank) : 0;
  return call.refused ? ~std::uint64_t{0} : bytes_at_a_glance(call, rank, size);
}

std::uint64_t bytes_at_a_glance(const Call& call, int rank, int size) {
  if (call.irregular) return ~std::uint64_t{0};
  // Between groups: those at the root's side say nothing of types. (Else MPI has something to say.)
  if (is_rooted(call.collective) && call.root < 0) return 0;
  const Side& side = common_side(call, rank);
  const bool one_of_many = call.collective == Collective::gather || call.collective == Collective::scatter;
  return bytes_of(side, size) * static_cast<std::uint64_t>(one_of_many && !side.all ? size : 1);
}

std::optional<Shape> shape_of(const Call& call, int rank, int size) {
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= size)) return std::nullopt;
  const TypeInfo& type = info_of(common_side(call, rank).type);
  if (!type.base) return std::nullopt;
  Shape shape{.dtype = *type.base, .op = Op::none, .bytes = bytes_at_a_glance(call, rank, size)};
  if (shape.bytes == 0) return std::nullopt;  // and so on all ranks, whatever each says that it has none of
  for (const Side* side : sides_of(call, rank)) {
    if (!is_sound(side == &call.recv ? written_side(call, rank) : *side, shape.dtype, size)) return std::nullopt;
  }
  if (reduces(call.collective)) {
    const std::optional<Op> op = op_for(call, type);
    if (!op) return std::nullopt;
    shape.op = *op;
  }
  return shape;
}

bool is_refused(const Call& call, int rank, int size) {
  if (is_rooted(call.collective) && (call.root < 0 || call.root >= size)) return true;
  const Sides sides = sides_of(call, rank);
  return std::any_of(sides.begin(), sides.end(), [&](const Side* side) {
    return !elements_of(*side, size) || !is_type(call, *side) || is_misplaced(*side, size);
  });
}

Word word_of(const Call& call, int rank, int size) {
  Word word;
  for (const Side* side : sides_of(call, rank)) {
    const auto elements = elements_of(*side, size);
    if (!elements) return Word{.refused = 1};
    const auto& base = info_of(side->type).base;
    if (*elements == 0 || info_of(side->type).empty) continue;
    if (!base) return Word{.refused = 1};
    if (!is_sound(*side, *base, size) || (word.dtype != 0 && word.dtype != static_cast<std::uint8_t>(*base)))
      return Word{.refused = 1};
    word.dtype = static_cast<std::uint8_t>(*base);
    word.bytes = std::max(word.bytes, bytes_of(*side, size));
  }
  return word;
}

std::uint64_t bytes_of_part(const Call& call, int rank, int size) {
  const Side& side = common_side(call, rank);
  return in_place(side) ? 0 : bytes_of(side, size);
}

std::optional<Shape> shape_of(const Word* words, int size) {
  std::uint8_t dtype = 0;
  std::uint64_t most = 0;
  for (const Word* w = words; w != words + size; ++w) {
    if (w->refused != 0) return std::nullopt;
    if (w->dtype != 0 && dtype != 0 && w->dtype != dtype) return std::nullopt;
    if (w->dtype != 0) dtype = w->dtype;
    most = std::max(most, w->bytes);
  }
  if (dtype == 0) return std::nullopt;
  return Shape{.dtype = static_cast<DType>(dtype), .op = Op::none, .bytes = most};
}

Report make(const Call& call, const Shape& shape, Communicator& comm, const Options& options) {
  return comm.whole([&] { return Maker(call, shape, comm, options).run(); });
}

}  // namespace laconic::preload
