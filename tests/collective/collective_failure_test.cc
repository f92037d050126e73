// Damaged messages and dead ranks: an error on every rank that can answer, never a hang, never a wrong result.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/gather.h"
#include "collective/scatter.h"
#include "collective/world.h"
#include "core/error.h"
#include "transport/faulty.h"

namespace laconic::collective_failure_test {
namespace {

using testing_fields::make;
using world::view;

constexpr int ranks = 4;
constexpr int culprit = 1;
constexpr std::size_t count = 60000;

Options with(const char* bound, Schedule schedule = Schedule::automatic) {
  Options o;
  o.bound = Bound::parse(bound);
  o.segment_values = 4096;
  o.schedule = schedule;
  return o;
}

using Action = std::function<void(Communicator&)>;

void reduce(Communicator& comm, const char* bound, Schedule schedule = Schedule::automatic) {
  const auto x = make<float>("smooth", count, comm.rank());
  std::vector<float> sum(count);
  allreduce(view(x), view(sum), Op::sum, comm, with(bound, schedule));
}

void reduce_by_szx(Communicator& comm, Framework framework) {
  Options options = with("1e-3");
  options.codec = CodecId::szx;
  options.framework = framework;
  const auto x = make<float>("smooth", count, comm.rank());
  std::vector<float> sum(count);
  allreduce(view(x), view(sum), Op::sum, comm, options);
}

void gather(Communicator& comm) {
  const auto x = make<float>("smooth", 15000, comm.rank());
  std::vector<float> all(x.size() * static_cast<std::size_t>(comm.size()));
  allgather(view(x), view(all), comm, with("1e-3"));
}

/// Movement in which the culprit (on whose wire things happen) sends. Segments of 4096 in blocks of 15000, or short
/// blocks that share messages.
void broadcast(Communicator& comm) {
  auto x = make<float>("smooth", count, comm.rank());
  bcast(view(x), 0, comm, with("1e-3"));
}
void spread(Communicator& comm, std::size_t share) {
  const auto x = make<float>("smooth", share * ranks, comm.rank());
  std::vector<float> mine(share);
  const std::vector<std::size_t> counts(ranks, share);
  scatter(view(x), counts, view(mine), culprit, comm, with("1e-3"));
}
void collect(Communicator& comm, std::size_t share) {
  const auto x = make<float>("smooth", share, comm.rank());
  std::vector<float> all(share * ranks);
  const std::vector<std::size_t> counts(ranks, share);
  laconic::gather(view(x), view(all), counts, 0, comm, with("1e-3"));
}
void everyone_to_everyone(Communicator& comm) {
  const auto x = make<float>("smooth", count, comm.rank());
  std::vector<float> y(count);
  alltoall(view(x), view(y), comm, with("1e-3"));
}

/// Runs the action with a bad wire behind one rank. Every rank must throw the same, and be able to go on.
void expect_noticed(const Action& action, const Fault& fault) {
  std::vector<std::string> texts(ranks);
  run_ranks(
      ranks,
      [&](Transport& t) {
        const auto bad = make_faulty_transport(t, t.rank() == culprit ? fault : delay(0));
        Communicator comm(*bad);
        try {
          action(comm);
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), Code::corrupt) << e.what();
          texts[static_cast<std::size_t>(t.rank())] = e.what();
        }
        EXPECT_TRUE(comm.usable());
        Communicator healthy(t);
        EXPECT_NO_THROW(reduce(healthy, "1e-3"));
      },
      20);
  EXPECT_NE(texts[0], "");
  EXPECT_NE(texts[0].find("from rank"), std::string::npos) << texts[0];
  for (const auto& text : texts) EXPECT_EQ(text, texts[0]);
}

TEST(Failure, AFlippedBitIsNoticedByAllInEveryFramework) {
  for (const Framework framework : {Framework::stepwise, Framework::point_to_point})
    for (const std::uint64_t nth : {0U, 3U, 20U})
      for (const std::uint64_t bit : {400U, 9999U})
        expect_noticed([=](Communicator& comm) { reduce_by_szx(comm, framework); }, flip_bit(nth, bit));
}

TEST(Failure, AFlippedBitAnywhereIsNoticedByAllOnTheGrid) {
  for (const std::uint64_t nth : {0U, 3U, 9U, 20U}) {
    for (const std::uint64_t bit : {0U, 70U, 400U, 3001U, 9999U}) {
      SCOPED_TRACE("message " + std::to_string(nth) + ", bit " + std::to_string(bit));
      for (const Schedule s : {Schedule::automatic, Schedule::direct}) {
        expect_noticed([s](Communicator& c) { reduce(c, "1e-3", s); }, flip_bit(nth, bit));
      }
    }
  }
}

TEST(Failure, AFlippedBitIsNoticedByAllOnTheExactRouteAndInMovement) {
  for (const std::uint64_t nth : {0U, 5U, 11U}) {
    expect_noticed([](Communicator& c) { reduce(c, "lossless"); }, flip_bit(nth, 777));
    expect_noticed(gather, flip_bit(nth, 777));
  }
}

TEST(Failure, AFlippedBitIsNoticedByAllWhateverMoves) {
  for (const std::uint64_t nth : {0U, 2U}) {
    expect_noticed(broadcast, flip_bit(nth, 4567));
    expect_noticed([](Communicator& c) { spread(c, 15000); }, flip_bit(nth, 4567));
    expect_noticed([](Communicator& c) { collect(c, 15000); }, flip_bit(nth, 4567));
    expect_noticed(everyone_to_everyone, flip_bit(nth, 4567));
  }
  for (const std::uint64_t bit : {1U, 31U, 100U, 1500U}) {  // sizes in shared messages, too
    expect_noticed([](Communicator& c) { spread(c, 900); }, flip_bit(0, bit));
  }
  expect_noticed([](Communicator& c) { spread(c, 900); }, truncate(0, 3));
  expect_noticed([](Communicator& c) { collect(c, 900); }, truncate(0, 60));
}

TEST(Failure, ACutMessageIsNoticedByAll) {
  for (const std::size_t keep : {0U, 3U, 20U, 48U, 500U}) {
    expect_noticed([](Communicator& c) { reduce(c, "1e-3"); }, truncate(2, keep));
    expect_noticed(gather, truncate(1, keep));
  }
}

TEST(Failure, ASlowWireIsNoError) {
  run_ranks(3, [](Transport& t) {
    const auto slow = make_faulty_transport(t, delay(t.rank() == culprit ? 0.002 : 0));
    Communicator comm(*slow);
    EXPECT_NO_THROW(reduce(comm, "1e-3"));
    EXPECT_NO_THROW(gather(comm));
  });
}

TEST(Failure, ARankThatDiesIsNamedAndNobodyHangs) {
  std::atomic<int> told = 0;
  const auto body = [&](Transport& t) {
    Communicator comm(t);
    const auto fault = [&](std::vector<std::uint8_t>&, int, std::uint64_t nth) {
      if (t.rank() == culprit && nth == 5) throw std::runtime_error("struck by lightning");
    };
    const auto dying = make_faulty_transport(t, fault);
    Communicator doomed(*dying);
    try {
      reduce(doomed, "1e-3");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::transport);
      EXPECT_NE(std::string(e.what()).find("rank 1 failed"), std::string::npos) << e.what();
      EXPECT_FALSE(doomed.usable());
      EXPECT_THROW(reduce(doomed, "1e-3"), Error);
      ++told;
    }
  };
  EXPECT_THROW(run_ranks(ranks, body, 20), std::runtime_error);
  EXPECT_EQ(told, ranks - 1);
}

TEST(Failure, RanksThatNeverCallAreWaitedForAndThenNamed) {
  std::atomic<int> told = 0;
  run_ranks(
      5,
      [&](Transport& t) {
        if (t.rank() == culprit || t.rank() == 4) return;
        Communicator comm(t);
        try {
          reduce(comm, "1e-3");
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), Code::transport);
          EXPECT_NE(std::string(e.what()).find("all ranks to call the same collective: no sign of ranks 1 and 4;"),
                    std::string::npos)
              << e.what();
          ++told;
        }
      },
      1);  // who comes late on a busy machine would be named, too
  EXPECT_EQ(told, 3);
}

}  // namespace
}  // namespace laconic::collective_failure_test
