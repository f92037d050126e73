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
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
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

enum class Op { sum = LACONIC_SUM, average = LACONIC_AVERAGE };

/// Empty bound, 0 threads: as the environment says.
struct Options {
  std::string bound{};
  int threads = 0;
  bool unconfirmed = false;
  std::size_t segment = 0;

  [[nodiscard]] laconic_options raw() const {
    laconic_options o = LACONIC_OPTIONS_INIT;
    o.bound = bound.empty() ? nullptr : bound.c_str();
    o.threads = threads;
    o.unconfirmed = unconfirmed ? 1 : 0;
    o.segment = segment;
    return o;
  }
};

template <typename T>
concept Element = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
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

/// Owns a communicator.
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
    require(send.size() == recv.size(), "allreduce: send and recv differ in size");
    check(laconic_allreduce(send.data(), recv.data(), recv.size(), dtype_of<T>(), raw_op(op), raw_.get(), nullptr));
  }
  template <Element T>
  void allreduce(std::type_identity_t<std::span<T>> in_place, Op op) {
    check(laconic_allreduce(LACONIC_IN_PLACE, in_place.data(), in_place.size(), dtype_of<T>(), raw_op(op), raw_.get(),
                            nullptr));
  }

  /// send.size() == recv.size() * size().
  template <Element T>
  void reduce_scatter(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv, Op op) {
    require(send.size() == recv.size() * static_cast<std::size_t>(size()), "reduce_scatter: send is not size() recvs");
    check(laconic_reduce_scatter_block(send.data(), recv.data(), recv.size(), dtype_of<T>(), raw_op(op), raw_.get(),
                                       nullptr));
  }

  /// recv.size() == send.size() * size().
  template <Element T>
  void allgather(std::type_identity_t<std::span<const T>> send, std::type_identity_t<std::span<T>> recv) {
    require(recv.size() == send.size() * static_cast<std::size_t>(size()), "allgather: recv is not size() sends");
    check(laconic_allgather(send.data(), send.size(), recv.data(), dtype_of<T>(), raw_.get(), nullptr));
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
  // A size that is wrong on every rank alike; where ranks differ, the library tells all of them.
  static void require(bool holds, const char* text) {
    if (!holds) throw Error(LACONIC_INVALID_ARGUMENT, text);
  }

  std::unique_ptr<laconic_comm, Free> raw_;
};

/// What a stream says of itself; validates all of it.
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
