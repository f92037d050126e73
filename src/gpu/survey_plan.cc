#include "gpu/survey_plan.h"

#include <bit>
#include <cmath>
#include <type_traits>

#include "core/element.h"

namespace laconic::gpu {
namespace {

template <std::size_t bytes>
using BitsOf =
    std::conditional_t<bytes == 8, std::uint64_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint16_t>>;

/// The value of a magnitude's bits.
template <class Kind>
double magnitude(std::uint64_t bits) {
  using Stored = typename Kind::Stored;
  return static_cast<double>(Kind::widen(std::bit_cast<Stored>(static_cast<BitsOf<sizeof(Stored)>>(bits))));
}

/// The first of 0 .. end - 1 for which a monotone predicate holds, or end.
template <class Predicate>
std::uint64_t first_with(std::uint64_t end, Predicate holds) {
  std::uint64_t begin = 0;
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

}  // namespace

OutlierBits outlier_bits(DType dtype, double limit, double fill) {
  OutlierBits found;
  with_element(dtype, [&]<class Kind>(Kind) {
    if constexpr (!std::is_integral_v<decltype(Kind::widen({}))>) {
      const auto value = [](std::uint64_t bits) { return magnitude<Kind>(bits); };
      const auto nan = std::uint64_t{1} << (8 * sizeof(typename Kind::Stored) - 1);
      const std::uint64_t end = first_with(nan, [&](std::uint64_t b) { return std::isnan(value(b)); });
      found.first = first_with(end, [&](std::uint64_t b) { return value(b) > limit; });
      const std::uint64_t beyond = first_with(end, [&](std::uint64_t b) { return !(value(b) <= fill); });
      found.size = beyond > found.first ? beyond - found.first : 0;
      if (beyond > 0 && value(beyond - 1) == fill) found.fill = beyond - 1;
    }
  });
  return found;
}

}  // namespace laconic::gpu
