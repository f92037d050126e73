#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "collective/allreduce.h"
#include "collective/background.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/moved.h"
#include "collective/world.h"
#include "core/error.h"
#include "transport/faulty.h"

namespace laconic::collective_background_test {
namespace {

using moved::with;
using testing_fields::make;
using world::view;

// Several calls under way while the same ranks talk over the first communicator, in an order of their own.
TEST(Background, CallsRunByThemselvesInOrderBesideOthers) {
  for (const int n : {1, 2, 4}) {
    run_ranks(
        n,
        [](Transport& t) {
          Communicator comm(t);
          Background background(t.duplicate());
          const auto x = make<float>("smooth", 50000, t.rank());
          std::vector<float> blocking(x.size()), first(x.size()), second = x;
          auto a = background.submit(
              [&](Communicator& c) { return allreduce(view(x), view(first), Op::sum, c, with("1e-3")); });
          auto b = background.submit([&](Communicator& c) { return bcast(view(second), 0, c, with("1e-3")); });
          allreduce(view(x), view(blocking), Op::sum, comm, with("1e-3"));
          EXPECT_EQ(b.get().stats.calls, 1U);
          EXPECT_EQ(a.wait_for(std::chrono::seconds(0)), std::future_status::ready);
          EXPECT_EQ(a.get().result_bound, t.size() == 1 ? 0 : 1e-3);
          EXPECT_TRUE(world::same_bytes(first, blocking));
          moved::expect_within(second, make<float>("smooth", 50000, 0), 1e-3);
        },
        20);
  }
}

TEST(Background, ACallIsFinishedByTheOthersWithoutTheCallersHelp) {
  std::atomic<int> done = 0;
  run_ranks(
      3,
      [&](Transport& t) {
        Background background(t.duplicate());
        std::vector<float> x(30000, 1.0F);
        auto call = background.submit([&](Communicator& c) {
          Report report = allreduce(view(std::as_const(x)), view(x), Op::sum, c, {});
          ++done;
          return report;
        });
        while (done < 3) std::this_thread::yield();  // nobody waits for the call
        call.get();
        EXPECT_EQ(x[29999], 3.0F);
      },
      20);
}

TEST(Background, ErrorsComeOutOfTheFutureAndTheNextCallWorks) {
  run_ranks(
      2,
      [](Transport& t) {
        Background background(t.duplicate());
        std::vector<float> x(t.rank() == 0 ? 100 : 101), y(x.size()), z(100);
        auto bad = background.submit(
            [&](Communicator& c) { return allreduce(view(std::as_const(x)), view(y), Op::sum, c, {}); });
        auto good = background.submit([&](Communicator& c) { return bcast(view(z), 1, c, {}); });
        EXPECT_THROW(bad.get(), Error);
        EXPECT_NO_THROW(good.get());
      },
      20);
}

TEST(Background, DamageIsNoticedOverADuplicateToo) {
  run_ranks(
      2,
      [](Transport& t) {
        const auto bad = make_faulty_transport(t, t.rank() == 1 ? flip_bit(0, 999) : delay(0));
        Background background(bad->duplicate());
        const auto x = make<float>("smooth", 30000, t.rank());
        std::vector<float> y(x.size());
        auto call =
            background.submit([&](Communicator& c) { return allreduce(view(x), view(y), Op::sum, c, with("1e-3")); });
        EXPECT_THROW(call.get(), Error);
      },
      20);
}

TEST(Background, ItsEndWaitsForWhatWasSubmitted) {
  run_ranks(
      2,
      [](Transport& t) {
        std::vector<float> x(20000, 1.0F);
        std::future<Report> call;
        {
          Background background(t.duplicate());
          call = background.submit(
              [&](Communicator& c) { return allreduce(view(std::as_const(x)), view(x), Op::sum, c, {}); });
        }
        EXPECT_EQ(call.wait_for(std::chrono::seconds(0)), std::future_status::ready);
        EXPECT_EQ(x[0], 2.0F);
      },
      20);
}

// A rank that dies takes the duplicates along.
TEST(Background, ADeadRankIsNamedInTheBackgroundToo) {
  std::atomic<int> told = 0;
  const auto body = [&](Transport& t) {
    if (t.rank() == 1) throw std::runtime_error("struck by lightning");
    Background background(t.duplicate());
    std::vector<float> x(100);
    try {
      background.submit([&](Communicator& c) { return bcast(view(x), 1, c, {}); }).get();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::transport);
      EXPECT_NE(std::string(e.what()).find("rank 1 failed"), std::string::npos) << e.what();
      ++told;
    }
  };
  EXPECT_THROW(run_ranks(3, body, 20), std::runtime_error);
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace laconic::collective_background_test
