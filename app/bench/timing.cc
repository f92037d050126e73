#include "bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace laconic::app {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  int n = 0;
  for (const double v : values) {
    if (!(v > 0) || !std::isfinite(v)) continue;
    sum += std::log(v);
    ++n;
  }
  return n == 0 ? 0 : std::exp(sum / n);
}

double time_once(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<double> time_interleaved(const std::vector<std::function<void()>>& tasks, int repetitions, int inner) {
  std::vector<std::vector<double>> seconds(tasks.size());
  for (int r = -1; r < repetitions; ++r) {
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const double s = time_once([&] {
        for (int i = 0; i < inner; ++i) tasks[t]();
      });
      if (r >= 0) seconds[t].push_back(s / inner);
    }
  }
  std::vector<double> medians;
  medians.reserve(seconds.size());
  for (auto& s : seconds) medians.push_back(median(std::move(s)));
  return medians;
}

}  // namespace laconic::app
