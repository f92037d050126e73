// What tests of calls that the plain MPI makes in Laconic's place begin with.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "collective/communicator.h"
#include "core/bound.h"
#include "transport/mpi/mpi.h"

namespace laconic::plain_mpi {

inline Options with(const char* bound, Mode mode) {
  Options o;
  o.bound = Bound::parse(bound);
  o.mode = mode;
  return o;
}

class PlainMpi : public testing::Test {
 protected:
  PlainMpi()
      : comm(make_mpi_transport(MPI_COMM_WORLD)),
        n(static_cast<std::size_t>(comm.size())),
        me(static_cast<std::size_t>(comm.rank())) {}
  Communicator comm;
  std::size_t n, me;

  /// Rank r's operand: whole numbers, whose sums no order of additions changes.
  static std::vector<double> operand(std::size_t count, std::size_t r) {
    std::vector<double> x(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<double>((i * 7 + r * 13) % 101);
    return x;
  }
  std::vector<double> sum(std::size_t count, std::size_t first = 0, std::size_t last = SIZE_MAX) const {
    std::vector<double> s(count);
    for (std::size_t r = first; r < std::min(n, last); ++r) {
      const auto x = operand(count, r);
      for (std::size_t i = 0; i < count; ++i) s[i] += x[i];
    }
    return s;
  }
  void expect_plain(const Report& report) const {
    if (n > 1) {
      EXPECT_EQ(report.route, Route::plain);
      EXPECT_EQ(report.stats.plain_calls, 1U);
    }
  }
  [[nodiscard]] std::vector<std::size_t> uneven() const {
    std::vector<std::size_t> counts(n);
    for (std::size_t r = 0; r < n; ++r) counts[r] = r % 3 * 1001;
    return counts;
  }
  /// Elements of the ranks before this one.
  [[nodiscard]] std::ptrdiff_t before(const std::vector<std::size_t>& counts) const {
    return static_cast<std::ptrdiff_t>(std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::size_t{0}));
  }
  const Options plainly = with("1e-3", Mode::plain);
};

}  // namespace laconic::plain_mpi
