// Collectives over NCCL: the same bits as over any other transport, from host arrays.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/p2p.h"
#include "collective/reduce_scatter.h"
#include "collective/scan.h"
#include "collective/world.h"
#include "core/error.h"
#include "support/nccl_world.h"

namespace laconic {
namespace {

using world::same_bytes;
using world::view;
using Floats = std::vector<float>;

// Before anything reads the configuration: costs of this transport are not for the user's cache.
const int uncached = ::setenv("LACONIC_CACHE", "off", 1);

using Body = std::function<std::pair<Floats, Report>(int, Communicator&)>;

world::Run<float> run_over_nccl(int ranks, const Body& body) {
  world::Run<float> out;
  out.results.resize(static_cast<std::size_t>(ranks));
  out.reports.resize(static_cast<std::size_t>(ranks));
  test::over_nccl(ranks, [&](Transport& t) {
    Communicator comm(t);
    auto [result, report] = body(t.rank(), comm);
    out.results[static_cast<std::size_t>(t.rank())] = std::move(result);
    out.reports[static_cast<std::size_t>(t.rank())] = report;
  });
  return out;
}

Floats field(int rank, std::size_t count) {
  Floats x(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<float>(i);
    x[i] = std::sin(at * 0.01F + static_cast<float>(rank)) + 0.1F * std::cos(at * 0.7F);
  }
  return x;
}

Options options(Mode mode) {
  Options o;
  o.bound = Bound::parse("1e-3");
  o.mode = mode;
  o.segment_values = 4096;
  o.confirm = false;  // a transport that needs everyone confirms all the same
  return o;
}

constexpr std::size_t count = 50000;

class CollectiveNccl : public testing::TestWithParam<int> {
 protected:
  /// Three calls of each, so that what one leaves behind meets the next.
  void expect_the_same(const Body& body) const {
    const Body thrice = [&](int rank, Communicator& comm) {
      body(rank, comm);
      body(rank, comm);
      return body(rank, comm);
    };
    const world::Run<float> here = run_over_nccl(GetParam(), thrice), there = world::run<float>(GetParam(), thrice);
    for (std::size_t r = 0; r < here.results.size(); ++r) {
      EXPECT_TRUE(same_bytes(here.results[r], there.results[r])) << "rank " << r;
      EXPECT_FALSE(here.results[r].empty());
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CollectiveNccl, testing::Values(1, 2, 3, 4));

TEST_P(CollectiveNccl, Allreduce) {
  expect_the_same([](int rank, Communicator& comm) {
    const Floats in = field(rank, count);
    Floats out(count);
    const Report report = allreduce(view(in), view(out), Op::sum, comm, options(Mode::compressed));
    return std::pair(out, report);
  });
}

TEST_P(CollectiveNccl, Allgather) {
  expect_the_same([](int rank, Communicator& comm) {
    const Floats in = field(rank, count);
    Floats out(count * static_cast<std::size_t>(comm.size()));
    const Report report = allgather(view(in), view(out), comm, options(Mode::compressed));
    return std::pair(out, report);
  });
}

TEST_P(CollectiveNccl, Bcast) {
  expect_the_same([](int rank, Communicator& comm) {
    Floats data = field(rank, count);
    const Report report = bcast(view(data), comm.size() - 1, comm, options(Mode::compressed));
    return std::pair(data, report);
  });
}

TEST_P(CollectiveNccl, ReduceScatter) {
  expect_the_same([](int rank, Communicator& comm) {
    const Floats in = field(rank, count * static_cast<std::size_t>(comm.size()));
    Floats out(count);
    const Report report = reduce_scatter_block(view(in), view(out), Op::average, comm, options(Mode::compressed));
    return std::pair(out, report);
  });
}

TEST_P(CollectiveNccl, Alltoall) {
  expect_the_same([](int rank, Communicator& comm) {
    const Floats in = field(rank, 10000 * static_cast<std::size_t>(comm.size()));
    Floats out(in.size());
    const Report report = alltoall(view(in), view(out), comm, options(Mode::compressed));
    return std::pair(out, report);
  });
}

TEST_P(CollectiveNccl, ScanHasNoPlainWay) {
  expect_the_same([](int rank, Communicator& comm) {
    const Floats in = field(rank, count);
    Floats out(count);
    const Report report = scan(view(in), view(out), Op::sum, comm, options(Mode::plain));
    EXPECT_TRUE(comm.size() == 1 || report.route != Route::plain);
    return std::pair(out, report);
  });
}

TEST_P(CollectiveNccl, PlainlyNcclsOwnCollectiveIsCalled) {
  const world::Run<float> run = run_over_nccl(GetParam(), [](int rank, Communicator& comm) {
    const Floats in(count, static_cast<float>(rank + 1));
    Floats out(count);
    const Report report = allreduce(view(in), view(out), Op::sum, comm, options(Mode::plain));
    return std::pair(out, report);
  });
  const int n = GetParam();
  for (std::size_t r = 0; r < run.results.size(); ++r) {
    EXPECT_TRUE(same_bytes(run.results[r], Floats(count, static_cast<float>(n * (n + 1) / 2))));
    EXPECT_TRUE(n == 1 || run.reports[r].route == Route::plain);
  }
}

/// By measurement: calibration, then either way.
TEST_P(CollectiveNccl, TheChoiceIsMade) {
  ASSERT_EQ(uncached, 0);
  run_over_nccl(GetParam(), [](int rank, Communicator& comm) {
    const Floats in(count, static_cast<float>(rank + 1));
    Floats out(count);
    Report report;
    for (int i = 0; i < 4; ++i) report = allreduce(view(in), view(out), Op::sum, comm, options(Mode::automatic));
    const int n = comm.size();
    EXPECT_NEAR(out[count / 2], static_cast<float>(n * (n + 1) / 2), 1e-3);
    return std::pair(out, report);
  });
}

TEST(CollectiveNccl, AMismatchIsTheSameErrorEverywhereAndTheGroupStaysUsable) {
  run_over_nccl(3, [](int rank, Communicator& comm) {
    const Floats in = field(rank, rank == 1 ? count : count + 1);
    Floats out(in.size()), again(count);
    EXPECT_THROW(allreduce(view(in), view(out), Op::sum, comm, options(Mode::compressed)), Error);
    const Floats same = field(rank, count);
    const Report report = allreduce(view(same), view(again), Op::sum, comm, options(Mode::compressed));
    return std::pair(again, report);
  });
}

TEST(CollectiveNccl, MessagesBetweenTwoRanksAreRefused) {
  test::over_nccl(2, [](Transport& t) {
    Communicator comm(t);
    Floats x(10);
    try {
      send(view(std::as_const(x)), 1 - t.rank(), 0, comm, options(Mode::compressed));
      FAIL() << "it was sent";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::unsupported);
    }
  });
}

}  // namespace
}  // namespace laconic
