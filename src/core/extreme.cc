#include "core/extreme.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/one_nan.h"

namespace laconic {
namespace {

/// a and b as they compare: floats as signed integers in their own order, which their bits are from zero upwards.
template <typename Signed>
Signed ordered(Signed bits) {
  return bits < 0 ? static_cast<Signed>(bits ^ std::numeric_limits<Signed>::max()) : bits;
}

template <typename T, typename Pick>
void combine(MutArray a, ConstArray b, Pick pick) {
  auto* to = static_cast<std::uint8_t*>(a.data);
  const auto* from = static_cast<const std::uint8_t*>(b.data);
  for (std::size_t i = 0; i < a.count; ++i) {
    T x, y;
    std::memcpy(&x, to + i * sizeof(T), sizeof(T));
    std::memcpy(&y, from + i * sizeof(T), sizeof(T));
    x = pick(x, y);
    std::memcpy(to + i * sizeof(T), &x, sizeof(T));
  }
}

template <typename T>
void integers(Op op, MutArray a, ConstArray b) {
  if (op == Op::min) return combine<T>(a, b, [](T x, T y) { return std::min(x, y); });
  combine<T>(a, b, [](T x, T y) { return std::max(x, y); });
}

/// Floats by their bits.
template <typename Signed>
void floats(Op op, MutArray a, ConstArray b) {
  const OneNan one(a.dtype);
  const auto infinity = static_cast<Signed>(one.infinity), nan = static_cast<Signed>(one.nan);
  const auto pick = [=](Signed x, Signed y, bool first) {
    const auto is_nan = [=](Signed v) {
      return static_cast<Signed>(v & std::numeric_limits<Signed>::max()) > infinity;
    };
    return is_nan(x) || is_nan(y) ? nan : first ? x : y;
  };
  if (op == Op::min) {
    return combine<Signed>(a, b, [=](Signed x, Signed y) { return pick(x, y, ordered(x) < ordered(y)); });
  }
  combine<Signed>(a, b, [=](Signed x, Signed y) { return pick(x, y, ordered(x) > ordered(y)); });
}

}  // namespace

void take_extreme(Op op, MutArray a, ConstArray b) {
  switch (a.dtype) {
    case DType::f32:
      return floats<std::int32_t>(op, a, b);
    case DType::f64:
      return floats<std::int64_t>(op, a, b);
    case DType::f16:
    case DType::bf16:
      return floats<std::int16_t>(op, a, b);
    case DType::i32:
      return integers<std::int32_t>(op, a, b);
    case DType::i64:
      return integers<std::int64_t>(op, a, b);
    case DType::u32:
      return integers<std::uint32_t>(op, a, b);
    case DType::u64:
      return integers<std::uint64_t>(op, a, b);
  }
}

}  // namespace laconic
