#include "collective/outliers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/half.h"

namespace laconic {

Outliers count_outliers(ConstArray x, double limit, double fill) {
  Outliers found;
  const auto look = [&]<typename Bits>(Bits, auto widen) {
    const auto* bytes = static_cast<const std::uint8_t*>(x.data);
    const auto magnitude = [&](std::size_t i) {
      Bits bits;
      std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
      return std::abs(static_cast<double>(widen(bits)));
    };
    for (std::size_t i = 0; i < x.count; ++i) {
      const double m = magnitude(i);
      found.count += m > limit && m <= fill ? 1U : 0U;
      found.fills += m == fill ? 1U : 0U;
      found.within = !(m > limit) && m > found.within ? m : found.within;
    }
    for (std::size_t k = 0; k < Outliers::samples && x.count > 0; ++k)
      if (magnitude(Outliers::position(k, x.count)) == fill) found.fill_at[k / 64] |= std::uint64_t{1} << (k % 64);
  };
  switch (x.dtype) {
    case DType::f64:
      look(double{}, [](double v) { return v; });
      break;
    case DType::f16:
      look(std::uint16_t{}, f32_of_f16);
      break;
    case DType::bf16:
      look(std::uint16_t{}, f32_of_bf16);
      break;
    default:
      look(float{}, [](float v) { return v; });
  }
  return found;
}

// An exception in a sum takes 9 bytes and more, which must be small beside the element bytes that compression saves.
// Where fill values and others meet, the sum has to hold both.
bool too_many_outliers(const AllOutliers& all, std::uint64_t values) {
  constexpr double one_in = 8;
  const auto lone = static_cast<double>(all.count - std::min(all.count, all.fills));
  return lone / static_cast<double>(values) + all.apart > 1 / one_in;
}

}  // namespace laconic
