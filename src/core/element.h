// Elements as numbers: how each dtype is stored and what it is computed in.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/half.h"

namespace laconic {

template <class T>
struct PlainElement {
  using Stored = T;
  static T widen(T x) { return x; }
  static T narrow(T x) { return x; }
};

struct HalfElement {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t x) { return f32_of_f16(x); }
  static std::uint16_t narrow(float x) { return f16_of_f32(x); }
};

struct BrainHalfElement {
  using Stored = std::uint16_t;
  static float widen(std::uint16_t x) { return f32_of_bf16(x); }
  static std::uint16_t narrow(float x) { return bf16_of_f32(x); }
};

/// work(element) with one of the above. Nothing for a value that is no DType.
template <class Work>
void with_element(DType dtype, Work&& work) {
  switch (dtype) {
    case DType::f32:
      return work(PlainElement<float>{});
    case DType::f64:
      return work(PlainElement<double>{});
    case DType::f16:
      return work(HalfElement{});
    case DType::bf16:
      return work(BrainHalfElement{});
    case DType::i32:
      return work(PlainElement<std::int32_t>{});
    case DType::i64:
      return work(PlainElement<std::int64_t>{});
    case DType::u32:
      return work(PlainElement<std::uint32_t>{});
    case DType::u64:
      return work(PlainElement<std::uint64_t>{});
  }
}

}  // namespace laconic
