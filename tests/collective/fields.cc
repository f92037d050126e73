#include "collective/fields.h"

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <utility>

namespace laconic::testing_fields {
namespace {

/// Normally distributed numbers, by Marsaglia's polar method. (The standard library's takes two logarithms of long
/// doubles for each uniform number that it needs.)
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : random_(seed) {}
  std::uint64_t bits() { return random_(); }
  double operator()() {
    if (spare_) {
      spare_ = false;
      return x_;
    }
    double y = 0;
    double square = 0;
    do {
      x_ = symmetric();
      y = symmetric();
      square = x_ * x_ + y * y;
    } while (square > 1 || square == 0);
    const double scale = std::sqrt(-2 * std::log(square) / square);
    x_ *= scale;
    spare_ = true;
    return y * scale;
  }

 private:
  double symmetric() { return 2 * (static_cast<double>(random_()) * 0x1p-64) - 1; }

  std::mt19937_64 random_;
  double x_ = 0;
  bool spare_ = false;
};

template <typename T>
Field<T> made(const std::string& kind, std::size_t count, int rank) {
  Normal normal(static_cast<std::uint64_t>(rank) * 7919 + 17);
  Field<T> x(count);
  const auto fill = [&](auto value) {
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<T>(value(static_cast<double>(i) * 0.003 + rank));
  };
  if (kind == "smooth") {
    fill([&](double t) { return std::sin(t) + 0.3 * std::cos(7 * t) + 0.001 * normal(); });
  } else if (kind == "noise") {
    fill([&](double) { return normal(); });
  } else if (kind == "constant") {
    fill([&](double) { return 1.5 + rank; });
  } else if (kind == "offset") {
    fill([&](double t) { return 300 + std::sin(t); });
  } else if (kind == "denormal") {
    fill([&](double) { return std::numeric_limits<T>::denorm_min() * static_cast<T>(normal.bits() % 1000); });
  } else if (kind == "wild") {
    fill([&](double) { return std::ldexp(normal(), static_cast<int>(normal.bits() % 200) - 100); });
  } else if (kind == "integer") {
    fill([&](double) { return static_cast<std::int64_t>(normal.bits() % 2001) - 1000; });
  } else if (kind != "zero") {
    throw std::invalid_argument("no field is called " + kind);
  }
  return x;
}

}  // namespace

// Tests ask for the same again and again, and to make it takes longer than what they do with it. A shorter one is the
// beginning of a longer one.
template <typename T>
Field<T> make(const std::string& kind, std::size_t count, int rank) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, Field<T>> known;
  const std::lock_guard lock(mutex);
  Field<T>& longest = known[{kind, rank}];
  if (longest.size() < count) longest = made<T>(kind, count, rank);
  return {longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(count)};
}

template Field<float> make(const std::string&, std::size_t, int);
template Field<double> make(const std::string&, std::size_t, int);
template Field<std::int32_t> make(const std::string&, std::size_t, int);
template Field<std::int64_t> make(const std::string&, std::size_t, int);

}  // namespace laconic::testing_fields
