// Speed of the scan behind relative bounds, beside copying and summing the same bytes: in cache (256 KiB) and from
// memory (128 MiB). Every collective with a relative bound pays one such pass.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/half.h"
#include "core/range.h"

namespace {

using laconic::DType;

std::vector<float> wave(std::int64_t bytes) {
  std::vector<float> x(static_cast<std::size_t>(bytes) / sizeof(float));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) * 0.01F);
  return x;
}

void count_bytes(benchmark::State& state) { state.SetBytesProcessed(state.iterations() * state.range(0)); }

void copy(benchmark::State& state) {
  const auto x = wave(state.range(0));
  std::vector<float> y(x.size());
  for (auto _ : state) {
    std::memcpy(y.data(), x.data(), x.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
  count_bytes(state);
}

/// The least that any pass over the data costs: read it all.
void read(benchmark::State& state) {
  const auto x = wave(state.range(0));
  for (auto _ : state) {
    std::uint64_t sums[8] = {};
    const auto* words = reinterpret_cast<const std::uint8_t*>(x.data());
    for (std::size_t i = 0; i + 64 <= x.size() * sizeof(float); i += 64) {
      std::uint64_t w[8];
      std::memcpy(w, words + i, sizeof w);
      for (int k = 0; k < 8; ++k) sums[k] += w[k];
    }
    benchmark::DoNotOptimize(sums);
  }
  count_bytes(state);
}

/// The wave's bytes as elements of the dtype, of which f16 has NaN then; so f16 has its values instead.
void scan(benchmark::State& state, DType dtype) {
  const auto x = wave(state.range(0));
  std::vector<std::uint16_t> halves(dtype == DType::f16 ? 2 * x.size() : 0);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = laconic::f16_of_f32(x[i / 2]);
  const void* const data = halves.empty() ? static_cast<const void*>(x.data()) : halves.data();
  for (auto _ : state)
    benchmark::DoNotOptimize(laconic::scan({data, x.size() * sizeof(float) / size_of(dtype), dtype}));
  count_bytes(state);
}

void scan_with_nan_everywhere(benchmark::State& state) {
  auto x = wave(state.range(0));
  for (std::size_t i = 0; i < x.size(); i += 100) x[i] = std::numeric_limits<float>::quiet_NaN();
  for (auto _ : state) benchmark::DoNotOptimize(laconic::scan({x.data(), x.size(), DType::f32}));
  count_bytes(state);
}

void scan_of_subnormals(benchmark::State& state) {
  auto x = wave(state.range(0));
  for (float& v : x) v *= std::numeric_limits<float>::min();
  for (auto _ : state) benchmark::DoNotOptimize(laconic::scan({x.data(), x.size(), DType::f32}));
  count_bytes(state);
}

void sizes(benchmark::internal::Benchmark* b) { b->Arg(256 << 10)->Arg(128 << 20); }

BENCHMARK(copy)->Apply(sizes);
BENCHMARK(read)->Apply(sizes);
BENCHMARK_CAPTURE(scan, f32, DType::f32)->Apply(sizes);
BENCHMARK_CAPTURE(scan, f64, DType::f64)->Apply(sizes);
BENCHMARK_CAPTURE(scan, f16, DType::f16)->Apply(sizes);
BENCHMARK_CAPTURE(scan, i64, DType::i64)->Apply(sizes);
BENCHMARK(scan_with_nan_everywhere)->Apply(sizes);
BENCHMARK(scan_of_subnormals)->Apply(sizes);

}  // namespace
