// The arrays of a call: part of laconic.hpp.
#pragma once

#include <laconic/laconic.h>

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

namespace laconic {
inline namespace public_v1 {

/// In place of the array that is sent: what is sent lies in the one that receives, where MPI_IN_PLACE would have it. In
/// place of the one in which a scatter's root receives: its part stays where it is.
struct InPlace {
  explicit InPlace() = default;
};
inline constexpr InPlace in_place{};

/// A span, or what one can be made of; or in_place. T is const where it is sent.
template <typename T>
class Buffer {
 public:
  using Pointer = std::conditional_t<std::is_const_v<T>, const void*, void*>;

  constexpr Buffer() = default;
  constexpr Buffer(InPlace /*tag*/) : in_place_(true) {}  // NOLINT(google-explicit-constructor)
  template <typename... From>
    requires(sizeof...(From) != 0) && std::constructible_from<std::span<T>, From...>
  constexpr Buffer(From&&... from)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : elements_(std::forward<From>(from)...) {}

  [[nodiscard]] constexpr bool is_in_place() const { return in_place_; }
  [[nodiscard]] constexpr std::size_t size_or(std::size_t if_in_place) const {
    return in_place_ ? if_in_place : elements_.size();
  }
  /// For C.
  [[nodiscard]] Pointer data() const { return in_place_ ? LACONIC_IN_PLACE : elements_.data(); }

 private:
  std::span<T> elements_{};
  bool in_place_ = false;
};

/// False of a temporary that owns its elements: they would be gone before a call that has only begun reads them.
template <typename From>
concept Lasting = !std::ranges::range<From> || std::ranges::borrowed_range<From>;

/// What a non-blocking call sends.
template <typename T>
class LastingBuffer : public Buffer<const T> {
 public:
  constexpr LastingBuffer() = default;
  constexpr LastingBuffer(InPlace tag) : Buffer<const T>(tag) {}  // NOLINT(google-explicit-constructor)
  template <typename... From>
    requires(sizeof...(From) != 0) && std::constructible_from<std::span<const T>, From...> && (Lasting<From> && ...)
  constexpr LastingBuffer(From&&... from)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : Buffer<const T>(std::forward<From>(from)...) {}
};

// With an element type that is named, comm.allreduce<float>(...), an argument may be anything that they can be made of.
template <typename T>
using Send = std::type_identity_t<Buffer<const T>>;
template <typename T>
using LastingSend = std::type_identity_t<LastingBuffer<T>>;
template <typename T>
using Recv = std::type_identity_t<std::span<T>>;
template <typename T>
using RecvOrInPlace = std::type_identity_t<Buffer<T>>;

/// The parts of all ranks in one array: counts[r] elements of rank r, from element displs[r] on; without displs, one
/// part after the other.
struct Parts {
  std::span<const std::size_t> counts;
  std::span<const std::size_t> displs{};
};

}  // namespace public_v1
}  // namespace laconic
