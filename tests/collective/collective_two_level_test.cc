// Two levels on emulated nodes: the same bits as with one, whoever shares a node with whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/layout.h"
#include "collective/moved.h"
#include "collective/reduce.h"
#include "collective/reference.h"
#include "collective/world.h"
#include "core/error.h"
#include "schedule/nodes.h"
#include "support/sanitized.h"
#include "transport/faulty.h"

namespace laconic::collective_two_level_test {
namespace {

using testing_fields::hostile;
using testing_fields::make;
using testing_fields::operands_of;
using world::view;

using Placement = std::vector<int>;

/// For each number of ranks: all on one node, pairs or most of them together, in turn, uneven.
const std::vector<Placement> all_placements{
    {0, 0},
    {0, 1},
    {0, 0, 1},
    {1, 0, 1},
    {0, 0, 0},
    {0, 0, 1, 1},
    {0, 1, 0, 1},
    {0, 1, 1, 1},
    {3, 2, 1, 0},
    {0, 0, 1, 1, 2},
    {0, 1, 2, 0, 1},
    {0, 0, 0, 0, 5},
    {0, 1, 2, 0, 1, 2},
    {0, 0, 1, 2, 2, 2},
    {0, 0, 0, 1, 1, 2, 3},
    {0, 0, 0, 0, 1, 1, 1, 1},
    {0, 1, 2, 3, 0, 1, 2, 3},
    {0, 0, 0, 1, 1, 1, 1, 1},
    {0, 0, 0, 0, 0, 0, 0, 0},
};

/// Every third under a sanitizer.
const std::vector<Placement> placements = [] {
  std::vector<Placement> chosen;
  for (std::size_t i = 0; i < all_placements.size(); i += test::sanitized ? 3 : 1) chosen.push_back(all_placements[i]);
  return chosen;
}();

std::string text_of(const Placement& placement) {
  std::string text = "nodes";
  for (const int node : placement) (text += ' ') += std::to_string(node);
  return text;
}

Options with(const char* bound, Schedule schedule, std::size_t segment = 0) {
  Options o;
  o.bound = Bound::parse(bound);
  o.schedule = schedule;
  o.segment_values = segment;
  return o;
}

template <typename T>
world::Run<T> sum(const std::vector<std::vector<T>>& operands, Op op, const Options& options,
                  const Placement& placement, bool in_place = false) {
  return world::run<T>(
      static_cast<int>(operands.size()),
      [&](int rank, Communicator& comm) {
        const auto& mine = operands[static_cast<std::size_t>(rank)];
        std::vector<T> recv = in_place ? mine : std::vector<T>(mine.size());
        const Report report = allreduce(view(in_place ? recv : mine), view(recv), op, comm, options);
        return std::pair(recv, report);
      },
      placement);
}

template <typename T>
class TwoLevelOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(TwoLevelOf, Types);

TYPED_TEST(TwoLevelOf, AllreduceHasTheBitsOfEveryOtherSchedule) {
  int on_grid = 0;
  for (const Placement& placement : placements) {
    SCOPED_TRACE(text_of(placement));
    const auto n = static_cast<int>(placement.size());
    const auto operands = hostile<TypeParam>(test::sanitized ? 6011 : 20011, n);
    for (const Op op : {Op::sum, Op::average, Op::min, Op::max}) {
      const auto flat = sum(operands, op, with("1e-3", Schedule::ring), placement);
      const auto both = sum(operands, op, with("1e-3", Schedule::two_level), placement);
      world::expect_same_everywhere(both);
      EXPECT_EQ(both.reports[0].route, flat.reports[0].route);
      on_grid += both.reports[0].route == Route::on_grid ? 1 : 0;
      EXPECT_TRUE(world::same_bytes(both.results[0], flat.results[0])) << name_of(op);
    }
    for (const Schedule s : {Schedule::recursive_doubling, Schedule::rabenseifner}) {
      const auto other = sum(operands, Op::sum, with("1e-3", s), placement);
      const auto both = sum(operands, Op::sum, with("1e-3", Schedule::two_level), placement);
      EXPECT_TRUE(world::same_bytes(both.results[0], other.results[0])) << name_of(s);
    }
  }
  EXPECT_GT(on_grid, test::sanitized ? 15 : 50);
}

TYPED_TEST(TwoLevelOf, AllreduceOfAnyCountAndSegmentInPlaceToo) {
  for (const Placement& placement : {Placement{0, 0, 1, 1}, Placement{0, 1, 1, 0, 1, 2, 1}}) {
    for (const std::size_t count : {0U, 1U, 5U, 63U, 2049U, 300007U}) {
      SCOPED_TRACE(std::to_string(count) + " elements, " + text_of(placement));
      const auto operands = operands_of<TypeParam>("smooth", count, static_cast<int>(placement.size()));
      const auto flat = sum(operands, Op::sum, with("1e-3", Schedule::ring), placement);
      reference::expect_sum(flat.results[0], operands, flat.reports[0].result_bound);
      for (const std::size_t segment : {0U, 2048U, 5000U}) {
        for (const bool in_place : {false, true}) {
          if (test::sanitized && count > 2049 && in_place != (segment == 2048)) continue;
          const auto both = sum(operands, Op::sum, with("1e-3", Schedule::two_level, segment), placement, in_place);
          world::expect_same_everywhere(both);
          EXPECT_TRUE(world::same_bytes(both.results[0], flat.results[0])) << segment << in_place;
        }
      }
    }
  }
}

TEST(TwoLevel, IntegersExactSumsAndSumsInStepsKeepTheirOwnWay) {
  const Placement placement{0, 0, 1, 1};
  const auto integers = operands_of<std::int32_t>("integer", 5001, 4);
  const auto floats = operands_of<float>("smooth", 50001, 4);
  EXPECT_TRUE(world::same_bytes(sum(integers, Op::sum, with("1e-3", Schedule::two_level), placement).results[3],
                                sum(integers, Op::sum, with("1e-3", Schedule::ring), placement).results[0]));
  EXPECT_TRUE(world::same_bytes(sum(floats, Op::sum, with("lossless", Schedule::two_level), placement).results[3],
                                sum(floats, Op::sum, with("lossless", Schedule::ring), placement).results[0]));
  Options options = with("1e-3", Schedule::two_level);
  options.codec = CodecId::szx;
  const auto steps = sum(floats, Op::sum, options, placement);
  world::expect_same_everywhere(steps);
  reference::expect_sum(steps.results[0], floats, steps.reports[0].result_bound);
  EXPECT_EQ(steps.reports[0].local_bytes, 0U);
  EXPECT_TRUE(world::same_bytes(sum(integers, Op::max, with("lossless", Schedule::two_level), placement).results[3],
                                sum(integers, Op::max, with("lossless", Schedule::ring), placement).results[0]));
}

TEST(TwoLevel, IsTakenWhereARingWouldLeaveANodeOftenAndTheDataIsLong) {
  const auto local_bytes = [](const Placement& placement, std::size_t count) {
    const auto operands = operands_of<float>("smooth", count, static_cast<int>(placement.size()));
    const auto run = sum(operands, Op::sum, with("1e-3", Schedule::automatic), placement);
    world::expect_same_everywhere(run);
    return run.reports[0].local_bytes;
  };
  constexpr std::size_t count = 400003;
  // Three quarters of the operand go to the other ranks of the node; and of the sum one, to three of them.
  const Placement in_turn{0, 1, 0, 1, 0, 1, 0, 1};
  const auto bytes = static_cast<double>(local_bytes(in_turn, count));
  EXPECT_NEAR(bytes, 1.5 * count * sizeof(float), 0.1 * count * sizeof(float));
  EXPECT_EQ(local_bytes(in_turn, 10000), 0U);
  EXPECT_EQ(local_bytes({0, 0, 0, 0, 1, 1, 1, 1}, count), 0U);
  EXPECT_EQ(local_bytes({0, 0, 0, 0}, count), 0U);
  EXPECT_EQ(local_bytes({0, 1, 2, 3}, count), 0U);
}

TEST(TwoLevel, AnAllreduceSendsTheDataOncePerNode) {
  const Placement placement{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  const auto operands = operands_of<float>("noise", 500000, 12);
  const auto wire = [&](Schedule schedule) {
    std::uint64_t bytes = 0;
    for (const Report& r : sum(operands, Op::sum, with("1e-3", schedule), placement).reports)
      bytes += r.stats.wire_bytes;
    return static_cast<double>(bytes);
  };
  // With the ranks in turn every message of a flat ring crosses between nodes: 12 times 2 * 11 / 12 of the data,
  // against 4 times 2 * 3 / 4.
  EXPECT_LT(wire(Schedule::two_level), 0.35 * wire(Schedule::ring));
}

TEST(TwoLevel, ScratchIsAFewSegmentsNotTheArray) {
  constexpr std::size_t count = std::size_t{1} << 22;
  const auto operands = operands_of<float>("smooth", count, 4);
  for (const Report& r : sum(operands, Op::sum, with("1e-3", Schedule::two_level), {0, 0, 1, 1}).reports) {
    EXPECT_LT(r.scratch_bytes, 2 * count * sizeof(float) / 3);
  }
  const auto cast = world::run<float>(4,
                                      [&](int rank, Communicator& comm) {
                                        auto x = operands[static_cast<std::size_t>(rank)];
                                        return std::pair(std::vector<float>(),
                                                         bcast(view(x), 1, comm, with("1e-3", Schedule::two_level)));
                                      },
                                      {0, 0, 1, 1});
  for (const Report& r : cast.reports) EXPECT_LT(r.scratch_bytes, 2 * count * sizeof(float) / 3);
}

/// A damaged or cut message between nodes, or a cut one within, is an error on every rank, and nobody hangs.
void expect_noticed(const Fault& fault, std::size_t segment) {
  std::vector<std::string> texts(6);
  run_ranks(6,
            [&](Transport& t) {
              const auto bad = make_faulty_transport(t, t.rank() == 1 ? fault : delay(0));
              Communicator comm(*bad);
              const auto x = make<float>("smooth", 60000, t.rank());
              std::vector<float> y(x.size());
              try {
                allreduce(view(x), view(y), Op::sum, comm, with("1e-3", Schedule::two_level, segment));
              } catch (const Error& e) {
                EXPECT_EQ(e.code(), Code::corrupt) << e.what();
                texts[static_cast<std::size_t>(t.rank())] = e.what();
              }
              EXPECT_TRUE(comm.usable());
              Communicator healthy(t);
              EXPECT_NO_THROW(allreduce(view(x), view(y), Op::sum, healthy, with("1e-3", Schedule::two_level)));
            },
            20, {0, 0, 1, 1, 2, 2});
  EXPECT_NE(texts[0].find("from rank"), std::string::npos) << texts[0];
  for (const auto& text : texts) EXPECT_EQ(text, texts[0]);
}

/// Changes the nth message to a rank of [first, end).
Fault on_nth(std::uint64_t nth, int first, int end, const Fault& fault) {
  auto seen = std::make_shared<std::uint64_t>(0);
  return [=](std::vector<std::uint8_t>& message, int to, std::uint64_t) {
    if (to >= first && to < end && (*seen)++ == nth) fault(message, to, 0);
  };
}

TEST(TwoLevelFailure, DamageIsNoticedByAll) {
  for (const std::uint64_t nth : {0U, 1U, 3U}) {
    for (const std::size_t segment : {2048U, 8192U}) {
      expect_noticed(on_nth(nth, 2, 6, flip_bit(0, 4321)), segment);
      expect_noticed(on_nth(nth, 2, 6, truncate(0, 30)), segment);
      for (const std::size_t keep : {0U, 13U, 400U, 7000U}) {
        expect_noticed(on_nth(nth, 0, 1, truncate(0, keep)), segment);
      }
    }
  }
}

/// Parts whose plain elements have as many bytes as what a poison message may have.
TEST(TwoLevelFailure, APoisonMessageIsNeverTakenForElements) {
  for (std::size_t count = 4; count <= 4 * 110; count += 3) {
    std::vector<std::string> texts(4);
    run_ranks(4,
              [&](Transport& t) {
                const auto bad = make_faulty_transport(t, t.rank() == 2 ? on_nth(0, 0, 1, truncate(0, 3)) : delay(0));
                Communicator comm(*bad);
                const auto x = make<float>("smooth", count, t.rank());
                std::vector<float> y(x.size());
                try {
                  allreduce(view(x), view(y), Op::sum, comm, with("1e-3", Schedule::two_level));
                } catch (const Error& e) {
                  texts[static_cast<std::size_t>(t.rank())] = e.what();
                }
              },
              20, {0, 1, 0, 1});
    for (const auto& text : texts) EXPECT_EQ(text, texts[0]) << count;
    EXPECT_NE(texts[0], "") << count;
  }
}

/// Runs a bcast or a reduce with each schedule; the same bits on all who get any.
template <typename Call>
void expect_same_bits(const Placement& placement, int root, const char* bound, const Call& call) {
  const auto with_schedule = [&](Schedule schedule) {
    return world::run<float>(
        static_cast<int>(placement.size()),
        [&](int rank, Communicator& comm) { return call(rank, comm, with(bound, schedule, 4096)); }, placement);
  };
  const auto flat = with_schedule(Schedule::ring);
  const auto both = with_schedule(Schedule::two_level);
  for (std::size_t r = 0; r < placement.size(); ++r) {
    EXPECT_TRUE(world::same_bytes(both.results[r], flat.results[r]))
        << text_of(placement) << ", root " << root << ", rank " << r;
  }
  std::uint64_t local_bytes = 0;
  for (const Report& r : both.reports) local_bytes += r.local_bytes;
  EXPECT_EQ(local_bytes != 0,
            schedule::Nodes(placement).most() > 1 && !both.results[static_cast<std::size_t>(root)].empty());
}

TEST(TwoLevel, BcastHasTheBitsOfAFlatOneFromEveryRoot) {
  for (const Placement& placement : placements) {
    for (int root = 0; root < static_cast<int>(placement.size()); ++root) {
      for (const char* bound : {"1e-3", "lossless"}) {
        for (const std::size_t count : {0U, 1U, 20011U}) {
          expect_same_bits(placement, root, bound, [&](int rank, Communicator& comm, const Options& options) {
            auto x = rank == root ? hostile<float>(count, 2)[1] : std::vector<float>(count);
            const Report report = bcast(view(x), root, comm, options);
            return std::pair(x, report);
          });
        }
      }
    }
  }
}

/// Rank r brings count + r elements, or none where r + count is a multiple of 3.
std::vector<std::vector<float>> parts_of(int ranks, std::size_t count) {
  std::vector<std::vector<float>> parts;
  for (int r = 0; r < ranks; ++r) {
    const std::size_t own = count + static_cast<std::size_t>(r);
    parts.push_back(own % 3 == 0 ? std::vector<float>() : hostile<float>(own, r + 2).back());
  }
  return parts;
}

TEST(TwoLevel, AllgatherHasTheBitsOfAFlatOneInPlaceToo) {
  for (const Placement& placement : placements) {
    const auto n = static_cast<int>(placement.size());
    for (const std::size_t count : {0U, 2U, 7001U}) {
      const auto parts = parts_of(n, count);
      const auto counts = moved::counts_of(parts);
      const std::size_t total = moved::joined(parts).size();
      for (const char* bound : {"1e-3", "lossless"}) {
        SCOPED_TRACE(text_of(placement) + ", " + std::to_string(count) + " elements, " + bound);
        const auto gathered = [&](Schedule schedule, bool in_place) {
          return world::run<float>(
              n,
              [&](int rank, Communicator& comm) {
                const auto& mine = parts[static_cast<std::size_t>(rank)];
                std::vector<float> all(total);
                const MutArray place = split(view(all), counts)[static_cast<std::size_t>(rank)];
                if (in_place) std::copy(mine.begin(), mine.end(), static_cast<float*>(place.data));
                const Report report =
                    allgather(in_place ? ConstArray(place) : view(mine), view(all), comm, with(bound, schedule, 4096));
                return std::pair(all, report);
              },
              placement);
        };
        const auto flat = gathered(Schedule::ring, false);
        const auto both = gathered(Schedule::two_level, false);
        world::expect_same_everywhere(both);
        EXPECT_TRUE(world::same_bytes(both.results[0], flat.results[0]));
        EXPECT_TRUE(world::same_bytes(gathered(Schedule::two_level, true).results[0], flat.results[0]));
        std::uint64_t local_bytes = 0;
        for (const Report& r : both.reports) local_bytes += r.local_bytes;
        EXPECT_EQ(local_bytes != 0, schedule::Nodes(placement).most() > 1 && total != 0);
      }
    }
  }
}

TEST(TwoLevel, AnAllgatherSendsEachPartOncePerNode) {
  const Placement placement{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  const auto operands = operands_of<float>("noise", 50000, 12);
  const auto wire = [&](Schedule schedule) {
    const auto run = world::run<float>(
        12,
        [&](int rank, Communicator& comm) {
          std::vector<float> all(12 * 50000U);
          const Report report =
              allgather(view(operands[static_cast<std::size_t>(rank)]), view(all), comm, with("1e-3", schedule));
          return std::pair(all, report);
        },
        placement);
    std::uint64_t bytes = 0;
    for (const Report& r : run.reports) bytes += r.stats.wire_bytes;
    return static_cast<double>(bytes);
  };
  EXPECT_LT(wire(Schedule::two_level), 0.35 * wire(Schedule::ring));  // 3 times in place of 11
}

TEST(TwoLevelFailure, DamageInAnAllgatherIsNoticedByAll) {
  for (const std::uint64_t nth : {0U, 2U}) {
    for (const Fault& fault : {flip_bit(0, 4321), truncate(0, 30)}) {
      std::vector<std::string> texts(6);
      run_ranks(6,
                [&](Transport& t) {
                  const auto bad = make_faulty_transport(t, t.rank() == 1 ? on_nth(nth, 2, 6, fault) : delay(0));
                  Communicator comm(*bad);
                  const auto x = make<float>("smooth", 20000, t.rank());
                  std::vector<float> all(6 * x.size());
                  try {
                    allgather(view(x), view(all), comm, with("1e-3", Schedule::two_level, 2048));
                  } catch (const Error& e) {
                    EXPECT_EQ(e.code(), Code::corrupt) << e.what();
                    texts[static_cast<std::size_t>(t.rank())] = e.what();
                  }
                  EXPECT_TRUE(comm.usable());
                },
                20, {0, 0, 1, 1, 2, 2});
      EXPECT_NE(texts[0], "");
      for (const auto& text : texts) EXPECT_EQ(text, texts[0]);
    }
  }
}

TEST(TwoLevel, ReduceHasTheBitsOfAFlatOneAtEveryRoot) {
  for (const Placement& placement : placements) {
    const auto n = static_cast<int>(placement.size());
    const auto operands = operands_of<float>("smooth", 20011, n);
    for (int root = 0; root < n; ++root) {
      for (const Op op : {Op::average, Op::max}) {
        expect_same_bits(placement, root, "1e-3", [&](int rank, Communicator& comm, const Options& options) {
          auto x = operands[static_cast<std::size_t>(rank)];
          std::vector<float> y(rank == root ? x.size() : 0);
          const bool in_place = op == Op::max && rank == root;
          const Report report = reduce(view(std::as_const(x)), in_place ? view(x) : view(y), op, root, comm, options);
          return std::pair(in_place ? x : y, report);
        });
      }
    }
  }
}

}  // namespace
}  // namespace laconic::collective_two_level_test
