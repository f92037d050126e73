#include "collective/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/wide.h"  // exact for sums of f32 and, near enough, of f64

namespace laconic::reference {
namespace {

template <typename T>
Wide half_ulp(T v) {
  if (!std::isfinite(v)) return 0;
  const T up = std::nextafter(std::abs(v), std::numeric_limits<T>::infinity());
  return std::isinf(up) ? static_cast<Wide>(std::abs(v)) * 1e-7 : (static_cast<Wide>(up) - std::abs(v)) / 2;
}

/// IEEE meaning of a sum with NaN or infinities in it; a finite number when all operands are finite.
template <typename T>
double class_of_sum(const std::vector<std::vector<T>>& operands, std::size_t i) {
  double sum = 0;
  for (const auto& x : operands) {
    if (!std::isfinite(x[i])) sum += static_cast<double>(x[i]);
  }
  return sum;
}

/// Whether an element is near the sum for certain, as most are; the exact sum takes twenty times as long.
template <typename T>
bool surely_near(T got, const std::vector<std::vector<T>>& operands, std::size_t i, double bound, int divisor) {
  double sum = 0;
  double sizes = 0;
  for (const auto& x : operands) {
    sum += static_cast<double>(x[i]);
    sizes += std::abs(static_cast<double>(x[i]));
  }
  const double unsure = sizes * static_cast<double>(operands.size() + 2) * std::numeric_limits<double>::epsilon();
  return sizes < std::numeric_limits<T>::max() / 2 && std::abs(sum / divisor - got) + unsure <= bound;
}

}  // namespace

template <typename T>
void expect_sum(const std::vector<T>& got, const std::vector<std::vector<T>>& operands, double bound, int divisor) {
  ASSERT_EQ(got.size(), operands[0].size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (surely_near(got[i], operands, i, bound, divisor)) continue;
    const double special = class_of_sum(operands, i);
    if (std::isnan(special)) {
      ASSERT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
      continue;
    }
    if (std::isinf(special)) {
      ASSERT_EQ(static_cast<double>(got[i]), special) << "element " << i;
      continue;
    }
    Wide exact = 0;
    for (const auto& x : operands) exact += x[i];
    exact /= divisor;
    const Wide error = exact > got[i] ? exact - got[i] : got[i] - exact;
    const auto nearest = static_cast<T>(exact);
    if (std::isinf(nearest)) {
      ASSERT_EQ(got[i], nearest) << "element " << i;
      continue;
    }
    const Wide slack = static_cast<Wide>(bound) + half_ulp(nearest) * (1 + 1e-9);
    ASSERT_LE(error, slack) << "element " << i << ": got " << got[i] << ", exact " << static_cast<double>(exact)
                            << ", error " << static_cast<double>(error) << ", bound " << bound;
  }
}

template void expect_sum(const std::vector<float>&, const std::vector<std::vector<float>>&, double, int);
template void expect_sum(const std::vector<double>&, const std::vector<std::vector<double>>&, double, int);

}  // namespace laconic::reference
