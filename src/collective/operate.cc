#include "collective/operate.h"

#include <cstring>
#include <type_traits>

#include "core/element.h"
#include "core/extreme.h"
#include "core/one_nan.h"

namespace laconic {
namespace {

/// Integers wrap: they are added and multiplied as unsigned ones.
template <class Kind>
struct WrappingOf {
  using Type = Kind;
};
template <>
struct WrappingOf<PlainElement<std::int32_t>> {
  using Type = PlainElement<std::uint32_t>;
};
template <>
struct WrappingOf<PlainElement<std::int64_t>> {
  using Type = PlainElement<std::uint64_t>;
};

template <class Kind, class F>
void each(MutArray a, F f) {
  using E = typename Kind::Stored;
  auto* bytes = static_cast<std::uint8_t*>(a.data);
  for (std::size_t i = 0; i < a.count; ++i) {
    E v;
    std::memcpy(&v, bytes + i * sizeof(E), sizeof(E));
    v = Kind::narrow(f(Kind::widen(v), i));
    std::memcpy(bytes + i * sizeof(E), &v, sizeof(E));
  }
}

template <class Value>
Value common(Value v) {
  if constexpr (std::is_floating_point_v<Value>) return one_nan(v);
  return v;
}

template <class Kind>
void combine(Op op, MutArray a, ConstArray b) {
  using E = typename Kind::Stored;
  const auto* bytes = static_cast<const std::uint8_t*>(b.data);
  const auto other = [bytes](std::size_t i) {
    E v;
    std::memcpy(&v, bytes + i * sizeof(E), sizeof(E));
    return Kind::widen(v);
  };
  if (op == Op::product) return each<Kind>(a, [&](auto v, std::size_t i) { return common(v * other(i)); });
  each<Kind>(a, [&](auto v, std::size_t i) { return common(v + other(i)); });
}

}  // namespace

void operate(Op op, MutArray a, ConstArray b) {
  if (is_extreme(op)) return take_extreme(op, a, b);
  with_element(a.dtype, [&]<class Kind>(Kind) { combine<typename WrappingOf<Kind>::Type>(op, a, b); });
}

void divide(MutArray a, int divisor) {
  with_element(a.dtype, [&]<class Kind>(Kind) {
    using Value = decltype(Kind::widen({}));
    if constexpr (std::is_floating_point_v<Value>) {
      each<Kind>(a, [=](Value v, std::size_t) { return v / static_cast<Value>(divisor); });
    }
  });
}

}  // namespace laconic
