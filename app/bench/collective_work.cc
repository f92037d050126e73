#include "bench/collective_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/budget.h"
#include "collective/gather.h"
#include "collective/plain_way.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scatter.h"
#include "core/element.h"
#include "exit_code.h"
#include "report/exact_sum.h"
#include "report/quality.h"

namespace laconic::app {
namespace {

constexpr std::size_t judged_at_once = std::size_t{1} << 14;

bool in_shares(Collective c) { return c == Collective::reduce_scatter || c == Collective::alltoall; }

std::size_t operand_count(Collective collective, std::size_t values, std::size_t ranks) {
  if (in_shares(collective)) return std::max<std::size_t>(1, values / ranks) * ranks;
  return std::max<std::size_t>(1, values);
}

/// Integers wrap.
template <std::integral Integer>
void combine(Op op, Integer& a, Integer b) {
  using Unsigned = std::make_unsigned_t<Integer>;
  if (op == Op::sum)
    a = static_cast<Integer>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  else
    a = op == Op::min ? std::min(a, b) : std::max(a, b);
}

/// The least and the greatest of what has a NaN is NaN.
void combine(Op op, ExactSum& a, double b) {
  if (!is_extreme(op)) return a.add(b);
  const long double before = a.value();
  if (std::isnan(before)) return;
  if (std::isnan(b) || (op == Op::min ? b < before : b > before)) a = ExactSum(b);
}

}  // namespace

CollectiveWork::CollectiveWork(const Task& task, const LoadedField& field, std::size_t bytes, int rank, int ranks)
    : task_(task),
      field_(field),
      dtype_(field.field.shape.dtype),
      element_(size_of(dtype_)),
      rank_(rank),
      ranks_(ranks),
      count_(operand_count(task.collective, bytes / element_, static_cast<std::size_t>(ranks))) {
  const std::size_t own = operand_bytes();
  const std::size_t all = own * static_cast<std::size_t>(ranks);
  if (task.collective == Collective::scatter) {
    send_.resize(is_root() ? all : 0);
    for (int r = 0; is_root() && r < ranks; ++r)
      copy_operand(r, 0, count_, send_.data() + static_cast<std::size_t>(r) * own);
  } else if (task.collective != Collective::bcast) {
    send_.resize(own);
    copy_operand(rank, 0, count_, send_.data());
  }
  std::size_t received = 0;
  for (const Piece& p : pieces()) received = std::max(received, p.first + p.count);
  recv_.resize(received * element_);
}

std::size_t CollectiveWork::message_bytes() const {
  const Collective c = task_.collective;
  const bool gathers = c == Collective::allgather || c == Collective::gather || c == Collective::scatter;
  return operand_bytes() * (gathers ? static_cast<std::size_t>(ranks_) : 1);
}

bool CollectiveWork::same_everywhere() const {
  const Collective c = task_.collective;
  return c == Collective::allreduce || c == Collective::allgather || c == Collective::bcast;
}

std::vector<CollectiveWork::Piece> CollectiveWork::pieces() const {
  const std::size_t share = count_ / static_cast<std::size_t>(ranks_);
  const std::size_t mine = static_cast<std::size_t>(rank_) * share;
  std::vector<Piece> out;
  switch (task_.collective) {
    case Collective::allreduce:
      return {{0, count_, 0, -1}};
    case Collective::reduce:
      if (is_root()) out.push_back({0, count_, 0, -1});
      return out;
    case Collective::reduce_scatter:
      return {{0, share, mine, -1}};
    case Collective::bcast:
      return {{0, count_, 0, task_.root}};
    case Collective::scatter:
      return {{0, count_, 0, rank_}};
    case Collective::alltoall:
      for (int r = 0; r < ranks_; ++r) out.push_back({static_cast<std::size_t>(r) * share, share, mine, r});
      return out;
    default:  // allgather, and gather's root
      for (int r = 0; r < ranks_ && (is_root() || task_.collective == Collective::allgather); ++r)
        out.push_back({static_cast<std::size_t>(r) * count_, count_, 0, r});
      return out;
  }
}

void CollectiveWork::copy_operand(int rank, std::size_t first, std::size_t count, std::uint8_t* out) const {
  const std::size_t period = field_.array().count;
  std::size_t at = (first + static_cast<std::size_t>(rank) * operand_shift) % period;
  while (count > 0) {
    const std::size_t n = std::min(count, period - at);
    std::memcpy(out, field_.bytes.data() + at * element_, n * element_);
    out += n * element_;
    count -= n;
    at = 0;
  }
}

void CollectiveWork::prepare() {
  if (task_.collective == Collective::bcast && is_root()) copy_operand(rank_, 0, count_, recv_.data());
}

void CollectiveWork::spoil() { std::fill(recv_.begin(), recv_.end(), std::uint8_t{0xff}); }

const Report& CollectiveWork::run(Communicator& comm, const Options& options) {
  const Op op = task_.op;
  const int root = task_.root;
  switch (task_.collective) {
    case Collective::allreduce:
      return allreduce(send(), recv(), op, comm, options);
    case Collective::reduce:
      return reduce(send(), is_root() ? recv() : MutArray{nullptr, 0, dtype_}, op, root, comm, options);
    case Collective::reduce_scatter:
      return reduce_scatter_block(send(), recv(), op, comm, options);
    case Collective::bcast:
      return bcast(recv(), root, comm, options);
    case Collective::scatter:
      return scatter_equal(send(), recv(), root, comm, options);
    case Collective::gather:
      return gather_equal(send(), recv(), root, comm, options);
    case Collective::alltoall:
      return alltoall(send(), recv(), comm, options);
    default:
      return allgather_equal(send(), recv(), comm, options);
  }
}

void CollectiveWork::run_plainly(PlainCollectives& library) {
  if (std::max(send().count, recv().count) > library.most_elements())
    throw Failure(Exit::usage, fmt::format("plain MPI_{} takes no more than {} elements; --size is too large",
                                           name_of(task_.collective), library.most_elements()));
  if (task_.op == Op::none) return move_plainly(library);
  const Op done = plain_op(task_.op, dtype_, library);
  if (task_.collective == Collective::allreduce) {
    library.allreduce(send(), recv(), done);
  } else if (task_.collective == Collective::reduce) {
    library.reduce(send(), recv(), done, task_.root);
  } else {
    library.reduce_scatter(send(), recv(), {.equal = true}, done);
  }
  finish_plain_average(task_.op, done, recv(), ranks_);
}

void CollectiveWork::move_plainly(PlainCollectives& library) {
  const Parts equal{.equal = true, .counts = {}};
  switch (task_.collective) {
    case Collective::bcast:
      return library.bcast(recv(), task_.root);
    case Collective::scatter:
      return library.scatter(send(), equal, recv(), task_.root);
    case Collective::gather:
      return library.gather(send(), recv(), equal, task_.root);
    case Collective::alltoall:
      return library.alltoall(send(), equal, recv(), equal);
    default:
      return library.allgather(send(), recv(), equal);
  }
}

template <class Value, class Exact>
void CollectiveWork::judge_value(Value got, const Exact& exact, double bound, Verdict& verdict) const {
  double error = 0;
  bool kept = false;
  if constexpr (std::is_integral_v<Value>) {
    using Unsigned = std::make_unsigned_t<Value>;  // which the difference fits in
    error =
        static_cast<double>(static_cast<Unsigned>(std::max(got, exact)) - static_cast<Unsigned>(std::min(got, exact)));
    kept = error == 0;
  } else {
    const long double x = exact.value();
    if (!std::isfinite(x)) {
      verdict.violations += got == x || (std::isnan(x) && std::isnan(got)) ? 0 : 1;
      return;
    }
    // Within the bound it may round to infinity.
    if (std::isinf(got) && rounded_to(dtype_, static_cast<double>(x) + std::copysign(bound, got)) == got) return;
    // As Laconic's own verification has it; see Call::verify().
    const double ulps = task_.op == Op::average && dtype_ == DType::f64 ? 1.5 : 0.5;
    error = static_cast<double>(std::fabs(exact.error_of(got)));
    kept = error <= bound || error <= bound + ulps * ulp_of(dtype_, static_cast<double>(x));
  }
  if (!kept) ++verdict.violations;
  if (!(error <= verdict.max_error)) verdict.max_error = error;
}

template <class Element>
void CollectiveWork::judge_piece(const Piece& piece, double bound, Verdict& verdict) const {
  using Stored = typename Element::Stored;
  using Value = decltype(Element::widen(Stored{}));
  using Exact = std::conditional_t<std::is_integral_v<Value>, Value, ExactSum>;
  std::vector<Stored> operand(judged_at_once);
  std::vector<Exact> exact(judged_at_once);
  const auto* result = reinterpret_cast<const Stored*>(recv_.data()) + piece.first;
  const int first = std::max(piece.rank, 0);
  const int last = piece.rank < 0 ? ranks_ - 1 : piece.rank;
  for (std::size_t done = 0; done < piece.count; done += judged_at_once) {
    const std::size_t n = std::min(judged_at_once, piece.count - done);
    for (int r = first; r <= last; ++r) {
      copy_operand(r, piece.source + done, n, reinterpret_cast<std::uint8_t*>(operand.data()));
      for (std::size_t i = 0; i < n; ++i) {
        const Value x = Element::widen(operand[i]);
        if (r == first)
          exact[i] = Exact(x);
        else
          combine(task_.op, exact[i], x);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      if constexpr (!std::is_integral_v<Value>)
        if (task_.op == Op::average) exact[i].divide(ranks_);
      judge_value<Value>(Element::widen(result[done + i]), exact[i], bound, verdict);
    }
  }
}

Verdict CollectiveWork::judge(double bound) const {
  Verdict verdict;
  for (const Piece& p : pieces())
    with_element(dtype_, [&]<class Element>(Element) { judge_piece<Element>(p, bound, verdict); });
  return verdict;
}

}  // namespace laconic::app
