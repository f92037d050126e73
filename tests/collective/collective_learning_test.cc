// Calls that choose by themselves, over a plain library that tests can see through and costs that are given.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/fields.h"
#include "collective/gather.h"
#include "collective/layout.h"
#include "collective/reduce_scatter.h"
#include "collective/reference.h"
#include "collective/routing.h"
#include "collective/world.h"
#include "support/over_transport.h"
#include "support/sanitized.h"

namespace laconic::collective_learning_test {
namespace {

using world::view;

/// Sums of doubles, and parts of them from all ranks or for one, by the small exchange; nothing else is asked of it.
class ByExchange final : public PlainCollectives {
 public:
  explicit ByExchange(Transport& t) : t_(t) {}
  [[nodiscard]] bool reduces(DType dtype, Op op) const override { return dtype == DType::f64 && op == Op::sum; }
  [[nodiscard]] std::size_t most_elements() const override { return std::size_t{1} << 30; }
  void allreduce(ConstArray send, MutArray recv, Op) override {
    const auto all = allgather_values(t_, std::span(static_cast<const double*>(send.data), send.count));
    auto* const sum = static_cast<double*>(recv.data);
    for (std::size_t i = 0; i < recv.count; ++i) {
      sum[i] = 0;
      for (std::size_t at = i; at < all.size(); at += recv.count) sum[i] += all[at];
    }
  }
  void reduce(ConstArray, MutArray, Op, int) override { unexpected(); }
  void reduce_scatter(ConstArray, MutArray, const Parts&, Op) override { unexpected(); }
  void scan(ConstArray, MutArray, Op, bool) override { unexpected(); }
  void bcast(MutArray, int) override { unexpected(); }
  void scatter(ConstArray, const Parts&, MutArray, int) override { unexpected(); }
  void gather(ConstArray send, MutArray recv, const Parts& parts, int root) override {
    const auto counts = allgather_value(t_, static_cast<std::uint64_t>(send.count));
    const std::vector<std::size_t> all(counts.begin(), counts.end());
    std::vector<double> whole(std::accumulate(all.begin(), all.end(), std::size_t{0}));
    allgather(send, {whole.data(), whole.size(), DType::f64}, {.counts = all});
    if (t_.rank() != root) return;
    EXPECT_TRUE(std::ranges::equal(parts.counts, all));
    std::ranges::copy(whole, static_cast<double*>(recv.data));
  }
  void allgather(ConstArray send, MutArray recv, const Parts& parts) override {
    const auto* const first = static_cast<const double*>(send.data);
    std::vector<double> mine(first, first + send.count);
    const std::size_t most = *std::max_element(parts.counts.begin(), parts.counts.end());
    mine.resize(most);
    const auto all = allgather_values(t_, std::span<const double>(mine));
    auto* to = static_cast<double*>(recv.data);
    for (std::size_t r = 0; r < parts.counts.size(); ++r) to = std::copy_n(&all[r * most], parts.counts[r], to);
  }
  void alltoall(ConstArray, const Parts&, MutArray, const Parts&) override { unexpected(); }

 private:
  [[noreturn]] static void unexpected() { throw std::logic_error("not of this library"); }
  Transport& t_;
};

/// Threads, with that library.
class WithLibrary final : public test::OverTransport {
 public:
  explicit WithLibrary(Transport& inner) : OverTransport(inner), library_(inner) {}
  PlainCollectives* plain() override { return &library_; }
  [[nodiscard]] std::string description() const override { return "threads with a library"; }

 private:
  ByExchange library_;
};

constexpr Link link{1e-6, 1e9};
constexpr CodecSpeed::Seconds quick{4, 1e-10, 1e-10, 1e-10}, slow{4, 1e-7, 1e-7, 1e-7};

/// body(rank, communicator), on a link and a codec that is slow where integers are wide.
void on_ranks(int ranks, const std::function<void(int, Communicator&)>& body, CodecSpeed::Seconds on_grid = quick) {
  const auto work = [&](Transport& inner) {
    WithLibrary t(inner);
    Communicator comm(t);
    comm.routing().set_costs(CodecKind::grid64, {link, {on_grid, on_grid}});
    comm.routing().set_costs(CodecKind::wide64, {link, {slow, slow}});
    body(t.rank(), comm);
  };
  run_ranks(ranks, work, 30);
}

Options with(const char* bound) {
  Options o;
  o.bound = Bound::parse(bound);
  o.mode = Mode::automatic;
  return o;
}

/// Around another value on each rank.
std::vector<std::vector<double>> apart(int ranks, std::size_t count) {
  std::vector<std::vector<double>> all;
  for (int r = 0; r < ranks; ++r) {
    all.push_back(testing_fields::make<double>("smooth", count, r));
    for (double& x : all.back()) x = 1000 * (r + 1) + 1e-5 * x;
  }
  return all;
}

// Within a bound from its own range alone, each rank would need wide integers, which are slow.
TEST(Learning, TheRangeOfAllDecides) {
  const int ranks = 2;
  const auto operands = apart(ranks, 100000);
  on_ranks(ranks, [&](int rank, Communicator& comm) {
    const auto& mine = operands[static_cast<std::size_t>(rank)];
    std::vector<double> got(mine.size());
    const Report first = allreduce(view(mine), view(got), Op::sum, comm, with("1e-3rel"));
    EXPECT_EQ(first.route, Route::on_grid);
    reference::expect_sum(got, operands, 1.001);
    const Report second = allreduce(view(mine), view(got), Op::sum, comm, with("1e-3rel"));
    EXPECT_EQ(second.route, Route::on_grid);
    EXPECT_EQ(second.messages_sent + 1, first.messages_sent) << "by now ranks know what to sample within";
  });
}

TEST(Learning, PlainCallsWouldHaveWaitedForTheLastRankToo) {
  on_ranks(2, [](int, Communicator& comm) {
    Report made;
    const double at_once = plain_estimate(Collective::allreduce, 8000, made, comm);
    EXPECT_GT(at_once, 0);
    made.agreement_seconds = exchange_seconds(2, link);
    EXPECT_DOUBLE_EQ(plain_estimate(Collective::allreduce, 8000, made, comm), at_once);
    made.agreement_seconds += 1;
    EXPECT_DOUBLE_EQ(plain_estimate(Collective::allreduce, 8000, made, comm), at_once + 1);
    const std::vector<double> mine(1000, comm.rank());
    std::vector<double> got(mine.size());
    const Report real = allreduce(view(mine), view(got), Op::sum, comm, with("1e-3"));
    EXPECT_GT(real.agreement_seconds, 0);
    EXPECT_LE(real.agreement_seconds, real.stats.wire_seconds);
  });
}

TEST(Learning, HopelessAndShortCallsExchangeNothingMore) {
  const auto operands = apart(2, 100000);
  const auto body = [&](int rank, Communicator& comm) {
    const auto& mine = operands[static_cast<std::size_t>(rank)];
    std::vector<double> got(mine.size());
    const Report hopeless = allreduce(view(mine), view(got), Op::sum, comm, with("1e-3rel"));
    EXPECT_EQ(hopeless.route, Route::plain);
    EXPECT_EQ(hopeless.messages_sent, 1U);
    const Report brief =
        allreduce(slice_of(view(mine), 0, 100), slice_of(view(got), 0, 100), Op::sum, comm, with("1e-3rel"));
    EXPECT_EQ(brief.route, Route::plain);
    EXPECT_EQ(brief.messages_sent, 1U);
  };
  on_ranks(2, body, slow);
}

// Which kinds of calls there were decides when all are forgotten, and so who asks: a call that fails is none, or one,
// on all ranks.
TEST(Learning, RanksForgetTogetherAfterACallThatFailed) {
  const std::vector<double> mine(4, 0.5);
  const auto body = [&](int rank, Communicator& comm) {
    std::vector<double> got(mine.size());
    const auto call = [&](std::size_t count, const Options& options) {
      return allreduce(slice_of(view(mine), 0, count), slice_of(view(got), 0, count), Op::sum, comm, options);
    };
    EXPECT_THROW(call(4, with(rank == 0 ? "1e-3" : "2e-3")), Error);
    EXPECT_EQ(call(4, with("1e-3")).route, Route::plain);
    std::uint64_t asked = 0;
    const int kinds = test::sanitized ? 200 : 4200;  // more than are remembered
    for (int i = 0; i < kinds; ++i) {
      Options another = with("1e-3");
      another.bound.value = 1e-3 + 1e-9 * i;
      call(1, another);
      asked += call(4, with("1e-3")).messages_sent;
    }
    EXPECT_LT(asked, static_cast<std::uint64_t>(kinds)) << "some went plainly unasked";
  };
  on_ranks(2, body, slow);
}

/// The routes of some calls with parts that differ, and the messages that each took: of allgathers, of whose parts all
/// ranks know, or gathers.
std::vector<std::pair<Route, std::uint64_t>> routes_of_parts(int rank, Communicator& comm, int calls,
                                                             Collective collective = Collective::gather,
                                                             const Options& options = with("1e-3")) {
  const std::vector<std::size_t> counts{8000, 7000};
  const auto mine = testing_fields::make<double>("smooth", counts[static_cast<std::size_t>(rank)], rank);
  std::vector<double> got(15000);
  std::vector<std::pair<Route, std::uint64_t>> routes;
  for (int i = 0; i < calls; ++i) {
    const Report report = collective == Collective::gather
                              ? gather(view(mine), view(got), {.counts = counts}, 1, comm, options)
                              : allgather(view(mine), view(got), {.counts = counts}, comm, options);
    routes.emplace_back(report.route, report.messages_sent);
    if (rank == 1) {
      EXPECT_NEAR(got[8000], mine[0], 1e-3);
    }
  }
  return routes;
}

TEST(Learning, CallsWithPartsAreMeasuredToo) {
  on_ranks(2, [](int rank, Communicator& comm) {
    comm.routing().set_costs(CodecKind::grid64, {{1e-6, 2e8}, {quick, quick}});  // by which compressing pays
    const auto routes = routes_of_parts(rank, comm, 20, Collective::allgather);
    EXPECT_NE(routes.front().first, Route::plain);
    const auto is_plain = [](const auto& r) { return r.first == Route::plain; };
    EXPECT_TRUE(std::any_of(routes.begin(), routes.end(), is_plain)) << "the other way has not been tried";
  });
}

TEST(Learning, CallsWithPartsThatAllRanksKnowNeedNotBeAskedAbout) {
  for (const bool in_advance : {false, true}) {
    on_ranks(2, [&](int rank, Communicator& comm) {
      comm.routing().set_costs(CodecKind::grid64, {link, {slow, slow}});
      if (in_advance) comm.in_advance() = InAdvance{.bytes = 64000};
      const auto routes = routes_of_parts(rank, comm, 4, in_advance ? Collective::gather : Collective::allgather);
      EXPECT_NE(routes[0].second, 0U);
      for (std::size_t i = 1; i < routes.size(); ++i) {
        EXPECT_EQ(routes[i].first, Route::plain);
        EXPECT_EQ(routes[i].second, 0U) << "call " << i;
      }
    });
  }
}

TEST(Learning, WhoKnowsTheSizeHearsHowManyCallsNeedNotBeAskedAbout) {
  const auto body = [](int rank, Communicator& comm) {
    comm.routing().set_costs(CodecKind::grid64, {link, {slow, slow}});
    comm.in_advance() = InAdvance{.bytes = 64000};
    routes_of_parts(rank, comm, 1);
    const std::uint64_t enough = comm.in_advance()->may_be_left_alone;
    EXPECT_FALSE(comm.in_advance()->pays);
    ASSERT_GE(enough, 3U);
    comm.in_advance() = InAdvance{.bytes = 64000, .left_alone = enough - 2};
    EXPECT_EQ(routes_of_parts(rank, comm, 1).front().second, 0U);
    comm.in_advance() = InAdvance{.bytes = 64000};
    EXPECT_NE(routes_of_parts(rank, comm, 1).front().second, 0U) << "it is time to ask again";
  };
  on_ranks(2, body);
}

TEST(Learning, WhoKnowsTheSizeHearsThatCompressingPays) {
  const auto body = [](int rank, Communicator& comm) {
    comm.routing().set_costs(CodecKind::grid64, {{1e-3, 1e6}, {quick, quick}});
    comm.in_advance() = InAdvance{.bytes = 64000, .left_alone = 5};
    EXPECT_NE(routes_of_parts(rank, comm, 1).front().first, Route::plain);
    EXPECT_TRUE(comm.in_advance()->pays);
    ASSERT_TRUE(comm.in_advance()->kind);
    EXPECT_NE(comm.routing().known(*comm.in_advance()->kind), nullptr);
  };
  on_ranks(2, body);
}

TEST(Learning, PlainCallsWhoseSizeIsKnownInAdvanceAreAskedAboutOnce) {
  on_ranks(2, [](int rank, Communicator& comm) {
    Options plain = with("1e-3");
    plain.mode = Mode::plain;
    for (int i = 0; i < 3; ++i) {
      comm.in_advance() = InAdvance{.bytes = 64000};
      const auto [route, messages] = routes_of_parts(rank, comm, 1, Collective::gather, plain).front();
      EXPECT_EQ(route, Route::plain);
      EXPECT_EQ(messages == 0, i > 0) << "call " << i;
      EXPECT_FALSE(comm.in_advance()->pays);
      EXPECT_FALSE(comm.in_advance()->kind) << "what they take is of no use";
      EXPECT_GT(comm.in_advance()->may_be_left_alone, 1000U);
    }
  });
}

/// Calls of one kind, one after another, of many blocks: which messages they took, and that their results are one.
void expect_schedules_alike(int ranks, Collective collective) {
  const std::size_t count = 90000;
  std::vector<std::vector<double>> operands;
  for (int r = 0; r < ranks; ++r) operands.push_back(testing_fields::make<double>("smooth", count, r));
  const auto body = [&](int rank, Communicator& comm) {
    const auto& mine = operands[static_cast<std::size_t>(rank)];
    const bool whole = collective == Collective::allreduce;
    std::vector<double> first(whole ? count : count / static_cast<std::size_t>(ranks)), got(first.size());
    std::set<std::uint64_t> bytes;
    for (int i = 0; i < 12; ++i) {
      std::vector<double>& to = i == 0 ? first : got;
      const Report report = whole ? allreduce(view(mine), view(to), Op::sum, comm, with("1e-3"))
                                  : reduce_scatter_block(view(mine), view(to), Op::sum, comm, with("1e-3"));
      bytes.insert(report.stats.wire_bytes);
      EXPECT_TRUE(i == 0 || world::same_bytes(first, got)) << "call " << i;
    }
    EXPECT_EQ(bytes.size(), 2U) << "both schedules have been tried";
    if (whole) reference::expect_sum(got, operands, 1e-3);
  };
  run_ranks(ranks, [&](Transport& t) {
    Communicator comm(t);
    body(t.rank(), comm);
  });
}

// Some calls go as the one before did without a look at their data, whatever those have become: all ranks alike, and
// within the bound.
TEST(Learning, DataThatChangeAmongCallsThatAreAlike) {
  const int ranks = 3;
  const std::size_t count = 20000;
  std::vector<std::vector<double>> smooth, rough;
  for (int r = 0; r < ranks; ++r) {
    smooth.push_back(testing_fields::make<double>("smooth", count, r));
    rough.push_back(testing_fields::make<double>("noise", count, r));
    for (double& x : rough.back()) x *= 1000;
  }
  on_ranks(ranks, [&](int rank, Communicator& comm) {
    std::vector<double> got(count);
    for (int i = 0; i < 60; ++i) {
      const auto& operands = i % 20 < 13 ? smooth : rough;
      allreduce(view(operands[static_cast<std::size_t>(rank)]), view(got), Op::sum, comm, with("1e-3"));
      reference::expect_sum(got, operands, 1e-3);
    }
  });
}

// Ranks that did not choose alike would wait for each other.
TEST(Learning, RingAndDirectExchangeAreTriedByAllRanksTogether) {
  for (const int ranks : {3, 5}) {
    expect_schedules_alike(ranks, Collective::allreduce);
    expect_schedules_alike(ranks, Collective::reduce_scatter);
  }
}

}  // namespace
}  // namespace laconic::collective_learning_test
