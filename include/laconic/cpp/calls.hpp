// The collectives, blocking or not, with C's arguments: part of laconic.hpp, for its own use.
#pragma once

#include <laconic/laconic.h>

#include <cstddef>
#include <laconic/cpp/buffer.hpp>
#include <laconic/cpp/element.hpp>
#include <laconic/cpp/options.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>

namespace laconic {
inline namespace public_v1 {
namespace detail {

/// This rank, of how many.
struct Here {
  int rank;
  std::size_t ranks;
};

/// Whether the sizes of this rank's arrays fit, which the C interface does not know. If not, it gets arrays, or counts,
/// that are not there, and so tells all ranks; what is wrong is thrown on this one.
class Fit {
 public:
  Fit(const char* call, bool fits, const char* otherwise) : call_(call), fits_(fits), otherwise_(otherwise) {}
  template <typename T>
  [[nodiscard]] typename Buffer<T>::Pointer data(const Buffer<T>& buffer) const {
    return fits_ ? buffer.data() : nullptr;
  }
  [[nodiscard]] std::size_t count(std::size_t n) const { return fits_ || n != 0 ? n : 1; }
  [[nodiscard]] const std::size_t* counts(const Parts& parts) const { return fits_ ? parts.counts.data() : nullptr; }
  [[nodiscard]] const std::size_t* displs(const Parts& parts) const {
    return fits_ && !parts.displs.empty() ? parts.displs.data() : nullptr;
  }
  /// What is wrong, if anything is. prefix: to the call's name.
  [[nodiscard]] std::optional<Error> misfit(const char* prefix) const {
    if (fits_) return {};
    return Error(LACONIC_INVALID_ARGUMENT, (std::string(prefix) + call_ + ": " + otherwise_).c_str());
  }

 private:
  const char* call_;
  bool fits_;
  const char* otherwise_;
};

/// C's two functions, and their arguments but for communicator, options and request, which come behind.
template <typename Blocking, typename NonBlocking, typename... Arguments>
class Call {
 public:
  Call(const Fit& fit, Blocking blocking, NonBlocking non_blocking, Arguments... arguments)
      : fit_(fit), blocking_(blocking), non_blocking_(non_blocking), arguments_(arguments...) {}

  /// The code that C returns.
  int make(laconic_comm* comm, const laconic_options* options) const {
    return std::apply([&](auto... a) { return blocking_(a..., comm, options); }, arguments_);
  }
  int begin(laconic_comm* comm, const laconic_options* options, laconic_request** request) const {
    return std::apply([&](auto... a) { return non_blocking_(a..., comm, options, request); }, arguments_);
  }
  [[nodiscard]] const Fit& fit() const { return fit_; }

 private:
  Fit fit_;
  Blocking blocking_;
  NonBlocking non_blocking_;
  std::tuple<Arguments...> arguments_;
};

inline constexpr const char* only_root = "in place on another rank than the root";

inline laconic_op raw(Op op) { return static_cast<laconic_op>(op); }

inline bool lie_within(const Parts& parts, std::size_t elements, const Here& at) {
  if (parts.counts.size() != at.ranks || (!parts.displs.empty() && parts.displs.size() != at.ranks)) return false;
  std::size_t packed = 0;
  for (std::size_t r = 0; r < at.ranks; ++r) {
    const std::size_t first = parts.displs.empty() ? packed : parts.displs[r];
    if (parts.counts[r] != 0 && (first > elements || parts.counts[r] > elements - first)) return false;
    packed += parts.counts[r];
  }
  return true;
}

template <Element T>
auto allreduce(const Here& /*at*/, const Buffer<const T>& send, std::span<T> recv, Op op) {
  const Fit fit("allreduce", send.size_or(recv.size()) == recv.size(), "send and recv differ in size");
  return Call(fit, laconic_allreduce, laconic_iallreduce, fit.data(send), recv.data(), fit.count(recv.size()),
              dtype_of<T>(), raw(op));
}

template <Element T>
auto reduce(const Here& at, const Buffer<const T>& send, std::span<T> recv, Op op, int root) {
  const std::size_t count = send.size_or(recv.size());
  const Fit fit("reduce", at.rank != root || count == recv.size(), "send and recv differ in size");
  return Call(fit, laconic_reduce, laconic_ireduce, fit.data(send), recv.data(), fit.count(count), dtype_of<T>(),
              raw(op), root);
}

template <Element T>
auto scan(const Here& /*at*/, const Buffer<const T>& send, std::span<T> recv, Op op) {
  const Fit fit("scan", send.size_or(recv.size()) == recv.size(), "send and recv differ in size");
  return Call(fit, laconic_scan, laconic_iscan, fit.data(send), recv.data(), fit.count(recv.size()), dtype_of<T>(),
              raw(op));
}

template <Element T>
auto exscan(const Here& at, const Buffer<const T>& send, std::span<T> recv, Op op) {
  const std::size_t count = send.size_or(recv.size());
  const bool writes = at.rank != 0 || !recv.empty();
  const Fit fit("exscan", !writes || count == recv.size(), "send and recv differ in size");
  return Call(fit, laconic_exscan, laconic_iexscan, fit.data(send), writes ? recv.data() : nullptr, fit.count(count),
              dtype_of<T>(), raw(op));
}

template <Element T>
auto reduce_scatter(const Here& at, const Buffer<const T>& send, std::span<T> recv, Op op) {
  const std::size_t count = send.is_in_place() ? recv.size() / at.ranks : recv.size();
  const Fit fit("reduce_scatter", send.size_or(recv.size()) == count * at.ranks,
                send.is_in_place() ? "recv is not size() shares" : "send is not size() recvs");
  return Call(fit, laconic_reduce_scatter_block, laconic_ireduce_scatter_block, fit.data(send), recv.data(),
              fit.count(count), dtype_of<T>(), raw(op));
}

template <Element T>
auto reduce_scatter(const Here& at, const Buffer<const T>& send, std::span<T> recv, std::span<const std::size_t> counts,
                    Op op) {
  const Parts parts{.counts = counts};
  const std::size_t all = send.size_or(recv.size());
  const Fit fit("reduce_scatter",
                lie_within(parts, all, at) && std::reduce(counts.begin(), counts.end()) == all &&
                    (send.is_in_place() || counts[static_cast<std::size_t>(at.rank)] == recv.size()),
                send.is_in_place() ? "counts do not add up to recv"
                                   : "counts do not add up to send, or recv is not this rank's share");
  return Call(fit, laconic_reduce_scatter, laconic_ireduce_scatter, fit.data(send), recv.data(), fit.counts(parts),
              dtype_of<T>(), raw(op));
}

template <Element T>
auto bcast(const Here& /*at*/, std::span<T> data, int root) {
  return Call({"bcast", true, ""}, laconic_bcast, laconic_ibcast, data.data(), data.size(), dtype_of<T>(), root);
}

template <Element T>
auto scatter(const Here& at, const Buffer<const T>& send, const Buffer<T>& recv, int root) {
  const std::size_t all = send.size_or(0);
  const std::size_t count = recv.size_or(all / at.ranks);
  const Fit fit("scatter", at.rank == root ? all == count * at.ranks : !recv.is_in_place(),
                at.rank == root ? "send is not size() recvs" : only_root);
  return Call(fit, laconic_scatter, laconic_iscatter, fit.data(send), fit.data(recv), fit.count(count), dtype_of<T>(),
              root);
}

template <Element T>
auto scatterv(const Here& at, const Buffer<const T>& send, const Parts& parts, const Buffer<T>& recv, int root) {
  const Fit fit("scatterv", at.rank == root ? lie_within(parts, send.size_or(0), at) : !recv.is_in_place(),
                at.rank == root ? "parts do not lie within send" : only_root);
  return Call(fit, laconic_scatterv, laconic_iscatterv, fit.data(send), fit.counts(parts), fit.displs(parts),
              fit.data(recv), fit.count(recv.size_or(0)), dtype_of<T>(), root);
}

template <Element T>
auto gather(const Here& at, const Buffer<const T>& send, std::span<T> recv, int root) {
  const std::size_t count = send.size_or(recv.size() / at.ranks);
  const Fit fit("gather", at.rank == root ? recv.size() == count * at.ranks : !send.is_in_place(),
                at.rank == root ? "recv is not size() sends" : only_root);
  return Call(fit, laconic_gather, laconic_igather, fit.data(send), fit.count(count), recv.data(), dtype_of<T>(), root);
}

template <Element T>
auto gatherv(const Here& at, const Buffer<const T>& send, std::span<T> recv, const Parts& parts, int root) {
  const Fit fit("gatherv", at.rank == root ? lie_within(parts, recv.size(), at) : !send.is_in_place(),
                at.rank == root ? "parts do not lie within recv" : only_root);
  return Call(fit, laconic_gatherv, laconic_igatherv, fit.data(send), fit.count(send.size_or(0)), recv.data(),
              fit.counts(parts), fit.displs(parts), dtype_of<T>(), root);
}

template <Element T>
auto allgather(const Here& at, const Buffer<const T>& send, std::span<T> recv) {
  const std::size_t count = send.size_or(recv.size() / at.ranks);
  const Fit fit("allgather", recv.size() == count * at.ranks, "recv is not size() sends");
  return Call(fit, laconic_allgather, laconic_iallgather, fit.data(send), fit.count(count), recv.data(), dtype_of<T>());
}

template <Element T>
auto allgatherv(const Here& at, const Buffer<const T>& send, std::span<T> recv, const Parts& parts) {
  const bool within = lie_within(parts, recv.size(), at);
  const std::size_t own = within ? parts.counts[static_cast<std::size_t>(at.rank)] : 0;
  const Fit fit("allgatherv", within && send.size_or(own) == own,
                "parts do not lie within recv, or send is not this rank's part");
  return Call(fit, laconic_allgatherv, laconic_iallgatherv, fit.data(send), recv.data(), fit.counts(parts),
              fit.displs(parts), dtype_of<T>());
}

template <Element T>
auto alltoall(const Here& at, const Buffer<const T>& send, std::span<T> recv) {
  const Fit fit("alltoall", recv.size() == send.size_or(recv.size()) && recv.size() % at.ranks == 0,
                "send and recv are not size() blocks each");
  return Call(fit, laconic_alltoall, laconic_ialltoall, fit.data(send), recv.data(), fit.count(recv.size() / at.ranks),
              dtype_of<T>());
}

template <Element T>
auto alltoallv(const Here& at, const Buffer<const T>& send, const Parts& out, std::span<T> recv, const Parts& in) {
  const Parts& sent = send.is_in_place() ? in : out;
  const Fit fit("alltoallv", lie_within(sent, send.size_or(recv.size()), at) && lie_within(in, recv.size(), at),
                "parts do not lie within send, or within recv");
  return Call(fit, laconic_alltoallv, laconic_ialltoallv, fit.data(send), fit.counts(sent), fit.displs(sent),
              recv.data(), fit.counts(in), fit.displs(in), dtype_of<T>());
}

}  // namespace detail
}  // namespace public_v1
}  // namespace laconic
