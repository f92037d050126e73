// How much travels in a group.
#include <gtest/gtest.h>

#include "transport/nccl/pace.h"

namespace laconic::nccl_pace_test {
namespace {

using nccl::Pace;
using std::chrono::microseconds;
using std::chrono::milliseconds;
constexpr std::size_t mib = std::size_t{1} << 20;

TEST(NcclPace, IsWhatComesInAMillisecond) {
  Pace pace;
  EXPECT_EQ(pace.rate(), 0U);
  EXPECT_EQ(Pace::share_at(pace.rate()), Pace::least_share);  // nothing is known
  const Pace::Time start = Pace::Time{} + milliseconds(1000);
  pace.note(8 * mib, start, start + milliseconds(2));
  EXPECT_NEAR(static_cast<double>(Pace::share_at(pace.rate())), 4 * mib, 1e3);
  // Issued at the same time as the first, it had to wait for it.
  pace.note(8 * mib, start, start + milliseconds(4));
  EXPECT_NEAR(static_cast<double>(Pace::share_at(pace.rate())), 4 * mib, 1e3);
  // Nothing was under way before it.
  pace.note(8 * mib, start + milliseconds(100), start + milliseconds(102));
  EXPECT_NEAR(static_cast<double>(Pace::share_at(pace.rate())), 4 * mib, 1e3);
  // What has changed is soon believed.
  for (int i = 0; i < 10; ++i) {
    const auto begin = start + milliseconds(200 + 10 * i);
    pace.note(16 * mib, begin, begin + milliseconds(1));
  }
  EXPECT_NEAR(static_cast<double>(Pace::share_at(pace.rate())), 16 * mib, 0.01 * 16 * mib);
}

// Groups travel beside each other, and one that brings little may end at any time.
TEST(NcclPace, IsThatOfAllGroupsTogether) {
  Pace pace;
  Pace::Time now = Pace::Time{} + milliseconds(1000);
  for (int i = 0; i < 20; ++i) {
    const auto begin = now;
    pace.note(2 * mib, begin, begin + microseconds(990));
    pace.note(100, begin, begin + microseconds(995));
    pace.note(2 * mib, begin, now = begin + milliseconds(1));
    EXPECT_NEAR(static_cast<double>(Pace::share_at(pace.rate())), 4 * mib, 0.1 * 4 * mib) << i;
  }
}

TEST(NcclPace, ShortGroupsSayNothing) {
  Pace pace;
  const Pace::Time start = Pace::Time{} + milliseconds(1000);
  pace.note(0, start, start + milliseconds(5));
  pace.note(1000, start, start + milliseconds(6));
  EXPECT_EQ(pace.rate(), 0U);
}

TEST(NcclPace, HasItsLimits) {
  EXPECT_EQ(Pace::share_at(1), Pace::least_share);
  EXPECT_EQ(Pace::share_at(~std::uint64_t{0}), Pace::most_share);
  Pace pace;
  pace.note(mib, Pace::Time{}, Pace::Time{});  // in no time at all
  EXPECT_GT(pace.rate(), 0U);
}

}  // namespace
}  // namespace laconic::nccl_pace_test
