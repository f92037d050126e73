#include "bench/collective_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/budget.h"
#include "collective/gather.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scatter.h"
#include "exit_code.h"

namespace laconic::app {
namespace {

constexpr std::size_t judged_at_once = std::size_t{1} << 14;

bool in_shares(Collective c) { return c == Collective::reduce_scatter || c == Collective::alltoall; }

std::size_t operand_count(Collective collective, std::size_t values, std::size_t ranks) {
  if (in_shares(collective)) return std::max<std::size_t>(1, values / ranks) * ranks;
  return std::max<std::size_t>(1, values);
}

}  // namespace

CollectiveWork::CollectiveWork(Collective collective, const LoadedField& field, std::size_t bytes, int rank, int ranks)
    : collective_(collective),
      field_(field),
      dtype_(field.field.shape.dtype),
      element_(size_of(dtype_)),
      rank_(rank),
      ranks_(ranks),
      count_(operand_count(collective, bytes / element_, static_cast<std::size_t>(ranks))) {
  const bool root = rank == 0;
  const std::size_t own = operand_bytes();
  const std::size_t all = own * static_cast<std::size_t>(ranks);
  if (collective == Collective::scatter) {
    send_.resize(root ? all : 0);
    for (int r = 0; root && r < ranks; ++r)
      copy_operand(r, 0, count_, send_.data() + static_cast<std::size_t>(r) * own);
  } else if (collective != Collective::bcast) {
    send_.resize(own);
    copy_operand(rank, 0, count_, send_.data());
  }
  std::size_t received = 0;
  for (const Piece& p : pieces()) received = std::max(received, p.first + p.count);
  recv_.resize(received * element_);
}

std::size_t CollectiveWork::message_bytes() const {
  const bool gathers =
      collective_ == Collective::allgather || collective_ == Collective::gather || collective_ == Collective::scatter;
  return operand_bytes() * (gathers ? static_cast<std::size_t>(ranks_) : 1);
}

bool CollectiveWork::same_everywhere() const {
  return collective_ == Collective::allreduce || collective_ == Collective::allgather ||
         collective_ == Collective::bcast;
}

std::vector<CollectiveWork::Piece> CollectiveWork::pieces() const {
  const std::size_t share = count_ / static_cast<std::size_t>(ranks_);
  const std::size_t mine = static_cast<std::size_t>(rank_) * share;
  std::vector<Piece> out;
  switch (collective_) {
    case Collective::allreduce:
      return {{0, count_, 0, -1}};
    case Collective::reduce:
      if (rank_ == 0) out.push_back({0, count_, 0, -1});
      return out;
    case Collective::reduce_scatter:
      return {{0, share, mine, -1}};
    case Collective::bcast:
      return {{0, count_, 0, 0}};
    case Collective::scatter:
      return {{0, count_, 0, rank_}};
    case Collective::alltoall:
      for (int r = 0; r < ranks_; ++r) out.push_back({static_cast<std::size_t>(r) * share, share, mine, r});
      return out;
    default:  // allgather, and gather's root
      for (int r = 0; r < ranks_ && (rank_ == 0 || collective_ == Collective::allgather); ++r)
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
  if (collective_ == Collective::bcast && rank_ == 0) copy_operand(0, 0, count_, recv_.data());
}

void CollectiveWork::spoil() { std::fill(recv_.begin(), recv_.end(), std::uint8_t{0xff}); }

const Report& CollectiveWork::run(Communicator& comm, const Options& options) {
  const bool root = rank_ == 0;

  switch (collective_) {
    case Collective::allreduce:
      return allreduce(send(), recv(), Op::sum, comm, options);
    case Collective::reduce:
      return reduce(send(), root ? recv() : MutArray{nullptr, 0, dtype_}, Op::sum, 0, comm, options);
    case Collective::reduce_scatter:
      return reduce_scatter_block(send(), recv(), Op::sum, comm, options);
    case Collective::bcast:
      return bcast(recv(), 0, comm, options);
    case Collective::scatter:
      return scatter_equal(send(), recv(), 0, comm, options);
    case Collective::gather:
      return gather_equal(send(), recv(), 0, comm, options);
    case Collective::alltoall:
      return alltoall(send(), recv(), comm, options);
    default:
      return allgather_equal(send(), recv(), comm, options);
  }
}

void CollectiveWork::run_plainly(PlainCollectives& library) {
  if (std::max(send().count, recv().count) > library.most_elements())
    throw Failure(Exit::usage, fmt::format("plain MPI_{} takes no more than {} elements; --size is too large",
                                           name_of(collective_), library.most_elements()));
  const Parts equal{.equal = true, .counts = {}};
  switch (collective_) {
    case Collective::allreduce:
      return library.allreduce(send(), recv(), Op::sum);
    case Collective::reduce:
      return library.reduce(send(), recv(), Op::sum, 0);
    case Collective::reduce_scatter:
      return library.reduce_scatter(send(), recv(), equal, Op::sum);
    case Collective::bcast:
      return library.bcast(recv(), 0);
    case Collective::scatter:
      return library.scatter(send(), equal, recv(), 0);
    case Collective::gather:
      return library.gather(send(), recv(), equal, 0);
    case Collective::alltoall:
      return library.alltoall(send(), equal, recv(), equal);
    default:
      return library.allgather(send(), recv(), equal);
  }
}

template <class T>
void CollectiveWork::judge_piece(const Piece& piece, double bound, Verdict& verdict) const {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  std::vector<T> operand(judged_at_once);
  std::vector<Wide> exact(judged_at_once);
  const T* result = reinterpret_cast<const T*>(recv_.data()) + piece.first;
  for (std::size_t done = 0; done < piece.count; done += judged_at_once) {
    const std::size_t n = std::min(judged_at_once, piece.count - done);
    std::fill(exact.begin(), exact.end(), Wide{0});
    const int last = piece.rank < 0 ? ranks_ - 1 : piece.rank;
    for (int r = std::max(piece.rank, 0); r <= last; ++r) {
      copy_operand(r, piece.source + done, n, reinterpret_cast<std::uint8_t*>(operand.data()));
      for (std::size_t i = 0; i < n; ++i) exact[i] += operand[i];
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Wide got = result[done + i];
      if (!std::isfinite(exact[i])) {
        verdict.violations += std::isnan(exact[i]) ? !std::isnan(got) : got != exact[i];
        continue;
      }
      const auto error = static_cast<double>(std::fabs(got - exact[i]));
      if (!(error <= bound) && !(error <= bound + ulp_of(dtype_, static_cast<double>(exact[i])) / 2))
        ++verdict.violations;
      if (!(error <= verdict.max_error)) verdict.max_error = error;
    }
  }
}

Verdict CollectiveWork::judge(double bound) const {
  Verdict verdict;
  for (const Piece& p : pieces()) {
    if (dtype_ == DType::f64) {
      judge_piece<double>(p, bound, verdict);
    } else {
      judge_piece<float>(p, bound, verdict);
    }
  }
  return verdict;
}

}  // namespace laconic::app
