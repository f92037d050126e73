// When ranks ask each other about irregular calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collective/asking.h"

namespace laconic::asking_test {
namespace {

constexpr std::uint64_t small = 40, large = 100000;

/// For each of some calls whether it is asked about, where nothing ever comes of that.
std::vector<bool> in_vain(Asking& asking, int calls, unsigned most) {
  std::vector<bool> asked;
  for (int i = 0; i < calls; ++i) {
    asked.push_back(asking.is_due(small));
    if (asked.back()) asking.came_to_nothing(small, most);
  }
  return asked;
}

/// The longest stretch without a question.
unsigned longest_silence(const std::vector<bool>& asked) {
  unsigned longest = 0, now = 0;
  for (const bool yes : asked) {
    now = yes ? 0 : now + 1;
    longest = std::max(longest, now);
  }
  return longest;
}

TEST(Asking, BecomesRareWhereNothingComesOfIt) {
  Asking asking;
  const std::vector<bool> asked = in_vain(asking, 20000, 1U << 30);
  EXPECT_EQ(std::count(asked.begin(), asked.begin() + 16, true), 16);
  EXPECT_LT(std::count(asked.begin() + 16, asked.end(), true), 150);
  EXPECT_LE(longest_silence(asked), 1024U);
}

TEST(Asking, LeavesNoMoreAloneThanItMay) {
  for (const unsigned most : {0U, 1U, 5U, 128U}) {
    Asking asking;
    const std::vector<bool> asked = in_vain(asking, 20000, most);
    EXPECT_LE(longest_silence(asked), most);
    EXPECT_GE(longest_silence(asked), most - most / 8);
    EXPECT_LT(static_cast<double>(std::count(asked.begin() + 1000, asked.end(), true)), 19000 * 2.5 / (most + 1));
  }
}

TEST(Asking, CountsWhatItLeavesAlone) {
  Asking asking;
  const std::vector<bool> asked = in_vain(asking, 1000, 128);
  EXPECT_EQ(asking.take_left_alone(), std::count(asked.begin(), asked.end(), false));
  EXPECT_EQ(asking.take_left_alone(), 0U);
}

// As one who wants to know whether a call is due may be another than who then makes it.
TEST(Asking, ACallThatIsDueRemainsSo) {
  Asking asking(1);
  EXPECT_TRUE(asking.is_due());
  EXPECT_TRUE(asking.is_due());
  asking.came_to_nothing(0, 1);
  EXPECT_FALSE(asking.is_due());
  EXPECT_TRUE(asking.is_due());
}

/// One of two ranks, the other of which has nothing to send; so this one has all the news. Counts the questions, of
/// some turns of calls of which only the last, large one is of use, or none.
struct Turns {
  int met = 0, asked = 0;
  Turns(int turn, int turns, bool useful) {
    Asking here, there;
    for (int i = 0; i < turn * turns; ++i) {
      const bool last = i % turn == turn - 1;
      const std::uint64_t bytes = last ? large : small;
      const bool due = here.is_due(bytes);
      EXPECT_EQ(due, there.is_due(0)) << "ranks differ at call " << i;
      if (!due) continue;
      ++asked;
      met += last ? 1 : 0;
      const bool news = here.take_news();
      EXPECT_FALSE(there.take_news());
      for (Asking* each : {&here, &there}) {
        const std::uint64_t part = each == &here ? bytes : 0;
        if (news) each->heard_news();
        if (last && useful) {
          each->came_to_something(part);
        } else {
          each->came_to_nothing(part);
        }
      }
    }
  }
};

TEST(Asking, EachOfCallsThatTakeTurnsIsMet) {
  for (const int turn : {1, 2, 3, 7, 16, 40, 64}) EXPECT_GE(Turns(turn, 100, true).met, 97) << "one in " << turn;
}

TEST(Asking, WhatIsOfNoUseIsNoNewsTwice) {
  for (const int turn : {2, 40, 1000}) {
    const Turns vain(turn, 20000 / turn, false);
    EXPECT_LT(vain.asked, 300) << "one in " << turn;
  }
}

}  // namespace
}  // namespace laconic::asking_test
