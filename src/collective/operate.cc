#include "collective/operate.h"

#include <cstring>
#include <type_traits>

#include "collective/extreme.h"
#include "core/half.h"

namespace laconic {
namespace {

/// Elements as they lie in memory, and as they are computed with.
template <class Stored>
struct Plain {
  using Element = Stored;
  static auto widen(Stored v) {
    if constexpr (std::is_integral_v<Stored>) {
      return static_cast<std::make_unsigned_t<Stored>>(v);  // wraps
    } else {
      return v;
    }
  }
  template <class V>
  static Stored narrow(V v) {
    return static_cast<Stored>(v);
  }
};
struct Half {
  using Element = std::uint16_t;
  static float widen(std::uint16_t v) { return f32_of_f16(v); }
  static std::uint16_t narrow(float v) { return f16_of_f32(v); }
};
struct BrainHalf {
  using Element = std::uint16_t;
  static float widen(std::uint16_t v) { return f32_of_bf16(v); }
  static std::uint16_t narrow(float v) { return bf16_of_f32(v); }
};

template <class Kind, class F>
void each(MutArray a, F f) {
  using E = typename Kind::Element;
  auto* bytes = static_cast<std::uint8_t*>(a.data);
  for (std::size_t i = 0; i < a.count; ++i) {
    E v;
    std::memcpy(&v, bytes + i * sizeof(E), sizeof(E));
    v = Kind::narrow(f(Kind::widen(v), i));
    std::memcpy(bytes + i * sizeof(E), &v, sizeof(E));
  }
}

template <class Kind>
void combine(Op op, MutArray a, ConstArray b) {
  using E = typename Kind::Element;
  const auto* bytes = static_cast<const std::uint8_t*>(b.data);
  const auto other = [bytes](std::size_t i) {
    E v;
    std::memcpy(&v, bytes + i * sizeof(E), sizeof(E));
    return Kind::widen(v);
  };
  if (op == Op::product) return each<Kind>(a, [&](auto v, std::size_t i) { return v * other(i); });
  each<Kind>(a, [&](auto v, std::size_t i) { return v + other(i); });
}

}  // namespace

void operate(Op op, MutArray a, ConstArray b) {
  if (is_extreme(op)) return take_extreme(op, a, b);
  switch (a.dtype) {
    case DType::f32:
      return combine<Plain<float>>(op, a, b);
    case DType::f64:
      return combine<Plain<double>>(op, a, b);
    case DType::f16:
      return combine<Half>(op, a, b);
    case DType::bf16:
      return combine<BrainHalf>(op, a, b);
    case DType::i32:
    case DType::u32:
      return combine<Plain<std::uint32_t>>(op, a, b);
    case DType::i64:
    case DType::u64:
      return combine<Plain<std::uint64_t>>(op, a, b);
  }
}

void divide(MutArray a, int divisor) {
  switch (a.dtype) {
    case DType::f32:
      return each<Plain<float>>(a, [=](float v, std::size_t) { return v / static_cast<float>(divisor); });
    case DType::f64:
      return each<Plain<double>>(a, [=](double v, std::size_t) { return v / divisor; });
    case DType::f16:
      return each<Half>(a, [=](float v, std::size_t) { return v / static_cast<float>(divisor); });
    case DType::bf16:
      return each<BrainHalf>(a, [=](float v, std::size_t) { return v / static_cast<float>(divisor); });
    default:
      return;
  }
}

}  // namespace laconic
