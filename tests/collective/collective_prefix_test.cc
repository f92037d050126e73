// reduce, scan and exscan beside allreduce, and allreduce by every schedule.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "collective/allreduce.h"
#include "collective/fields.h"
#include "collective/moved.h"
#include "collective/reduce.h"
#include "collective/reference.h"
#include "collective/scan.h"
#include "collective/world.h"
#include "core/error.h"
#include "support/sanitized.h"
#include "transport/faulty.h"

namespace laconic::collective_prefix_test {
namespace {

using moved::with;
using testing_fields::hostile;
using testing_fields::Operands;
using testing_fields::operands_of;
using world::view;

/// call(send, recv, communicator) on every rank.
template <typename T, typename Call>
world::Run<T> run(const Operands<T>& operands, bool in_place, Call call) {
  return world::run<T>(static_cast<int>(operands.size()), [&](int rank, Communicator& comm) {
    const auto& mine = operands[static_cast<std::size_t>(rank)];
    std::vector<T> recv = in_place ? mine : std::vector<T>(mine.size());
    const Report report = call(in_place ? ConstArray(view(recv)) : view(mine), view(recv), comm);
    return std::pair(recv, report);
  });
}

template <typename T>
world::Run<T> run_allreduce(const Operands<T>& operands, Op op, const Options& options) {
  return run(operands, false,
             [&](ConstArray send, MutArray recv, Communicator& c) { return allreduce(send, recv, op, c, options); });
}

constexpr const char* bounds[] = {"1e-3", "lossless"};
constexpr int next_ranks = test::sanitized ? 3 : 1;

TEST(Schedules, AllreduceGivesTheSameBitsByAll) {
  for (int n = 2; n <= 8; n += next_ranks) {
    for (const std::size_t count : {1U, 777U, 9001U}) {
      for (const Op op : {Op::sum, Op::average}) {
        const auto operands = hostile<float>(count, n);
        const auto plain = run_allreduce(operands, op, with("1e-3"));
        for (const Schedule s :
             {Schedule::ring, Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::direct}) {
          SCOPED_TRACE(std::string(name_of(s)) + ", " + std::to_string(count) + " on " + std::to_string(n));
          Options options = with("1e-3", 2048);
          options.schedule = s;
          const auto other = run_allreduce(operands, op, options);
          EXPECT_EQ(other.reports[0].route, plain.reports[0].route);
          world::expect_same_everywhere(other);
          EXPECT_TRUE(world::same_bytes(other.results[0], plain.results[0]));
        }
      }
    }
  }
}

TEST(Schedules, OfDoublesToo) {
  for (const int n : {3, 4, 6}) {
    const auto operands = hostile<double>(9001, n);
    Options options = with("1e-6");
    options.schedule = Schedule::ring;
    const auto ring = run_allreduce(operands, Op::sum, options);
    for (const Schedule s : {Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::direct}) {
      options.schedule = s;
      EXPECT_TRUE(world::same_bytes(run_allreduce(operands, Op::sum, options).results[1], ring.results[0])) << n;
    }
  }
}

TEST(Schedules, ShortDataTakesFewMessages) {
  const auto operands = operands_of<float>("smooth", 1000, 8);
  EXPECT_EQ(run_allreduce(operands, Op::sum, with("1e-3")).reports[0].messages_sent, 3U + 2U);  // agree, confirm
}

TEST(Schedules, MustBeTheSameOnEveryRank) {
  world::run<float>(3, [](int rank, Communicator& comm) {
    Options options = with("1e-3");
    options.schedule = rank == 1 ? Schedule::recursive_doubling : Schedule::ring;
    std::vector<float> x(100);
    try {
      allreduce(view(std::as_const(x)), view(x), Op::sum, comm, options);
      ADD_FAILURE() << "no error on rank " << rank;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::mismatch);
      for (const char* w : {"rank 1", "recursive doubling", "ring"}) {
        EXPECT_NE(std::string(e.what()).find(w), std::string::npos) << e.what();
      }
    }
    return std::pair(x, Report{});
  });
}

template <typename T>
void expect_reduce(const Operands<T>& operands, Op op, const Options& options) {
  const int n = static_cast<int>(operands.size());
  const auto all = run_allreduce(operands, op, options);
  for (const int root : {0, n / 2, n - 1}) {
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE("root " + std::to_string(root) + " of " + std::to_string(n) + (in_place ? ", in place" : ""));
      const auto got = run(operands, in_place, [&](ConstArray send, MutArray recv, Communicator& c) {
        return reduce(send, c.rank() == root ? recv : MutArray{}, op, root, c, options);
      });
      const auto at_root = static_cast<std::size_t>(root);
      EXPECT_TRUE(world::same_bytes(got.results[at_root], all.results[0]));
      for (std::size_t r = 0; r < operands.size(); ++r) {
        const auto untouched = in_place ? operands[r] : std::vector<T>(operands[r].size());
        EXPECT_TRUE(r == at_root || world::same_bytes(got.results[r], untouched));
      }
    }
  }
}

TEST(Reduce, TheRootGetsWhatAnAllreduceGives) {
  for (int n = 1; n <= 8; n += next_ranks) {
    for (const char* bound : bounds) {
      const Op op = n % 2 == 0 ? Op::sum : Op::average;
      for (const std::size_t count : {0U, 1U, 2000U}) {
        expect_reduce(operands_of<float>("smooth", count, n), op, with(bound));
      }
      if (n > 1) expect_reduce(hostile<float>(7011, n), op, with(bound, 2048));  // a chain
      expect_reduce(operands_of<double>("noise", 3001, n), op, with(bound));
    }
    expect_reduce(operands_of<std::int64_t>("integer", 3000, n), Op::sum, with("1e-3"));
  }
}

/// Every rank's result against the exact sum of those before it.
template <typename T>
void expect_scans(const Operands<T>& operands, Op op, const Options& options) {
  const int n = static_cast<int>(operands.size());
  const auto last = static_cast<std::size_t>(n - 1);
  for (const bool in_place : {false, true}) {
    SCOPED_TRACE(std::to_string(n) + (in_place ? " ranks, in place" : " ranks"));
    const auto inclusive = run(operands, in_place, [&](ConstArray send, MutArray recv, Communicator& c) {
      return scan(send, recv, op, c, options);
    });
    const auto exclusive = run(operands, in_place, [&](ConstArray send, MutArray recv, Communicator& c) {
      return exscan(send, recv, op, c, options);
    });
    EXPECT_TRUE(world::same_bytes(inclusive.results[last], run_allreduce(operands, op, options).results[last]));
    for (std::size_t r = 0; r < operands.size(); ++r) {
      SCOPED_TRACE("rank " + std::to_string(r));
      const int up_to = static_cast<int>(r) + 1;
      const Operands<T> prefix(operands.begin(), operands.begin() + up_to);
      const double bound = inclusive.reports[r].result_bound;
      reference::expect_sum(inclusive.results[r], prefix, bound, op == Op::average ? up_to : 1);
      if (r == 0) {
        EXPECT_TRUE(
            world::same_bytes(exclusive.results[0], in_place ? operands[0] : std::vector<T>(operands[0].size())));
      }
      if (r < last && n > 1) {
        EXPECT_TRUE(world::same_bytes(exclusive.results[r + 1], inclusive.results[r]));
      }
    }
  }
}

TEST(Scan, EveryRankGetsTheSumOfThoseBeforeIt) {
  for (int n = 1; n <= 8; n += next_ranks) {
    for (const char* bound : bounds) {
      const Op op = n % 2 == 0 ? Op::average : Op::sum;
      for (const std::size_t count : {0U, 1U, 2000U}) {
        expect_scans(operands_of<float>("smooth", count, n), op, with(bound));
      }
      if (n > 1) expect_scans(hostile<float>(7011, n), op, with(bound, 2048));  // a chain
      expect_scans(operands_of<double>("noise", 3001, n), op, with(bound));
    }
  }
}

// The fewer there are to average, the less their errors even out.
TEST(Scan, AveragesKeepABoundInSigmasOnEveryRank) {
  constexpr int n = 8;
  const auto operands = operands_of<float>("noise", 20011, n);
  const auto got = run(operands, false, [&](ConstArray send, MutArray recv, Communicator& c) {
    return scan(send, recv, Op::average, c, with("3sigma:1e-3"));
  });
  for (std::size_t r = 0; r < operands.size(); ++r) {
    std::size_t beyond = 0;
    for (std::size_t i = 0; i < operands[r].size(); ++i) {
      double exact = 0;
      for (std::size_t before = 0; before <= r; ++before) exact += static_cast<double>(operands[before][i]);
      exact /= static_cast<double>(r + 1);
      beyond += std::abs(static_cast<double>(got.results[r][i]) - exact) > 1.0001e-3 ? 1 : 0;
    }
    EXPECT_LT(beyond, operands[r].size() / 250) << "rank " << r;  // normal errors pass three sigma in 0.27 % of cases
  }
}

TEST(Scan, IntegersExactly) {
  for (const int n : {2, 5}) {
    const auto operands = operands_of<std::int64_t>("integer", 3000, n);
    const auto got = run(operands, false, [&](ConstArray send, MutArray recv, Communicator& c) {
      return scan(send, recv, Op::sum, c, with("1e-3"));
    });
    std::vector<std::int64_t> sum(3000);
    for (std::size_t r = 0; r < operands.size(); ++r) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += operands[r][i];
      EXPECT_EQ(got.results[r], sum);
    }
  }
}

TEST(Exscan, AveragesIntegersTowardZero) {
  const auto operands = operands_of<std::int64_t>("integer", 3000, 4);
  const auto got = run(operands, false, [&](ConstArray send, MutArray recv, Communicator& c) {
    return exscan(send, recv, Op::average, c, with("1e-3"));
  });
  std::vector<std::int64_t> sum(3000);
  for (std::size_t r = 1; r < operands.size(); ++r) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += operands[r - 1][i];
      ASSERT_EQ(got.results[r][i], sum[i] / static_cast<std::int64_t>(r));
    }
  }
}

TEST(Exact, ScratchDoesNotGrowWithTheRanks) {
  constexpr std::size_t count = std::size_t{1} << 21, all_slabs = std::size_t{4} << 20;  // bytes
  run_ranks(8, [](Transport& t) {
    Communicator comm(t);
    const std::vector<std::int32_t> x(count, 3);
    std::vector<std::int32_t> y(count);
    EXPECT_LE(allreduce(view(x), view(y), Op::sum, comm, {}).scratch_bytes, all_slabs + all_slabs / 4);
    EXPECT_EQ(y[count - 1], 24);
    EXPECT_LE(scan(view(x), view(y), Op::sum, comm, {}).scratch_bytes, all_slabs + all_slabs / 4);
    EXPECT_EQ(y[count - 1], 3 * (t.rank() + 1));
  });
}

// Damage in the first slab of an exact sum: the others must not wait for later slabs of a rank that has given up.
TEST(Exact, DamageInAnEarlySlabIsNoticedByAllAtTheEnd) {
  constexpr std::size_t count = (std::size_t{5} << 19) + 1001;  // several slabs for each of two ranks
  run_ranks(
      2,
      [](Transport& t) {
        const auto bad = make_faulty_transport(t, t.rank() == 1 ? flip_bit(0, 7777) : delay(0));
        Communicator comm(*bad);
        const std::vector<std::int32_t> x(count, 3);
        std::vector<std::int32_t> y(count);
        const auto try_it = [&](auto&& call) {
          try {
            call();
            ADD_FAILURE() << "no error on rank " << t.rank();
          } catch (const Error& e) {
            EXPECT_EQ(e.code(), Code::corrupt) << e.what();
          }
        };
        try_it([&] { allreduce(view(x), view(y), Op::sum, comm, {}); });
        EXPECT_TRUE(comm.usable());
        EXPECT_NO_THROW(scan(view(x), view(y), Op::sum, comm, {}));
        EXPECT_EQ(y[count - 1], 3 * (t.rank() + 1));
      },
      20);
}

}  // namespace
}  // namespace laconic::collective_prefix_test
