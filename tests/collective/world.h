// Runs a collective on all ranks of a threads group and keeps what each rank got.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "collective/communicator.h"
#include "core/array.h"
#include "transport/threads.h"

namespace laconic::world {

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  return DType::f32;
}

template <typename T>
ConstArray view(const std::vector<T>& v) {
  return {v.data(), v.size(), dtype_of<T>()};
}
template <typename T>
MutArray view(std::vector<T>& v) {
  return {v.data(), v.size(), dtype_of<T>()};
}

/// Equal as bytes: NaN equals itself, 0 differs from -0.
template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
struct Run {
  std::vector<std::vector<T>> results;  ///< per rank
  std::vector<Report> reports;
};

/// body(rank, communicator) returns the rank's result and report. nodes: see run_ranks().
template <typename T>
Run<T> run(int ranks, const std::function<std::pair<std::vector<T>, Report>(int, Communicator&)>& body,
           std::vector<int> nodes = {}) {
  Run<T> out;
  out.results.resize(static_cast<std::size_t>(ranks));
  out.reports.resize(static_cast<std::size_t>(ranks));
  run_ranks(
      ranks,
      [&](Transport& t) {
        Communicator comm(t);
        auto [result, report] = body(t.rank(), comm);
        out.results[static_cast<std::size_t>(t.rank())] = std::move(result);
        out.reports[static_cast<std::size_t>(t.rank())] = report;
      },
      30, std::move(nodes));
  return out;
}

template <typename T>
void expect_same_everywhere(const Run<T>& run) {
  for (std::size_t r = 1; r < run.results.size(); ++r) {
    EXPECT_TRUE(same_bytes(run.results[0], run.results[r])) << "rank " << r << " holds other bytes than rank 0";
  }
}

}  // namespace laconic::world
