#include "report/quality.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/half.h"

namespace laconic::app {
namespace {

/// The value that each storage type stands for.
struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

double to_double(float v) { return v; }
double to_double(double v) { return v; }
double to_double(std::int32_t v) { return v; }
double to_double(std::uint32_t v) { return v; }
double to_double(std::int64_t v) { return static_cast<double>(v); }
double to_double(std::uint64_t v) { return static_cast<double>(v); }
double to_double(Brain v) { return f32_of_bf16(v.bits); }
double to_double(Half v) { return f32_of_f16(v.bits); }

template <class T>
T load(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::uint8_t*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

/// The bytes of a value: -0 differs from 0, a NaN equals itself.
template <class T>
auto bits(T v) {
  return std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(v);
}

/// Calls f with a value of the storage type for `t`.
template <class F>
auto with_type(DType t, F&& f) {
  switch (t) {
    case DType::f64:
      return f(double{});
    case DType::f16:
      return f(Half{});
    case DType::bf16:
      return f(Brain{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u32:
      return f(std::uint32_t{});
    case DType::u64:
      return f(std::uint64_t{});
    case DType::f32:
      break;
  }
  return f(float{});
}

template <class T>
void compare_typed(Quality& q, const void* original, const void* decoded, std::size_t count, double bound,
                   std::optional<double> fill) {
  const bool started = q.compared > 0;
  double lowest = started ? q.min : HUGE_VAL;
  double highest = started ? q.max : -HUGE_VAL;
  const double fill_value = fill ? *fill : std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < count; ++i) {
    const T a = load<T>(original, i);
    const T b = load<T>(decoded, i);
    const bool same_bits = bits(a) == bits(b);
    const double x = to_double(a);
    const double error = std::fabs(x - to_double(b));
    if (!std::isfinite(x) || x == fill_value) {
      q.violations += same_bits || error <= bound ? 0 : 1;
      continue;
    }
    // Written so that a NaN that appeared from nowhere counts.
    if (!(error <= bound) || (bound == 0 && !same_bits)) ++q.violations;
    q.max_error = std::max(q.max_error, error);
    q.sum_squares += static_cast<long double>(error) * error;
    lowest = std::min(lowest, x);
    highest = std::max(highest, x);
    ++q.compared;
  }
  if (q.compared > 0) {
    q.min = lowest;
    q.max = highest;
  }
}

}  // namespace

double Quality::rmse() const {
  return compared == 0 ? 0 : static_cast<double>(std::sqrt(sum_squares / static_cast<long double>(compared)));
}

double Quality::nrmse() const {
  if (sum_squares == 0) return 0;
  return rmse() / range();
}

double Quality::psnr() const { return -20 * std::log10(nrmse()); }

void compare(Quality& q, ConstArray original, ConstArray decoded, double bound, std::optional<double> fill) {
  with_type(original.dtype,
            [&](auto t) { compare_typed<decltype(t)>(q, original.data, decoded.data, original.count, bound, fill); });
}

Range scan_without(ConstArray x, std::optional<double> fill) {
  if (!fill) return scan(x);
  Range r;
  r.count = x.count;
  double lowest = HUGE_VAL;
  double highest = -HUGE_VAL;
  with_type(x.dtype, [&](auto t) {
    for (std::size_t i = 0; i < x.count; ++i) {
      const double v = to_double(load<decltype(t)>(x.data, i));
      if (!std::isfinite(v) || v == *fill) {
        ++r.non_finite;
        continue;
      }
      lowest = std::min(lowest, v);
      highest = std::max(highest, v);
    }
  });
  if (!r.empty()) {
    r.min = lowest;
    r.max = highest;
  }
  return r;
}

std::uint64_t occurrences(ConstArray x, double value) {
  std::uint64_t found = 0;
  with_type(x.dtype, [&](auto t) {
    for (std::size_t i = 0; i < x.count; ++i)
      if (to_double(load<decltype(t)>(x.data, i)) == value) ++found;
  });
  return found;
}

double rounded_to(DType dtype, double v) {
  const auto single = static_cast<float>(v);
  switch (dtype) {
    case DType::f16:
      return static_cast<double>(f32_of_f16(f16_of_f32(single)));
    case DType::bf16:
      return static_cast<double>(f32_of_bf16(bf16_of_f32(single)));
    case DType::f32:
      return static_cast<double>(single);
    default:
      return v;
  }
}

double value_at(ConstArray x, std::size_t i) {
  return with_type(x.dtype, [&](auto t) { return to_double(load<decltype(t)>(x.data, i)); });
}

}  // namespace laconic::app
