// Laconic for C++20: the C interface with spans, exceptions and owners. Header only; laconic.h documents the calls.
//
//   laconic_comm* raw = nullptr;
//   laconic::check(laconic_comm_from_mpi(MPI_COMM_WORLD, &raw));
//   laconic::Comm comm(raw, {.bound = "1e-3rel"});
//   comm.allreduce<float>(image, laconic::Op::sum);
#pragma once

#if __cplusplus < 202002L
#error "laconic.hpp wants C++20 (-std=c++20; CMake: set(CMAKE_CXX_STANDARD 20)); laconic.h is for C and any C++"
#endif

#include <laconic/laconic.h>

#include <cstddef>
#include <exception>
#include <laconic/cpp/buffer.hpp>
#include <laconic/cpp/calls.hpp>
#include <laconic/cpp/element.hpp>
#include <laconic/cpp/options.hpp>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace laconic {
inline namespace public_v1 {

/// A non-blocking call. Its buffers must outlive it. A communicator that ends before it has ended the call, too, which
/// then is in no statistics.
class [[nodiscard]] Request {
 public:
  Request() = default;
  /// misfit: what is wrong with a call that C has been given to refuse.
  explicit Request(laconic_request* raw, std::optional<Error> misfit = {}) : raw_(raw), misfit_(std::move(misfit)) {}
  Request(Request&& other) noexcept
      : raw_(std::exchange(other.raw_, nullptr)), misfit_(std::exchange(other.misfit_, std::nullopt)) {}
  Request& operator=(Request&& other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(misfit_, other.misfit_);
    return *this;
  }
  /// Waits; what went wrong is then lost.
  ~Request() { laconic_wait(&raw_); }

  /// True once done. Throws what the call reported.
  bool test() {
    int done = 0;
    const int code = laconic_test(&raw_, &done);
    if (done != 0) require_fit();
    check(code);
    return done != 0;
  }
  void wait() {
    const int code = laconic_wait(&raw_);
    require_fit();
    check(code);
  }

 private:
  void require_fit() {
    if (const auto misfit = std::exchange(misfit_, std::nullopt)) throw Error(*misfit);
  }

  laconic_request* raw_ = nullptr;
  std::optional<Error> misfit_{};
};

/// Waits for all of them; then throws what the first one that failed reported.
inline void wait_all(std::span<Request> requests) {
  std::exception_ptr wrong;
  for (Request& request : requests) {
    try {
      request.wait();
    } catch (const Error&) {
      if (!wrong) wrong = std::current_exception();
    }
  }
  if (wrong) std::rethrow_exception(wrong);
}

/// Owns a communicator. Each collective has a non-blocking form, whose name begins with i; either takes in_place as
/// what it sends (a scatter: as what the root receives), and, as its last argument, options for this call, of which
/// what is not set is the communicator's. Sizes that do not fit are wrong arguments, of which the other ranks hear
/// as of any other.
class Comm {
 public:
  /// Takes it over. Local, as set_options() is: of a mistake in the options the other ranks hear nothing.
  explicit Comm(laconic_comm* raw, const Options& options = {}) : raw_(raw) { set_options(options); }

  [[nodiscard]] int rank() const { return laconic_comm_rank(raw_.get()); }
  [[nodiscard]] int size() const { return laconic_comm_size(raw_.get()); }
  [[nodiscard]] laconic_comm* raw() const { return raw_.get(); }

  void set_options(const Options& options) {
    const laconic_options o = options.raw();
    check(laconic_comm_set_options(raw_.get(), &o));
  }

  /// send and recv are of the same size.
  template <Element T>
  void allreduce(Send<T> send, Recv<T> recv, Op op, const Options& options = {}) {
    make(detail::allreduce<T>(here(), send, recv, op), options);
  }
  template <Element T>
  Request iallreduce(LastingSend<T> send, Recv<T> recv, Op op, const Options& options = {}) {
    return begin(detail::allreduce<T>(here(), send, recv, op), options);
  }

  /// In place.
  template <Element T>
  void allreduce(Recv<T> data, Op op, const Options& options = {}) {
    allreduce<T>(in_place, data, op, options);
  }
  template <Element T>
  Request iallreduce(Recv<T> data, Op op, const Options& options = {}) {
    return iallreduce<T>(in_place, data, op, options);
  }

  /// recv is looked at on the root only, where it is of send's size; but a rank that sends in place sends it.
  template <Element T>
  void reduce(Send<T> send, Recv<T> recv, Op op, int root, const Options& options = {}) {
    make(detail::reduce<T>(here(), send, recv, op, root), options);
  }
  template <Element T>
  Request ireduce(LastingSend<T> send, Recv<T> recv, Op op, int root, const Options& options = {}) {
    return begin(detail::reduce<T>(here(), send, recv, op, root), options);
  }

  template <Element T>
  void scan(Send<T> send, Recv<T> recv, Op op, const Options& options = {}) {
    make(detail::scan<T>(here(), send, recv, op), options);
  }
  template <Element T>
  Request iscan(LastingSend<T> send, Recv<T> recv, Op op, const Options& options = {}) {
    return begin(detail::scan<T>(here(), send, recv, op), options);
  }

  /// On rank 0, where nothing is written, recv may be empty.
  template <Element T>
  void exscan(Send<T> send, Recv<T> recv, Op op, const Options& options = {}) {
    make(detail::exscan<T>(here(), send, recv, op), options);
  }
  template <Element T>
  Request iexscan(LastingSend<T> send, Recv<T> recv, Op op, const Options& options = {}) {
    return begin(detail::exscan<T>(here(), send, recv, op), options);
  }

  /// send.size() == recv.size() * size(). In place, recv has all of it, and the share comes to its
  /// front; what lies behind it may then be anything.
  template <Element T>
  void reduce_scatter(Send<T> send, Recv<T> recv, Op op, const Options& options = {}) {
    make(detail::reduce_scatter<T>(here(), send, recv, op), options);
  }
  template <Element T>
  Request ireduce_scatter(LastingSend<T> send, Recv<T> recv, Op op, const Options& options = {}) {
    return begin(detail::reduce_scatter<T>(here(), send, recv, op), options);
  }

  /// send.size() is the sum of the counts; recv is this rank's share, or in place as above.
  template <Element T>
  void reduce_scatter(Send<T> send, Recv<T> recv, std::span<const std::size_t> counts, Op op,
                      const Options& options = {}) {
    make(detail::reduce_scatter<T>(here(), send, recv, counts, op), options);
  }
  template <Element T>
  Request ireduce_scatter(LastingSend<T> send, Recv<T> recv, std::span<const std::size_t> counts, Op op,
                          const Options& options = {}) {
    return begin(detail::reduce_scatter<T>(here(), send, recv, counts, op), options);
  }

  template <Element T>
  void bcast(Recv<T> data, int root, const Options& options = {}) {
    make(detail::bcast<T>(here(), data, root), options);
  }
  template <Element T>
  Request ibcast(Recv<T> data, int root, const Options& options = {}) {
    return begin(detail::bcast<T>(here(), data, root), options);
  }

  /// On the root, send.size() == recv.size() * size(); elsewhere send is not looked at.
  template <Element T>
  void scatter(Send<T> send, RecvOrInPlace<T> recv, int root, const Options& options = {}) {
    make(detail::scatter<T>(here(), send, recv, root), options);
  }
  template <Element T>
  Request iscatter(LastingSend<T> send, RecvOrInPlace<T> recv, int root, const Options& options = {}) {
    return begin(detail::scatter<T>(here(), send, recv, root), options);
  }

  /// On the root, recv.size() == send.size() * size(); elsewhere recv is not looked at, nor is anything in place.
  template <Element T>
  void gather(Send<T> send, Recv<T> recv, int root, const Options& options = {}) {
    make(detail::gather<T>(here(), send, recv, root), options);
  }
  template <Element T>
  Request igather(LastingSend<T> send, Recv<T> recv, int root, const Options& options = {}) {
    return begin(detail::gather<T>(here(), send, recv, root), options);
  }

  /// recv.size() == send.size() * size().
  template <Element T>
  void allgather(Send<T> send, Recv<T> recv, const Options& options = {}) {
    make(detail::allgather<T>(here(), send, recv), options);
  }
  template <Element T>
  Request iallgather(LastingSend<T> send, Recv<T> recv, const Options& options = {}) {
    return begin(detail::allgather<T>(here(), send, recv), options);
  }

  /// Both are size() blocks of the same size.
  template <Element T>
  void alltoall(Send<T> send, Recv<T> recv, const Options& options = {}) {
    make(detail::alltoall<T>(here(), send, recv), options);
  }
  template <Element T>
  Request ialltoall(LastingSend<T> send, Recv<T> recv, const Options& options = {}) {
    return begin(detail::alltoall<T>(here(), send, recv), options);
  }

  /// Parts must lie within their array, whose gaps are not written. send is this rank's part.
  template <Element T>
  void allgatherv(Send<T> send, Recv<T> recv, const Parts& parts, const Options& options = {}) {
    make(detail::allgatherv<T>(here(), send, recv, parts), options);
  }
  template <Element T>
  Request iallgatherv(LastingSend<T> send, Recv<T> recv, const Parts& parts, const Options& options = {}) {
    return begin(detail::allgatherv<T>(here(), send, recv, parts), options);
  }

  /// send and parts are looked at on the root only.
  template <Element T>
  void scatterv(Send<T> send, const Parts& parts, RecvOrInPlace<T> recv, int root, const Options& options = {}) {
    make(detail::scatterv<T>(here(), send, parts, recv, root), options);
  }
  template <Element T>
  Request iscatterv(LastingSend<T> send, const Parts& parts, RecvOrInPlace<T> recv, int root,
                    const Options& options = {}) {
    return begin(detail::scatterv<T>(here(), send, parts, recv, root), options);
  }

  /// recv and parts are looked at on the root only.
  template <Element T>
  void gatherv(Send<T> send, Recv<T> recv, const Parts& parts, int root, const Options& options = {}) {
    make(detail::gatherv<T>(here(), send, recv, parts, root), options);
  }
  template <Element T>
  Request igatherv(LastingSend<T> send, Recv<T> recv, const Parts& parts, int root, const Options& options = {}) {
    return begin(detail::gatherv<T>(here(), send, recv, parts, root), options);
  }

  /// In place, out is not looked at: {}.
  template <Element T>
  void alltoallv(Send<T> send, const Parts& out, Recv<T> recv, const Parts& in, const Options& options = {}) {
    make(detail::alltoallv<T>(here(), send, out, recv, in), options);
  }
  template <Element T>
  Request ialltoallv(LastingSend<T> send, const Parts& out, Recv<T> recv, const Parts& in,
                     const Options& options = {}) {
    return begin(detail::alltoallv<T>(here(), send, out, recv, in), options);
  }

  template <Element T>
  void send(Recv<const T> data, int dest, int tag = 0, const Options& options = {}) {
    check(with(options, [&](const laconic_options* o) {
      return laconic_send(data.data(), data.size(), dtype_of<T>(), dest, tag, raw_.get(), o);
    }));
  }
  /// Returns how many elements came.
  template <Element T>
  std::size_t recv(Recv<T> room, int source, int tag = 0, const Options& options = {}) {
    std::size_t received = 0;
    check(with(options, [&](const laconic_options* o) {
      return laconic_recv(room.data(), room.size(), dtype_of<T>(), source, tag, &received, raw_.get(), o);
    }));
    return received;
  }
  template <Element T>
  std::size_t sendrecv(Recv<const T> data, int dest, Recv<T> room, int source, int tag = 0,
                       const Options& options = {}) {
    std::size_t received = 0;
    check(with(options, [&](const laconic_options* o) {
      return laconic_sendrecv(data.data(), data.size(), dtype_of<T>(), dest, tag, room.data(), room.size(),
                              dtype_of<T>(), source, tag, &received, raw_.get(), o);
    }));
    return received;
  }

  /// In place means nothing here, and is refused.
  template <Element T>
  Request isend(LastingSend<T> data, int dest, int tag = 0, const Options& options = {}) {
    return begin(options, [&](const laconic_options* o, laconic_request** request) {
      return laconic_isend(data.data(), data.size_or(1), dtype_of<T>(), dest, tag, raw_.get(), o, request);
    });
  }
  /// *received, which must live as long as the request: how many elements came.
  template <Element T>
  Request irecv(Recv<T> room, int source, int tag = 0, std::size_t* received = nullptr, const Options& options = {}) {
    return begin(options, [&](const laconic_options* o, laconic_request** request) {
      return laconic_irecv(room.data(), room.size(), dtype_of<T>(), source, tag, received, raw_.get(), o, request);
    });
  }
  template <Element T>
  Request isendrecv(LastingSend<T> data, int dest, Recv<T> room, int source, int tag = 0,
                    std::size_t* received = nullptr, const Options& options = {}) {
    return begin(options, [&](const laconic_options* o, laconic_request** request) {
      return laconic_isendrecv(data.data(), data.size_or(1), dtype_of<T>(), dest, tag, room.data(), room.size(),
                               dtype_of<T>(), source, tag, received, raw_.get(), o, request);
    });
  }

  [[nodiscard]] laconic_stats last() const {
    laconic_stats s{};
    s.struct_size = sizeof s;
    check(laconic_comm_last(raw_.get(), &s));
    return s;
  }
  [[nodiscard]] laconic_stats total() const {
    laconic_stats s{};
    s.struct_size = sizeof s;
    check(laconic_comm_total(raw_.get(), &s));
    return s;
  }

 private:
  struct Free {
    void operator()(laconic_comm* c) const { laconic_comm_free(c); }
  };

  [[nodiscard]] detail::Here here() const {
    if (raw_ == nullptr) throw Error(LACONIC_INVALID_ARGUMENT, "comm is null");  // moved from
    return {.rank = rank(), .ranks = static_cast<std::size_t>(size())};
  }
  /// The code that C returns of these options; null, which takes it no reading, is the same as none that is set.
  template <typename F>
  static int with(const Options& options, const F& call) {
    const laconic_options o = options.raw();
    return call(options == Options{} ? nullptr : &o);
  }
  template <typename... C>
  void make(const detail::Call<C...>& call, const Options& options) {
    const int code = with(options, [&](const laconic_options* o) { return call.make(raw_.get(), o); });
    if (const auto misfit = call.fit().misfit("")) throw Error(*misfit);
    check(code);
  }
  template <typename... C>
  Request begin(const detail::Call<C...>& call, const Options& options) {
    auto misfit = call.fit().misfit("i");  // thrown where the others, too, hear of it: all go on to the same next call
    return begin(
        options,
        [&](const laconic_options* o, laconic_request** request) { return call.begin(raw_.get(), o, request); },
        std::move(misfit));
  }
  template <typename F>
  static Request begin(const Options& options, const F& call, std::optional<Error> misfit = {}) {
    laconic_request* request = nullptr;
    check(with(options, [&](const laconic_options* o) { return call(o, &request); }));
    return Request(request, std::move(misfit));
  }

  std::unique_ptr<laconic_comm, Free> raw_;
};

/// What a stream says of itself; damaged streams throw, as laconic_inspect() finds them.
inline laconic_info inspect(std::span<const std::byte> stream) {
  laconic_info info{};
  info.struct_size = sizeof info;
  check(laconic_inspect(stream.data(), stream.size(), &info));
  return info;
}

template <Element T>
std::vector<std::byte> compress(std::type_identity_t<std::span<const T>> data, const Options& options) {
  std::vector<std::byte> stream(laconic_compress_capacity(data.size(), dtype_of<T>()));
  const laconic_options o = options.raw();
  std::size_t written = 0;
  check(laconic_compress(data.data(), data.size(), dtype_of<T>(), stream.data(), stream.size(), &written, &o));
  stream.resize(written);
  return stream;
}

template <Element T>
std::vector<T> decompress(std::span<const std::byte> stream, int threads = 0) {
  std::vector<T> data(inspect(stream).count);
  check(laconic_decompress(stream.data(), stream.size(), data.data(), data.size(), dtype_of<T>(), threads));
  return data;
}

}  // namespace public_v1
}  // namespace laconic
