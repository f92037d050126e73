// Calls that the plain library makes in Laconic's place: every collective, wished for and chosen; and that a choice is
// the same on all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/gather.h"
#include "collective/layout.h"
#include "collective/placed.h"
#include "collective/plain_mpi.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/reference.h"
#include "collective/scan.h"
#include "collective/scatter.h"
#include "collective/world.h"
#include "core/error.h"
#include "transport/mpi/mpi.h"

namespace laconic::plain_mpi {
namespace {

using testing_fields::make;
using world::view;

TEST_F(PlainMpi, Allreduce) {
  for (const std::size_t count : {0U, 1U, 5U, 100003U}) {
    const auto x = operand(count, me);
    std::vector<double> got(count);
    expect_plain(allreduce(view(x), view(got), Op::sum, comm, plainly));
    EXPECT_EQ(got, sum(count));
    got = x;
    expect_plain(allreduce(view(std::as_const(got)), view(got), Op::average, comm, plainly));
    const auto whole = sum(count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_DOUBLE_EQ(got[i], whole[i] / static_cast<double>(n));
    allreduce(view(x), view(got), Op::max, comm, plainly);
    std::vector<double> largest(count);
    for (std::size_t r = 0; r < n; ++r) {
      const auto theirs = operand(count, r);
      for (std::size_t i = 0; i < count; ++i) largest[i] = std::max(largest[i], theirs[i]);
    }
    EXPECT_EQ(got, largest);
  }
}

TEST_F(PlainMpi, WhoWantsItPlainAloneIsToldSoAndNobodyWaitsForEver) {
  if (n == 1) return;
  const auto x = operand(1003, me);
  std::vector<double> got(1003);
  for (const Mode others : {Mode::compressed, Mode::automatic}) {
    const Options mine = with("1e-3", me == 1 ? Mode::plain : others);
    const auto refused = [&](auto&& call) {
      try {
        call();
        ADD_FAILURE() << "nobody noticed";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::mismatch);
        EXPECT_NE(std::string(e.what()).find("mode"), std::string::npos) << e.what();
      }
    };
    refused([&] { allreduce(view(x), view(got), Op::sum, comm, mine); });
    refused([&] { bcast(view(got), 0, comm, mine); });
    refused([&] { scan(view(x), view(got), Op::sum, comm, mine); });
  }
  expect_plain(allreduce(view(x), view(got), Op::sum, comm, plainly));
  EXPECT_EQ(got, sum(1003));
}

TEST_F(PlainMpi, Integers) {
  std::vector<std::int64_t> x(1003, 1 + static_cast<std::int64_t>(me)), got(1003);
  expect_plain(allreduce(view(std::as_const(x)), view(got), Op::sum, comm, with("lossless", Mode::plain)));
  EXPECT_EQ(got, std::vector<std::int64_t>(1003, static_cast<std::int64_t>(n * (n + 1) / 2)));
}

TEST_F(PlainMpi, ReduceScanExscan) {
  const std::size_t count = 30001;
  const auto x = operand(count, me);
  const int root = comm.size() - 1;
  std::vector<double> got(count, -1);
  expect_plain(reduce(view(x), view(got), Op::sum, root, comm, plainly));
  EXPECT_EQ(got, comm.rank() == root ? sum(count) : std::vector<double>(count, -1));
  got = x;
  expect_plain(reduce(view(std::as_const(got)), view(got), Op::sum, root, comm, plainly));
  EXPECT_EQ(got, comm.rank() == root ? sum(count) : x);
  expect_plain(scan(view(x), view(got), Op::sum, comm, plainly));
  EXPECT_EQ(got, sum(count, 0, me + 1));
  got.assign(count, -1);
  expect_plain(exscan(view(x), view(got), Op::sum, comm, plainly));
  EXPECT_EQ(got, me == 0 ? std::vector<double>(count, -1) : sum(count, 0, me));
}

TEST_F(PlainMpi, ReduceScatter) {
  const auto counts = uneven();
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const auto first = before(counts);
  const auto x = operand(total, me);
  std::vector<double> got(counts[me]);
  expect_plain(reduce_scatter(view(x), view(got), counts, Op::sum, comm, plainly));
  const auto whole = sum(total);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), whole.begin() + first));

  const auto block = operand(501 * n, me);
  std::vector<double> share(501);
  expect_plain(reduce_scatter_block(view(block), view(share), Op::sum, comm, plainly));
  const auto blocks = sum(501 * n);
  EXPECT_TRUE(std::equal(share.begin(), share.end(), blocks.begin() + static_cast<std::ptrdiff_t>(me * 501)));
}

TEST_F(PlainMpi, BcastOfEveryRootAndHalfFloats) {
  for (int root = 0; root < comm.size(); ++root) {
    auto x = operand(2003, me);
    expect_plain(bcast(view(x), root, comm, plainly));
    EXPECT_EQ(x, operand(2003, static_cast<std::size_t>(root)));
  }
  std::vector<std::uint16_t> bits(999, static_cast<std::uint16_t>(me));
  expect_plain(bcast({bits.data(), bits.size(), DType::bf16}, 0, comm, plainly));
  EXPECT_EQ(bits, std::vector<std::uint16_t>(999, 0));
}

TEST_F(PlainMpi, ScatterAndGather) {
  const auto counts = uneven();
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const auto first = before(counts);
  const int root = comm.size() / 2;
  const auto whole = operand(total, 3);
  std::vector<double> share(counts[me]), back(total);
  expect_plain(scatter(view(whole), counts, view(share), root, comm, plainly));
  EXPECT_TRUE(std::equal(share.begin(), share.end(), whole.begin() + first));
  expect_plain(gather(view(std::as_const(share)), view(back), counts, root, comm, plainly));
  EXPECT_TRUE(comm.rank() != root || back == whole);
}

TEST_F(PlainMpi, EqualSharesInPlace) {
  const std::size_t count = 777;
  auto whole = operand(count * n, 5);
  const auto kept = whole;
  const auto share_at = [&](std::vector<double>& v) { return MutArray{v.data() + me * count, count, DType::f64}; };
  std::vector<double> apart(count);
  const bool root = me == 0;
  const MutArray share = root ? share_at(whole) : view(apart);
  expect_plain(scatter_equal(view(std::as_const(whole)), share, 0, comm, plainly));
  EXPECT_EQ(whole, kept);
  EXPECT_EQ(std::memcmp(share.data, kept.data() + me * count, share.bytes()), 0);

  std::vector<double> gathered(count * n);
  std::memcpy(share_at(gathered).data, share.data, share.bytes());
  expect_plain(gather_equal(root ? share_at(gathered) : share, view(gathered), 0, comm, plainly));
  EXPECT_TRUE(!root || gathered == kept);
  std::fill(gathered.begin(), gathered.end(), 0.0);
  std::memcpy(share_at(gathered).data, kept.data() + me * count, share.bytes());
  expect_plain(allgather_equal(share_at(gathered), view(gathered), comm, plainly));
  EXPECT_EQ(gathered, kept);
}

TEST_F(PlainMpi, AllgatherOfDifferentCounts) {
  const auto counts = uneven();
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const auto whole = operand(total, 4);
  const auto first = before(counts);
  const std::vector<double> mine(whole.begin() + first,
                                 whole.begin() + first + static_cast<std::ptrdiff_t>(counts[me]));
  std::vector<double> got(total);
  expect_plain(allgather(view(mine), view(got), comm, plainly));
  EXPECT_EQ(got, whole);
}

TEST_F(PlainMpi, AlltoallAlsoInPlace) {
  const std::size_t block = 300;
  const auto x = operand(block * n, me);
  std::vector<double> expected(block * n), got(block * n);
  for (std::size_t r = 0; r < n; ++r) {
    const auto theirs = operand(block * n, r);
    std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(me * block), block,
                expected.begin() + static_cast<std::ptrdiff_t>(r * block));
  }
  expect_plain(alltoall(view(x), view(got), comm, plainly));
  EXPECT_EQ(got, expected);
  got = x;
  expect_plain(alltoall(view(std::as_const(got)), view(got), comm, plainly));
  EXPECT_EQ(got, expected);
  const std::vector<std::size_t> counts(n, block);
  got = x;
  expect_plain(alltoallv(view(std::as_const(got)), counts, view(got), counts, comm, plainly));
  EXPECT_EQ(got, expected);
}

TEST_F(PlainMpi, PartsThatLieApart) {
  const auto p = placed::uneven(n, 700);
  const auto whole = operand(p.extent, 1);
  const auto mine = placed::part(whole, p, me);
  std::vector<double> share(p.counts[me]);
  expect_plain(scatter(view(whole), p.parts(), view(share), 0, comm, plainly));
  EXPECT_EQ(share, mine);
  std::vector<double> got(p.extent, -1);
  expect_plain(gather(view(mine), view(got), p.parts(), 0, comm, plainly));
  const auto expect_parts = [&] {
    for (std::size_t r = 0; r < n; ++r) EXPECT_EQ(placed::part(got, p, r), placed::part(whole, p, r));
    EXPECT_EQ(placed::gaps(got, p), std::vector<double>(placed::gaps(got, p).size(), -1));
  };
  if (me == 0) expect_parts();
  got.assign(p.extent, -1);
  expect_plain(allgather(view(mine), view(got), p.parts(), comm, plainly));
  expect_parts();
  std::copy(mine.begin(), mine.end(), got.begin() + static_cast<std::ptrdiff_t>(p.displs[me]));
  expect_plain(
      allgather(slice_of(view(std::as_const(got)), p.displs[me], mine.size()), view(got), p.parts(), comm, plainly));
  expect_parts();

  const auto out = placed::reversed(std::vector<std::size_t>(n, 300));
  const auto x = operand(out.extent, me);
  got.assign(out.extent, -1);
  expect_plain(alltoallv(view(x), out.parts(), view(got), out.parts(), comm, plainly));
  for (std::size_t r = 0; r < n; ++r) {
    EXPECT_EQ(placed::part(got, out, r), placed::part(operand(out.extent, r), out, me));
  }
  EXPECT_EQ(placed::gaps(got, out), std::vector<double>(placed::gaps(got, out).size(), -1));
}

// From the second on, short calls go the short way.
TEST_F(PlainMpi, ShortWayGivesTheSameAndCountsAllCalls) {
  if (n == 1) GTEST_SKIP() << "one rank needs nobody";
  constexpr int times = 20;
  const std::size_t count = 100;
  for (int i = 0; i < times; ++i) {
    auto x = operand(count, me + static_cast<std::size_t>(i));
    std::vector<double> got(count), whole(count), all(count * n);
    for (std::size_t r = 0; r < n; ++r) {
      const auto theirs = operand(count, r + static_cast<std::size_t>(i));
      for (std::size_t k = 0; k < count; ++k) whole[k] += theirs[k];
    }
    expect_plain(allreduce(view(std::as_const(x)), view(got), Op::sum, comm, plainly));
    ASSERT_EQ(got, whole);
    expect_plain(reduce_scatter_block(view(std::as_const(all)), view(got), Op::sum, comm, plainly));
    expect_plain(allgather_equal(view(std::as_const(x)), view(all), comm, plainly));
    ASSERT_EQ(std::vector<double>(all.begin(), all.begin() + count), operand(count, static_cast<std::size_t>(i)));
    expect_plain(bcast(view(x), 0, comm, plainly));
    ASSERT_EQ(x, operand(count, static_cast<std::size_t>(i)));
  }
  EXPECT_EQ(comm.total().calls, 4U * times);
  EXPECT_EQ(comm.total().plain_calls, 4U * times);
  EXPECT_EQ(comm.total().original_bytes, times * (2 * n + 2) * count * sizeof(double));
  EXPECT_GT(comm.total().wire_seconds, 0);
}

TEST_F(PlainMpi, ShortWayIsForTheSameOptionsOnly) {
  if (n == 1) GTEST_SKIP() << "one rank needs nobody";
  const auto x = operand(100, me);
  std::vector<double> got(100);
  comm.set_defaults(plainly);
  for (int i = 0; i < 3; ++i) expect_plain(allreduce(view(x), view(got), Op::sum, comm));
  EXPECT_EQ(allreduce(view(x), view(got), Op::sum, comm, with("1e-3", Mode::compressed)).route, Route::on_grid);
  EXPECT_EQ(comm.last().stats.plain_calls, 0U);
  expect_plain(allreduce(view(x), view(got), Op::sum, comm));
  comm.set_defaults(with("1e-3", Mode::compressed));
  EXPECT_EQ(allreduce(view(x), view(got), Op::sum, comm).route, Route::on_grid);
  Options scheduled = with("1e-3", Mode::plain);
  scheduled.schedule = Schedule::ring;
  expect_plain(allreduce(view(x), view(got), Op::sum, comm, scheduled));
  comm.set_defaults(with("100x", Mode::plain));  // a bound that cannot be must be refused as ever
  EXPECT_THROW(allreduce(view(x), view(got), Op::sum, comm), Error);
}

TEST_F(PlainMpi, ShortWayLooksAtBuffersCountsAndRoots) {
  if (n == 1) GTEST_SKIP() << "one rank needs nobody";
  auto x = operand(100 * n, me);
  std::vector<double> got(100 * n);
  const ConstArray from = view(std::as_const(x));
  const MutArray to = view(got);
  const auto good = [&] {
    allreduce(from, to, Op::sum, comm, plainly);
    bcast(to, 0, comm, plainly);
    allgather_equal(slice_of(from, 0, 100), to, comm, plainly);
    alltoall(from, to, comm, plainly);
    reduce_scatter_block(from, slice_of(to, 0, 100), Op::sum, comm, plainly);
    scatter_equal(from, slice_of(to, 0, 100), 0, comm, plainly);
    gather_equal(slice_of(from, 0, 100), to, 0, comm, plainly);
  };
  good();
  good();
  const MutArray nowhere{nullptr, to.count, to.dtype};
  const MutArray shifted{x.data() + 1, to.count - 1, to.dtype};
  const auto refused = [&](auto&& call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::invalid_argument) << e.what();
    }
  };
  refused([&] { allreduce(from, nowhere, Op::sum, comm, plainly); });
  refused([&] { allreduce(slice_of(from, 0, to.count - 1), shifted, Op::sum, comm, plainly); });
  refused([&] { allreduce(from, slice_of(to, 0, to.count - 1), Op::sum, comm, plainly); });
  refused([&] { bcast(to, comm.size(), comm, plainly); });
  refused([&] { bcast(to, -1, comm, plainly); });
  refused([&] { reduce_scatter_block(from, slice_of(to, 0, 99), Op::sum, comm, plainly); });
  refused([&] { alltoall(from, nowhere, comm, plainly); });
  good();
}

// Short calls, each of a kind of its own and often: whatever is chosen, the promise holds, and all ranks choose alike
// (or this would hang).
TEST_F(PlainMpi, ChosenByTheRanksTogether) {
  for (const std::size_t count : {1U, 300U, 50021U}) {
    const auto operand_of = [&](int r) { return make<float>("smooth", count, r); };
    std::vector<std::vector<float>> operands;
    for (int r = 0; r < comm.size(); ++r) operands.push_back(operand_of(r));
    std::vector<float> got(count);
    for (int i = 0; i < 40; ++i) {
      allreduce(view(std::as_const(operands[me])), view(got), Op::sum, comm, with("1e-3", Mode::automatic));
      auto moved = operands[me];
      bcast(view(moved), i % comm.size(), comm, with("1e-3", Mode::automatic));
      const auto& sent = operands[static_cast<std::size_t>(i % comm.size())];
      for (std::size_t k = 0; k < count; k += 97) ASSERT_NEAR(moved[k], sent[k], 1e-3);
    }
    reference::expect_sum(got, operands, 1e-3);
  }
}

// What a call learns of ranges beside which this rank's is next to nothing, or which overflow, must not make its next
// call an error that the others wait for.
TEST_F(PlainMpi, RangesThatVanishOrOverflowAreNobodysError) {
  std::vector<double> x(std::size_t{1} << 15), y(x.size()), all(x.size() * n);
  for (const char* bound : {"1e-3", "1e-3rel"}) {
    const Options o = with(bound, Mode::automatic);
    for (int call = 0; call < 24; ++call) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = me == 0 ? 0 : std::sin(static_cast<double>(i) * 1e-3);
      if (me == 0 && call % 2 == 0) x[7] = 5e-324;
      EXPECT_NO_THROW(allreduce(view(x), view(y), Op::sum, comm, o));
      if (me != 0) x[0] = -(x[1] = std::numeric_limits<double>::max());
      if (me == 0 && call % 2 == 0) x[7] = 1;
      EXPECT_NO_THROW(allgather(view(x), view(all), comm, o));
    }
  }
}

TEST_F(PlainMpi, NanInAMinimumIsNeverLost) {
  for (int i = 0; i < 12; ++i) {
    std::vector<float> x(64, 1.0F), got(64);
    if (i >= 6 && comm.rank() == comm.size() - 1) x[17] = NAN;
    const Report report = allreduce(view(std::as_const(x)), view(got), Op::min, comm, with("1e-3", Mode::automatic));
    EXPECT_NE(report.route, Route::plain);
    EXPECT_EQ(std::isnan(got[17]), i >= 6);
  }
}

TEST_F(PlainMpi, ExactSumsStayExact) {
  std::vector<float> x(1000, me == 0 ? 0x1p30F : 1.0F), got(1000);
  for (int i = 0; i < 8; ++i) {
    const Report report =
        allreduce(view(std::as_const(x)), view(got), Op::sum, comm, with("lossless", Mode::automatic));
    EXPECT_NE(report.route, Route::plain);
    EXPECT_EQ(got[0], static_cast<float>(0x1p30 + static_cast<double>(n - 1)));
  }
}

TEST_F(PlainMpi, NothingIsPromisedOfSumsThatNobodyLookedAt) {
  if (n == 1) GTEST_SKIP() << "one rank adds nothing";
  std::vector<float> x(1000, 0.5F), got(1000);
  const std::vector<int> numbers(1000, 1);
  std::vector<int> counted(1000);
  for (const Mode mode : {Mode::plain, Mode::automatic}) {
    std::size_t plain = 0;
    for (int i = 0; i < 30; ++i) {
      const Report report = allreduce(view(std::as_const(x)), view(got), Op::sum, comm, with("1e-3", mode));
      // Where the ranks agreed, its roundings were held against the bound.
      EXPECT_TRUE(std::isinf(report.result_bound) ? report.route == Route::plain : mode == Mode::automatic);
      EXPECT_TRUE(std::isinf(report.result_bound) || report.result_bound == 1e-3);
      plain += report.route == Route::plain ? 1 : 0;
    }
    EXPECT_TRUE(mode == Mode::automatic || plain == 30);
    EXPECT_EQ(allreduce(view(numbers), view(counted), Op::sum, comm, with("1e-3", mode)).result_bound, 0);
  }
}

/// Of uneven parts, long enough for every way of the library.
TEST_F(PlainMpi, ReduceScatterInPlace) {
  std::vector<std::size_t> counts(n, 0);
  counts.back() = 40000;
  counts[n / 2] += 70001;
  const std::size_t total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  auto x = operand(total, me);
  reduce_scatter(view(std::as_const(x)), slice_of(view(x), 0, counts[me]), counts, Op::sum, comm, plainly);
  const auto first = before(counts);
  const auto whole = sum(total);
  EXPECT_TRUE(std::equal(x.begin(), x.begin() + static_cast<long>(counts[me]), whole.begin() + first));
}

TEST_F(PlainMpi, AnotherModeIsAnErrorOnEveryRank) {
  if (n == 1) GTEST_SKIP() << "one rank agrees with itself";
  std::vector<float> x(100, 1.0F);
  const Mode mine = me == n - 1 ? Mode::compressed : Mode::automatic;
  try {
    allreduce(view(std::as_const(x)), view(x), Op::sum, comm, with("1e-3", mine));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::mismatch);
    EXPECT_NE(std::string(e.what()).find("passed mode compressed, rank 0 passed auto"), std::string::npos) << e.what();
  }
}

/// Broadcasts that go plainly, and which ranks no longer ask about.
Options settle(Communicator& comm, std::vector<float>& x) {
  const Options o = with("1e-3", Mode::plain);
  for (int i = 0; i < 2; ++i) bcast(view(x), 0, comm, o);
  EXPECT_EQ(comm.last().messages_sent, 0U);
  return o;
}

/// The root's calls return before the others have come. So where a rank alone asks about one that went plainly at the
/// root, the root's next question is its answer, and all that it gets from then on would be another call's.
TEST_F(PlainMpi, RanksOneCallApartNeverTakeAnothersData) {
  if (n == 1) GTEST_SKIP() << "one rank agrees with itself";
  std::vector<float> x(256, 1.0F);
  const Options o = settle(comm, x);
  if (comm.rank() == 0) bcast(view(x), 0, comm, o);
  for (int value = 100; value < 400; value += 100) {
    if (comm.rank() == 0) x.assign(x.size(), static_cast<float>(value));
    try {
      bcast(view(x), 0, comm, with("1e-3", Mode::compressed));
      ADD_FAILURE() << "rank " << me << " took " << x[5] << " for " << value;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), value == 100 ? Code::mismatch : Code::transport) << e.what();
    }
  }
  EXPECT_FALSE(comm.usable());
  PMPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(PlainMpi, WhatEveryRankRefusesDoesNoHarm) {
  if (n == 1) GTEST_SKIP() << "one rank asks nobody";
  std::vector<float> x(256, 1.0F);
  const Options o = settle(comm, x);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(bcast({nullptr, x.size(), DType::f32}, 0, comm, o), Error);
  if (comm.rank() == 0) x.assign(x.size(), 7);
  for (int i = 0; i < 3; ++i) bcast(view(x), 0, comm, o);
  EXPECT_EQ(x[200], 7);
}

/// As soon as ranks ask each other again.
TEST_F(PlainMpi, WhatOneRankAloneRefusesIsFoundOut) {
  if (n == 1) GTEST_SKIP() << "one rank refuses for all";
  std::vector<float> x(256, 1.0F);
  const Options o = settle(comm, x);
  const bool refuses = me == n - 1;  // a leaf of every tree
  if (refuses) {
    EXPECT_THROW(bcast({nullptr, x.size(), DType::f32}, 0, comm, o), Error);
  } else {
    bcast(view(x), 0, comm, o);
  }
  try {
    bcast(view(x), 0, comm, with("1e-3", Mode::compressed));
    ADD_FAILURE() << "rank " << me << " heard nothing";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::mismatch) << e.what();
  }
  EXPECT_FALSE(comm.usable());
}

}  // namespace
}  // namespace laconic::plain_mpi
