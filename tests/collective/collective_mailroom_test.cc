#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "collective/allreduce.h"
#include "collective/fields.h"
#include "collective/mailroom.h"
#include "collective/moved.h"
#include "collective/p2p.h"
#include "collective/world.h"
#include "core/error.h"
#include "transport/faulty.h"

namespace laconic::collective_mailroom_test {
namespace {

using moved::expect_within;
using moved::with;
using testing_fields::make;
using world::view;

using Submitted = Mailroom::Submitted;

Letter to(int rank, int tag, const std::vector<float>& x) {
  return {.out = {{view(x), rank, tag}}, .in = {}, .may_be_own = true};
}
Letter from(int rank, int tag, std::vector<float>& room) {
  return {.out = {}, .in = {{view(room), rank, tag}}, .may_be_own = true};
}

void expect_fails(Submitted& call, Code code, const std::string& words) {
  try {
    call.get();
    ADD_FAILURE() << "no error: " << words;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

/// body(rank, communicator, its mailroom).
void on_ranks(int ranks, const std::function<void(int, Communicator&, Mailroom&)>& body, double timeout = 20) {
  run_ranks(
      ranks,
      [&](Transport& t) {
        Communicator comm(t);
        Mailroom mailroom(t);
        body(t.rank(), comm, mailroom);
      },
      timeout);
}

// In one order on every rank, one call after the other would wait for ever: the first receives what is sent last.
TEST(Mailroom, MessagesGoInWhateverOrderTheyCan) {
  on_ranks(3, [](int rank, Communicator& comm, Mailroom& mailroom) {
    constexpr int tags = 5;
    std::vector<std::vector<float>> sent, got(3 * tags);
    std::vector<std::size_t> counts(3 * tags);
    std::vector<Submitted> calls;
    for (int peer = 0; peer < 3; ++peer) {
      for (int tag = 0; tag < tags; ++tag) {
        const auto i = static_cast<std::size_t>(peer * tags + tag);
        got[i].resize(40000);
        calls.push_back(mailroom.submit(from(peer, tag, got[i]), {}, {}, &counts[i]));
      }
    }
    for (int tag = 0; tag < tags; ++tag) sent.push_back(make<float>("smooth", 30000U + 100U * unsigned(tag), rank));
    for (int peer = 2; peer >= 0; --peer) {
      for (int tag = tags - 1; tag >= 0; --tag) {
        calls.push_back(mailroom.submit(to(peer, tag, sent[std::size_t(tag)]), with("1e-3", 4096), {}, nullptr));
      }
    }
    std::vector<float> x(100, 1.0F);  // collectives do not meet them
    allreduce(view(std::as_const(x)), view(x), Op::sum, comm, {});
    EXPECT_EQ(x[0], 3.0F);
    for (Submitted& call : calls) EXPECT_EQ(call.get().stats.calls, 1U);
    EXPECT_TRUE(mailroom.idle());
    for (int peer = 0; peer < 3; ++peer) {
      for (int tag = 0; tag < tags; ++tag) {
        const auto i = static_cast<std::size_t>(peer * tags + tag);
        got[i].resize(counts[i]);
        expect_within(got[i], make<float>("smooth", 30000U + 100U * unsigned(tag), peer), 1e-3);
      }
    }
  });
}

TEST(Mailroom, OfOneTagTheyKeepTheirOrderAlsoWithCallsThatBlock) {
  on_ranks(2, [](int rank, Communicator& comm, Mailroom& mailroom) {
    constexpr std::size_t messages = 8;
    std::vector<std::vector<float>> x;
    for (std::size_t i = 0; i < messages; ++i) x.push_back(make<float>("smooth", 9000 - i, int(i)));
    std::vector<Submitted> calls;
    std::vector<std::vector<float>> got(x);
    for (std::size_t i = 0; i < messages; ++i) {
      if (rank == 0 && i == 4) {  // all before are under way, or gone
        while (!mailroom.idle()) std::this_thread::yield();
        send(view(x[i]), 1, 7, comm, with("1e-3", 2048));
      } else if (rank == 0) {
        calls.push_back(mailroom.submit(to(1, 7, x[i]), with("1e-3", 2048), {}, nullptr));
      } else if (i < 6) {
        calls.push_back(mailroom.submit(from(0, 7, got[i]), {}, {}, nullptr));
      }
    }
    for (Submitted& call : calls) call.get();
    for (std::size_t i = 6; rank == 1 && i < messages; ++i) recv(view(got[i]), 0, 7, comm, {});
    for (std::size_t i = 0; rank == 1 && i < messages; ++i) expect_within(got[i], x[i], 1e-3);
  });
}

TEST(Mailroom, TheyArriveWithoutTheCallersHelp) {
  std::atomic<int> done = 0;
  on_ranks(2, [&](int rank, Communicator&, Mailroom& mailroom) {
    const auto x = make<float>("smooth", 300000, rank);
    std::vector<float> y(x.size());
    Letter both = to(1 - rank, 3, x);
    both.in = from(1 - rank, 3, y).in;
    std::size_t count = 0;
    Submitted call = mailroom.submit(both, with("1e-3"), {}, &count);
    while (!call.is_done()) std::this_thread::yield();
    ++done;
    while (done < 2) std::this_thread::yield();
    const Report report = call.get();
    EXPECT_EQ(count, x.size());
    EXPECT_EQ(report.result_bound, 1e-3);
    EXPECT_EQ(report.stats.original_bytes, x.size() * sizeof(float));
    EXPECT_LT(report.stats.wire_bytes, report.stats.original_bytes);
    expect_within(y, make<float>("smooth", 300000, 1 - rank), 1e-3);
  });
}

// Which may be long before the other one gets there. Who waits for it gives up in the end.
TEST(Mailroom, TimeCountsWhileSomebodyWaits) {
  std::atomic<bool> late = false, over = false;
  on_ranks(
      2,
      [&](int rank, Communicator&, Mailroom& mailroom) {
        std::vector<float> x(1000, 1.0F), y(1000);
        if (rank == 0) {
          while (!late) std::this_thread::yield();
          Submitted call = mailroom.submit(to(1, 0, x), {}, {}, nullptr);
          call.get();
          while (!over) std::this_thread::yield();
          return;
        }
        struct Over {
          std::atomic<bool>& it;
          ~Over() { it = true; }
        };
        const Over at_the_end{over};
        Submitted first = mailroom.submit(from(0, 0, y), {}, {}, nullptr);
        Submitted never = mailroom.submit(from(0, 1, x), {}, {}, nullptr);
        std::this_thread::sleep_for(std::chrono::seconds(3));
        EXPECT_FALSE(first.is_done());
        late = true;
        first.get();
        EXPECT_NEAR(y[999], 1.0F, 1e-3);
        EXPECT_FALSE(never.is_done());
        expect_fails(never, Code::transport, "rank 1 gave up after waiting 2 s for a message from rank 0");
        EXPECT_FALSE(mailroom.usable());
        Submitted after = mailroom.submit(to(0, 0, y), {}, {}, nullptr);
        expect_fails(after, Code::transport, "");
      },
      2);
}

// Whose turn does not come before that of the one that nobody answers.
TEST(Mailroom, WhoWaitsForOneWaitsForThoseBeforeIt) {
  std::atomic<bool> over = false;
  on_ranks(
      2,
      [&](int rank, Communicator&, Mailroom& mailroom) {
        std::vector<float> x(10), y(10);
        while (rank == 0 && !over) std::this_thread::yield();
        if (rank == 0) return;
        Submitted first = mailroom.submit(from(0, 3, x), {}, {}, nullptr);
        Submitted second = mailroom.submit(from(0, 3, y), {}, {}, nullptr);
        expect_fails(second, Code::transport, "rank 1 gave up after waiting 0.5 s");
        expect_fails(first, Code::transport, "rank 1 gave up after waiting 0.5 s");
        over = true;
      },
      0.5);
}

TEST(Mailroom, WhatOneSideMayNotDoTheOtherHearsOfAndTheNextMessageArrives) {
  on_ranks(2, [](int rank, Communicator&, Mailroom& mailroom) {
    const auto x = make<float>("smooth", 9000, 1);
    std::vector<float> narrow(8999), right(9000);
    if (rank == 0) {
      for (const int tag : {0, largest_tag + 1, 0, 0}) {
        Submitted call = mailroom.submit(to(1, tag, x), with("1e-3", 2048), {}, nullptr);
        if (tag == 0) call.get();
        if (tag != 0) expect_fails(call, Code::invalid_argument, "tag 32001");
      }
      Submitted call = mailroom.submit(to(1, 0, x), with("1e9x"), {}, nullptr);
      expect_fails(call, Code::invalid_argument, "ratio");
      call = mailroom.submit(to(1, 0, x), {}, Error(Code::invalid_argument, "odd options"), nullptr);
      expect_fails(call, Code::invalid_argument, "odd options");
      call = mailroom.submit(to(7, 0, x), {}, {}, nullptr);
      expect_fails(call, Code::invalid_argument, "dest 7");
    } else {
      std::size_t count = 42;
      Submitted call = mailroom.submit(from(0, 0, narrow), {}, {}, &count);
      expect_fails(call, Code::too_small, "8999");
      call = mailroom.submit(from(0, 0, right), {}, Error(Code::invalid_argument, "odd options"), &count);
      expect_fails(call, Code::invalid_argument, "odd options");
      EXPECT_EQ(count, 42U);
      call = mailroom.submit(from(0, 0, right), {}, {}, &count);
      call.get();
      EXPECT_EQ(count, 9000U);
      expect_within(right, x, 1e-3);
      call = mailroom.submit(from(0, 0, right), {}, {}, &count);
      expect_fails(call, Code::invalid_argument, "ratio");
      call = mailroom.submit(from(0, 0, right), {}, {}, &count);
      expect_fails(call, Code::invalid_argument, "rank 0: ");
    }
    EXPECT_TRUE(mailroom.usable());
  });
}

// What follows a damaged head cannot be told apart, so nothing that is under way has an end.
TEST(Mailroom, AMessageThatIsLeftInItsMiddleEndsAll) {
  run_ranks(
      2,
      [](Transport& t) {
        const auto bad = make_faulty_transport(t, t.rank() == 0 ? flip_bit(0, 40) : delay(0));
        const auto x = make<float>("smooth", 20000, 1);
        std::vector<float> y(x.size()), z(x.size());
        Mailroom mailroom(*bad);
        if (t.rank() == 0) {
          Submitted call = mailroom.submit(to(1, 0, x), {}, {}, nullptr);
          call.get();
          return;
        }
        Submitted other = mailroom.submit(from(0, 5, z), {}, {}, nullptr);
        Submitted call = mailroom.submit(from(0, 0, y), {}, {}, nullptr);
        expect_fails(call, Code::corrupt, "from rank 0 is damaged");
        expect_fails(other, Code::transport, "from rank 0 is damaged");
        EXPECT_FALSE(mailroom.usable());
      },
      20);
}

TEST(Mailroom, ItsEndWaitsForWhatIsUnderWay) {
  on_ranks(2, [](int rank, Communicator& comm, Mailroom&) {
    const auto x = make<float>("smooth", 500000, 1);
    std::vector<float> y(x.size());
    std::optional<Submitted> call;
    {
      Mailroom another(comm.transport());
      call = another.submit(rank == 0 ? to(1, 9, x) : from(0, 9, y), with("1e-3", 4096), {}, nullptr);
    }
    ASSERT_TRUE(call->is_done());
    call->get();
    if (rank == 1) expect_within(y, x, 1e-3);
  });
}

/// Who sends how much to whom, the same on every rank.
struct Planned {
  int sender, receiver, tag, count;
};

std::vector<Planned> random_plan(int ranks, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Planned> plan;
  for (int i = 0; i < 60; ++i) plan.push_back({below(ranks), below(ranks), below(3), below(4) == 0 ? 0 : below(9000)});
  return plan;
}

TEST(Mailroom, AnyNumberOfMessagesInAnyOrder) {
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const int ranks = 2 + static_cast<int>(seed % 3);
    const auto plan = random_plan(ranks, seed);
    on_ranks(ranks, [&](int rank, Communicator&, Mailroom& mailroom) {
      std::vector<std::vector<float>> data(plan.size()), room(plan.size());
      std::vector<Submitted> calls;
      std::vector<std::size_t> counts(plan.size());
      const auto submit = [&](std::size_t i, bool receives) {
        const auto& [sender, receiver, tag, count] = plan[i];
        if (!receives && sender == rank) {
          calls.push_back(mailroom.submit(to(receiver, tag, data[i]), with("1e-3", 1024), {}, nullptr));
        } else if (receives && receiver == rank) {
          calls.push_back(mailroom.submit(from(sender, tag, room[i]), {}, {}, &counts[i]));
        }
      };
      for (std::size_t i = 0; i < plan.size(); ++i) {
        data[i] = make<float>(i % 5 == 0 ? "wild" : "smooth", static_cast<std::size_t>(plan[i].count), int(i));
        room[i].resize(9000);
      }
      // Sends and receives each in their order, interleaved as it comes, otherwise on every rank.
      std::mt19937 random(seed * 100 + static_cast<std::uint32_t>(rank));
      std::size_t sends = 0, receives = 0;
      while (sends < plan.size() || receives < plan.size()) {
        const bool receive = sends == plan.size() || (receives < plan.size() && random() % 2 == 0);
        submit(receive ? receives++ : sends++, receive);
      }
      for (Submitted& call : calls) call.get();
      for (std::size_t i = 0; i < plan.size(); ++i) {
        if (plan[i].receiver != rank) continue;
        ASSERT_EQ(counts[i], data[i].size());
        room[i].resize(counts[i]);
        expect_within(room[i], data[i], 1e-3);
      }
    });
  }
}

}  // namespace
}  // namespace laconic::collective_mailroom_test
