#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "core/error.h"
#include "transport/conformance.h"
#include "transport/threads.h"
#include "transport/timeout.h"

namespace laconic {
namespace {

class Threads : public testing::TestWithParam<int> {};

TEST_P(Threads, Conforms) {
  run_ranks(GetParam(), [](Transport& t) { conformance::run_all(t); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Threads, testing::Values(1, 2, 3, 4, 7, 8));

TEST(ThreadsGroup, AMessageLongerThanItsBufferIsAnError) {
  const auto group = make_threads_group(2);
  const std::vector<std::uint8_t> data(10);
  std::vector<std::uint8_t> room(9);
  group[0]->isend(data, 1, 0).wait();
  Request late = group[1]->irecv(room, 0, 0);
  EXPECT_THROW(late.wait(), Error);
  Request early = group[1]->irecv(room, 0, 0);
  group[0]->isend(data, 1, 0).wait();
  EXPECT_THROW(early.test(), Error);
}

TEST(ThreadsGroup, AForgottenReceiveTakesNoMessage) {
  const auto group = make_threads_group(2);
  const std::vector<std::uint8_t> data(4, 7);
  std::vector<std::uint8_t> lost(4), got(4);
  {
    const Request dropped = group[1]->irecv(lost, 0, 0);
  }
  group[0]->isend(data, 1, 0).wait();
  group[1]->irecv(got, 0, 0).wait();
  EXPECT_EQ(got, data);
  EXPECT_NE(lost, data);
}

TEST(ThreadsGroup, WaitingGivesUpAndNamesTheRank) {
  const auto group = make_threads_group(3, 0.02);
  std::vector<std::uint8_t> room(1);
  Request r = group[1]->irecv(room, 2, 0);
  try {
    r.wait();
    FAIL() << "nothing was sent";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::transport);
    EXPECT_NE(std::string(e.what()).find("rank 1"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("from rank 2"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("0.02 s"), std::string::npos) << e.what();
  }
}

TEST(RunRanks, AFailureWakesTheOthersAndIsRethrown) {
  std::atomic<int> woken = 0;
  const auto body = [&](Transport& t) {
    if (t.rank() == 2) throw std::runtime_error("out of luck");
    std::vector<std::uint8_t> room(1);
    try {
      t.irecv(room, 2, 0).wait();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::transport);
      EXPECT_STREQ(e.what(), "rank 2 failed: out of luck");
      ++woken;
      throw;
    }
  };
  try {
    run_ranks(4, body);
    FAIL() << "rank 2 threw";
  } catch (const std::exception& e) {
    EXPECT_STREQ(e.what(), "out of luck");
  }
  EXPECT_EQ(woken, 3);
}

TEST(Timeout, NamesAFewRanksAndCountsTheOthers) {
  EXPECT_EQ(no_sign_of({}), "");
  std::vector<int> ranks{2};
  EXPECT_EQ(no_sign_of(ranks), ": no sign of rank 2");
  ranks = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(no_sign_of(ranks), ": no sign of ranks 1, 2, 3, 4, 5, 6, 7, 8 and 9");
  ranks.push_back(10);
  EXPECT_EQ(no_sign_of(ranks), ": no sign of ranks 1, 2, 3, 4, 5, 6, 7, 8 and 2 others");
}

TEST(Signs, TellWhoIsMissingAndWhomOthersWaitFor) {
  Signs signs(3, 6);
  EXPECT_EQ(signs.missing(), ": no sign of ranks 0, 1, 2, 4 and 5, which nobody is known to wait for");
  signs.hear(3, 2);
  signs.hear(4, 3);
  EXPECT_EQ(signs.missing(), ": no sign of rank 2, nor of ranks 0, 1 and 5, which nobody is known to wait for");
  EXPECT_FALSE(signs.of_all());
  signs.hear(5, Signs::everybody);
  EXPECT_EQ(signs.missing(), ": no sign of ranks 0, 1 and 2");
  for (int r = 0; r < 3; ++r) signs.hear(r, Signs::nobody);
  EXPECT_TRUE(signs.of_all());
  EXPECT_EQ(signs.missing(), "");
}

TEST(Threads, WhoWaitsThroughOthersNamesTheRankThatIsStuck) {
  const auto ranks = make_threads_group(4, 0.5);
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (int r = 2; r != 1; r = (r + 1) % 4) {
    threads.emplace_back([&, r] {
      std::vector<std::uint8_t> room(1);
      try {
        ranks[static_cast<std::size_t>(r)]->irecv(room, (r + 3) % 4, 0).wait();
      } catch (const Error& e) {
        texts[static_cast<std::size_t>(r)] = e.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const int r : {0, 2, 3}) {
    const std::string& text = texts[static_cast<std::size_t>(r)];
    EXPECT_NE(text.find("a message from rank " + std::to_string((r + 3) % 4) + ": no sign of rank"), std::string::npos)
        << text;
    EXPECT_NE(text.find('1', text.find(": no sign of rank")), std::string::npos) << text;
  }
}

TEST(RunRanks, WantsAtLeastOneRankAndANodeForEach) {
  EXPECT_THROW(run_ranks(0, [](Transport&) {}), Error);
  EXPECT_THROW(run_ranks(3, [](Transport&) {}, 1, {0, 1}), Error);
}

TEST(RunRanks, RanksAreOnOneNodeOrWhereTheCallerSays) {
  run_ranks(3, [](Transport& t) { EXPECT_EQ(t.nodes(), (std::vector<int>{0, 0, 0})); });
  const std::vector<int> nodes{4, 1, 4};
  const auto body = [&](Transport& t) {
    EXPECT_EQ(t.nodes(), nodes);
    EXPECT_EQ(t.duplicate()->nodes(), nodes);
  };
  run_ranks(3, body, 1, nodes);
}

}  // namespace
}  // namespace laconic
