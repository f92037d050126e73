// Laconic for C++20: the C interface with spans, exceptions and owners. Header only; laconic.h documents the calls.
//
//   laconic_comm* raw = nullptr;
//   laconic::check(laconic_comm_from_mpi(MPI_COMM_WORLD, &raw));
//   laconic::Comm comm(raw, {.bound = "1e-3rel"});
//   comm.allreduce<float>(image, laconic::Op::sum);
#pragma once

#include <laconic/laconic.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace laconic {
// Its own symbols: the library behind the C interface has classes of the same names.
inline namespace public_v1 {

class Error : public std::runtime_error {
 public:
  Error(int code, const char* text) : std::runtime_error(text), code_(static_cast<laconic_error>(code)) {}
  [[nodiscard]] laconic_error code() const noexcept { return code_; }

 private:
  laconic_error code_;
};

/// Throws what a C call reported.
inline void check(int code) {
  if (code != LACONIC_OK) throw Error(code, laconic_last_error());
}

enum class Op {
  sum = LACONIC_SUM,
  average = LACONIC_AVERAGE,
  min = LACONIC_MIN,
  max = LACONIC_MAX,
  product = LACONIC_PRODUCT
};

enum class Schedule {
  automatic = LACONIC_AUTOMATIC,
  ring = LACONIC_RING,
  recursive_doubling = LACONIC_RECURSIVE_DOUBLING,
  rabenseifner = LACONIC_RABENSEIFNER,
  two_level = LACONIC_TWO_LEVEL,
  direct = LACONIC_DIRECT
};

enum class Mode {
  from_environment = LACONIC_MODE_DEFAULT,
  automatic = LACONIC_MODE_AUTOMATIC,
  compressed = LACONIC_MODE_COMPRESSED,
  plain = LACONIC_MODE_PLAIN
};

enum class Codec {
  automatic = LACONIC_CODEC_DEFAULT,
  slice = LACONIC_SLICE,
  szx = LACONIC_SZX,
  fzlight = LACONIC_FZLIGHT,
  zfp = LACONIC_ZFP,
  zfp_rate = LACONIC_ZFP_RATE,
  lz4 = LACONIC_LZ4,
  lz4hc = LACONIC_LZ4HC,
  zstd = LACONIC_ZSTD
};

enum class Framework {
  automatic = LACONIC_FRAMEWORK_DEFAULT,
  on_grid = LACONIC_ON_GRID,
  stepwise = LACONIC_STEPWISE,
  point_to_point = LACONIC_POINT_TO_POINT
};

/// Empty bound, 0 threads, no word on verify: as the environment says.
struct Options {
  std::string bound{};
  int threads = 0;
  bool unconfirmed = false;
  std::size_t segment = 0;
  Schedule schedule = Schedule::automatic;
  std::optional<bool> verify{};
  Mode mode = Mode::from_environment;
  Codec codec = Codec::automatic;
  Framework framework = Framework::automatic;

  /// Points to this one's bound.
  [[nodiscard]] laconic_options raw() const&& = delete;
  [[nodiscard]] laconic_options raw() const& {
    laconic_options o = LACONIC_OPTIONS_INIT;
    o.bound = bound.empty() ? nullptr : bound.c_str();
    o.threads = threads;
    o.unconfirmed = unconfirmed ? 1 : 0;
    o.segment = segment;
    o.schedule = static_cast<laconic_schedule>(schedule);
    if (verify) o.verify = *verify ? 1 : -1;
    o.mode = static_cast<laconic_mode>(mode);
    o.codec = static_cast<laconic_codec>(codec);
    o.framework = static_cast<laconic_framework>(framework);
    return o;
  }
};

/// Arrays of f16 and bf16, which C++20 has no types for, take the C calls.
template <typename T>
concept Element =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>;

template <Element T>
constexpr laconic_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return LACONIC_F32;
  if constexpr (std::is_same_v<T, double>) return LACONIC_F64;
  if constexpr (std::is_same_v<T, std::int32_t>) return LACONIC_I32;
  if constexpr (std::is_same_v<T, std::int64_t>) return LACONIC_I64;
  if constexpr (std::is_same_v<T, std::uint32_t>) return LACONIC_U32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return LACONIC_U64;
}

/// The parts of all ranks in one array: counts[r] elements of rank r, from element displs[r] on; without displs, one
/// part after the other.
struct Parts {
  std::span<const std::size_t> counts;
  std::span<const std::size_t> displs{};
};

/// A non-blocking call. Its buffers must outlive it. A communicator that ends before it has ended the call, too, which
/// then is in no statistics.
class [[nodiscard]] Request {
 public:
  Request() = default;
  explicit Request(laconic_request* raw) : raw_(raw) {}
  Request(Request&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  /// Waits; what went wrong is then lost.
  ~Request() { laconic_wait(&raw_); }

  /// True once done. Throws what the call reported.
  bool test() {
    int done = 0;
    check(laconic_test(&raw_, &done));
    return done != 0;
  }
  void wait() { check(laconic_wait(&raw_)); }

 private:
  laconic_request* raw_ = nullptr;
};

/// Owns a communicator. What has no member takes the C call on raw(), and check(): non-blocking calls but these three
/// (a Request owns what they return), arrays of f16 and bf16, options for one call.
class Comm {
 public:
  explicit Comm(laconic_comm* raw, const Options& options = {}) : raw_(raw) { set_options(options); }

  [[nodiscard]] int rank() const { return laconic_comm_rank(raw_.get()); }
  [[nodiscard]] int size() const { return laconic_comm_size(raw_.get()); }
  [[nodiscard]] laconic_comm* raw() const { return raw_.get(); }

  void set_options(const Options& options) {
    const laconic_options o = options.raw();
    check(laconic_comm_set_options(raw_.get(), &o));
  }

  template <Element T>
  void allreduce(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, Op op) {
    const Fit fit(send.size() == recv.size(), "allreduce: send and recv differ in size");
    fit.check(laconic_allreduce(fit.data(send), recv.data(), fit.count(recv.size()), dtype_of<T>(), raw_op(op),
                                raw_.get(), nullptr));
  }
  template <Element T>
  void allreduce(std::type_identity_t<std::span<T>> in_place, Op op) {
    check(laconic_allreduce(LACONIC_IN_PLACE, in_place.data(), in_place.size(), dtype_of<T>(), raw_op(op), raw_.get(),
                            nullptr));
  }

  /// recv is looked at on the root only, where it is of send's size.
  template <Element T>
  void reduce(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, Op op, int root) {
    const Fit fit(rank() != root || send.size() == recv.size(), "reduce: send and recv differ in size");
    fit.check(laconic_reduce(fit.data(send), recv.data(), fit.count(send.size()), dtype_of<T>(), raw_op(op), root,
                             raw_.get(), nullptr));
  }

  template <Element T>
  void scan(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, Op op) {
    const Fit fit(send.size() == recv.size(), "scan: send and recv differ in size");
    fit.check(laconic_scan(fit.data(send), recv.data(), fit.count(recv.size()), dtype_of<T>(), raw_op(op), raw_.get(),
                           nullptr));
  }
  template <Element T>
  void exscan(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, Op op) {
    const Fit fit(send.size() == recv.size(), "exscan: send and recv differ in size");
    fit.check(laconic_exscan(fit.data(send), recv.data(), fit.count(recv.size()), dtype_of<T>(), raw_op(op), raw_.get(),
                             nullptr));
  }

  /// send.size() == recv.size() * size().
  template <Element T>
  void reduce_scatter(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, Op op) {
    const Fit fit(send.size() == recv.size() * ranks(), "reduce_scatter: send is not size() recvs");
    fit.check(laconic_reduce_scatter_block(fit.data(send), recv.data(), fit.count(recv.size()), dtype_of<T>(),
                                           raw_op(op), raw_.get(), nullptr));
  }

  /// send.size() is the sum of the counts; recv is this rank's share.
  template <Element T>
  void reduce_scatter(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv,
                      std::span<const std::size_t> counts, Op op) {
    const Parts parts{.counts = counts};
    const Fit fit(lie_within(parts, send.size()) && counts[static_cast<std::size_t>(rank())] == recv.size() &&
                      std::reduce(counts.begin(), counts.end()) == send.size(),
                  "reduce_scatter: counts do not add up to send, or recv is not this rank's share");
    fit.check(laconic_reduce_scatter(send.data(), recv.data(), fit.counts(parts), dtype_of<T>(), raw_op(op), raw_.get(),
                                     nullptr));
  }

  /// recv.size() == send.size() * size().
  template <Element T>
  void allgather(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv) {
    const Fit fit(recv.size() == send.size() * ranks(), "allgather: recv is not size() sends");
    fit.check(
        laconic_allgather(fit.data(send), fit.count(send.size()), recv.data(), dtype_of<T>(), raw_.get(), nullptr));
  }

  template <Element T>
  void bcast(std::type_identity_t<std::span<T>> data, int root) {
    check(laconic_bcast(data.data(), data.size(), dtype_of<T>(), root, raw_.get(), nullptr));
  }

  /// On the root, send.size() == recv.size() * size(); elsewhere send is not looked at.
  template <Element T>
  void scatter(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, int root) {
    const Fit fit(rank() != root || send.size() == recv.size() * ranks(), "scatter: send is not size() recvs");
    fit.check(
        laconic_scatter(fit.data(send), recv.data(), fit.count(recv.size()), dtype_of<T>(), root, raw_.get(), nullptr));
  }

  /// On the root, recv.size() == send.size() * size(); elsewhere recv is not looked at.
  template <Element T>
  void gather(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, int root) {
    const Fit fit(rank() != root || recv.size() == send.size() * ranks(), "gather: recv is not size() sends");
    fit.check(
        laconic_gather(fit.data(send), fit.count(send.size()), recv.data(), dtype_of<T>(), root, raw_.get(), nullptr));
  }

  /// Parts must lie within their array, whose gaps are not written; else the call fails on every rank, elsewhere as one
  /// without counts. send is this rank's part.
  template <Element T>
  void allgatherv(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv,
                  const Parts& parts) {
    const Fit fit(lie_within(parts, recv.size()) && parts.counts[static_cast<std::size_t>(rank())] == send.size(),
                  "allgatherv: parts do not lie within recv, or send is not this rank's part");
    fit.check(laconic_allgatherv(send.data(), recv.data(), fit.counts(parts), displs_of(parts), dtype_of<T>(),
                                 raw_.get(), nullptr));
  }
  /// send and parts are looked at on the root only.
  template <Element T>
  void scatterv(std::type_identity_t<std::span<const T>> send, const Parts& parts,
                std::type_identity_t<std::span<T>> recv, int root) {
    const Fit fit(rank() != root || lie_within(parts, send.size()), "scatterv: parts do not lie within send");
    fit.check(laconic_scatterv(send.data(), fit.counts(parts), displs_of(parts), recv.data(), recv.size(),
                               dtype_of<T>(), root, raw_.get(), nullptr));
  }
  /// recv and parts are looked at on the root only.
  template <Element T>
  void gatherv(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv,
               const Parts& parts, int root) {
    const Fit fit(rank() != root || lie_within(parts, recv.size()), "gatherv: parts do not lie within recv");
    fit.check(laconic_gatherv(send.data(), send.size(), recv.data(), fit.counts(parts), displs_of(parts), dtype_of<T>(),
                              root, raw_.get(), nullptr));
  }
  template <Element T>
  void alltoallv(std::type_identity_t<std::span<const T>> send, const Parts& out,
                 std::type_identity_t<std::span<T>> recv, const Parts& in) {
    const Fit fit(lie_within(out, send.size()) && lie_within(in, recv.size()),
                  "alltoallv: parts do not lie within send, or within recv");
    fit.check(laconic_alltoallv(send.data(), fit.counts(out), displs_of(out), recv.data(), fit.counts(in),
                                displs_of(in), dtype_of<T>(), raw_.get(), nullptr));
  }

  /// Both are size() blocks of the same size.
  template <Element T>
  void alltoall(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv) {
    const std::size_t n = ranks();
    const Fit fit(recv.size() == send.size() && send.size() % n == 0,
                  "alltoall: send and recv are not size() blocks each");
    fit.check(
        laconic_alltoall(fit.data(send), recv.data(), fit.count(recv.size() / n), dtype_of<T>(), raw_.get(), nullptr));
  }

  template <Element T>
  Request iallreduce(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, Op op) {
    const Fit fit(send.size() == recv.size(), "iallreduce: send and recv differ in size");
    laconic_request* r = nullptr;
    check(laconic_iallreduce(fit.data(send), recv.data(), fit.count(recv.size()), dtype_of<T>(), raw_op(op), raw_.get(),
                             nullptr, &r));
    return fit.begun(Request(r));
  }
  /// A temporary's elements would be gone before the call is done.
  template <Element T>
  Request iallreduce(const std::vector<T>&& send, std::type_identity_t<std::span<T>> recv, Op op) = delete;
  template <Element T>
  Request ibcast(std::type_identity_t<std::span<T>> data, int root) {
    laconic_request* r = nullptr;
    check(laconic_ibcast(data.data(), data.size(), dtype_of<T>(), root, raw_.get(), nullptr, &r));
    return Request(r);
  }
  template <Element T>
  Request iallgather(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv) {
    const Fit fit(recv.size() == send.size() * ranks(), "iallgather: recv is not size() sends");
    laconic_request* r = nullptr;
    check(laconic_iallgather(fit.data(send), fit.count(send.size()), recv.data(), dtype_of<T>(), raw_.get(), nullptr,
                             &r));
    return fit.begun(Request(r));
  }

  template <Element T>
  Request iallgather(const std::vector<T>&& send, std::type_identity_t<std::span<T>> recv) = delete;

  template <Element T>
  void send(std::type_identity_t<std::span<const T>> data, int dest, int tag = 0) {
    check(laconic_send(data.data(), data.size(), dtype_of<T>(), dest, tag, raw_.get(), nullptr));
  }
  /// Returns how many elements came.
  template <Element T>
  std::size_t recv(std::type_identity_t<std::span<T>> room, int source, int tag = 0) {
    std::size_t received = 0;
    check(laconic_recv(room.data(), room.size(), dtype_of<T>(), source, tag, &received, raw_.get(), nullptr));
    return received;
  }
  template <Element T>
  std::size_t sendrecv(std::type_identity_t<std::span<const T>> data, int dest, std::type_identity_t<std::span<T>> room,
                       int source, int tag = 0) {
    std::size_t received = 0;
    check(laconic_sendrecv(data.data(), data.size(), dtype_of<T>(), dest, tag, room.data(), room.size(), dtype_of<T>(),
                           source, tag, &received, raw_.get(), nullptr));
    return received;
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
  static laconic_op raw_op(Op op) { return static_cast<laconic_op>(op); }
  // Whether the sizes of this rank's arrays fit, which the C interface does not know. If not, it gets an array, or
  // counts, that are not there, and so tells all ranks; and what is wrong is thrown here.
  class Fit {
   public:
    Fit(bool fits, const char* otherwise) : fits_(fits), otherwise_(otherwise) {}
    template <class T>
    [[nodiscard]] const T* data(std::span<const T> send) const {
      return fits_ ? send.data() : nullptr;
    }
    [[nodiscard]] std::size_t count(std::size_t n) const { return fits_ || n != 0 ? n : 1; }
    [[nodiscard]] const std::size_t* counts(const Parts& parts) const { return fits_ ? parts.counts.data() : nullptr; }
    void check(int code) const {
      if (!fits_) throw Error(LACONIC_INVALID_ARGUMENT, otherwise_);
      public_v1::check(code);
    }
    // A call that was begun: where it cannot be, not before it has ended on this rank.
    [[nodiscard]] Request begun(Request request) const {
      if (fits_) return request;
      {
        const Request ending(std::move(request));
      }
      throw Error(LACONIC_INVALID_ARGUMENT, otherwise_);
    }

   private:
    bool fits_;
    const char* otherwise_;
  };

  [[nodiscard]] std::size_t ranks() const {
    if (raw_ == nullptr) throw Error(LACONIC_INVALID_ARGUMENT, "comm is null");  // moved from
    return static_cast<std::size_t>(size());
  }
  [[nodiscard]] bool lie_within(const Parts& parts, std::size_t elements) const {
    const std::size_t n = ranks();
    if (parts.counts.size() != n || (!parts.displs.empty() && parts.displs.size() != n)) return false;
    std::size_t packed = 0;
    for (std::size_t r = 0; r < n; ++r) {
      const std::size_t first = parts.displs.empty() ? packed : parts.displs[r];
      if (parts.counts[r] != 0 && (first > elements || parts.counts[r] > elements - first)) return false;
      packed += parts.counts[r];
    }
    return true;
  }
  static const std::size_t* displs_of(const Parts& parts) {
    return parts.displs.empty() ? nullptr : parts.displs.data();
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
