#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "collective/allreduce.h"
#include "collective/fields.h"
#include "collective/moved.h"
#include "collective/p2p.h"
#include "collective/world.h"
#include "core/error.h"
#include "frame/frame.h"
#include "support/over_transport.h"
#include "transport/faulty.h"

namespace laconic::collective_p2p_test {
namespace {

using moved::expect_within;
using moved::with;
using testing_fields::make;
using world::view;

/// body(rank, communicator) on two ranks (or more).
void on_ranks(int ranks, const std::function<void(int, Communicator&)>& body) {
  run_ranks(
      ranks,
      [&](Transport& t) {
        Communicator comm(t);
        body(t.rank(), comm);
      },
      20);
}

/// Sends exact elements that are other ones, in frames that are sound.
class Rewriting final : public test::OverTransport {
 public:
  using OverTransport::OverTransport;
  Request isend(std::span<const std::uint8_t> data, int to, int tag) override {
    if (++messages_ != 3) return over_.isend(data, to, tag);  // opening, elements, exact elements
    const std::vector<float> other(1000, 3.0F);
    changed_.resize(frame::capacity(DType::f32, other.size()));
    changed_.resize(frame::encode(view(other), make_grid(DType::f32, 0, 0), changed_));
    return over_.isend(changed_, to, tag);
  }

 private:
  int messages_ = 0;
  std::vector<std::uint8_t> changed_;
};

/// The error that the work must throw, with its code; and the words that its text must have.
template <typename Work>
void expect_throws(Code code, std::initializer_list<const char*> words, Work&& work) {
  try {
    work();
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    for (const char* w : words) EXPECT_NE(std::string(e.what()).find(w), std::string::npos) << w << ": " << e.what();
  }
}

// Both learn the same error, and the message stays what it is.
TEST(P2p, VerifiedMessages) {
  const auto sent = make<float>("smooth", 20001, 3);
  on_ranks(2, [&](int rank, Communicator& comm) {
    Options o = with("1e-3", 2048);
    o.verify = true;
    Report report;
    if (rank == 0) {
      report = send(view(sent), 1, 7, comm, o);
      EXPECT_EQ(report.stats.original_bytes, sent.size() * sizeof(float));
    } else {
      std::vector<float> room(sent.size());
      report = recv(view(room), 0, 7, comm, {}).report;
      expect_within(room, sent, 1e-3);
    }
    EXPECT_EQ(report.verified, sent.size());
    EXPECT_GT(report.achieved_error, 1e-4);
    EXPECT_LE(report.achieved_error, 1e-3);
    const auto all = allgather_value(comm.transport(), report.achieved_error);
    EXPECT_EQ(all[0], all[1]);
    // The next message is none of the one before.
    std::vector<float> other(sent.size());
    const Received got = sendrecv(view(sent), 1 - rank, 3, view(other), 1 - rank, 3, comm, with("lossless"));
    EXPECT_EQ(other, sent);
    EXPECT_EQ(got.report.verified, 0U);
    EXPECT_TRUE(std::isnan(got.report.achieved_error));
    o.bound = Bound::parse("1e-2");
    const Received both = sendrecv(view(sent), 1 - rank, 3, view(other), 1 - rank, 3, comm, o);
    EXPECT_EQ(both.report.verified, 2 * sent.size());
    EXPECT_LE(both.report.achieved_error, 1e-2);
    EXPECT_GT(both.report.achieved_error, 1e-3);
  });
}

// Each way has a bound of its own, whichever is looked at first.
TEST(P2p, VerifiedMessagesOfDifferentBoundsBothWays) {
  on_ranks(2, [](int rank, Communicator& comm) {
    const auto sent = make<float>("smooth", 30000, rank), theirs = make<float>("smooth", 30000, 1 - rank);
    std::vector<float> got(sent.size());
    Options o = with(rank == 0 ? "1e-6" : "1e-2", 2048);
    o.verify = true;
    const Received both = sendrecv(view(sent), 1 - rank, 3, view(got), 1 - rank, 3, comm, o);
    expect_within(got, theirs, rank == 0 ? 1e-2 : 1e-6);
    EXPECT_EQ(both.report.result_bound, 1e-2);
    EXPECT_GT(both.report.achieved_error, 1e-3);
  });
}

// The exact elements come last: with the first of them changed on the way, what was right is found to be wrong.
TEST(P2p, VerificationFindsAnElementThatIsNotWhatWasSent) {
  on_ranks(2, [&](int rank, Communicator& comm) {
    std::vector<float> x(1000, 1.0F);
    if (rank == 0) {
      Options o = with("1e-3");
      o.verify = true;
      Rewriting changed(comm.transport());
      Communicator over(changed);
      send(view(std::as_const(x)), 1, 0, over, o);
    } else {
      expect_throws(Code::internal, {"rank 1: element 0 is ", "exactly 3", "verification"},
                    [&] { recv(view(x), 0, 0, comm, {}); });
    }
  });
}

template <typename T>
void expect_arrives(const char* kind, std::size_t count, const char* bound, double value) {
  const auto sent = make<T>(kind, count, 3);
  on_ranks(2, [&](int rank, Communicator& comm) {
    if (rank == 0) {
      const Report report = send(view(sent), 1, 7, comm, with(bound, 2048));
      EXPECT_EQ(report.stats.calls, 1U);
      EXPECT_EQ(report.stats.original_bytes, count * sizeof(T));
    } else {
      std::vector<T> room(count + 5, T{42});
      const Received received = recv(view(room), 0, 7, comm, {});
      ASSERT_EQ(received.count, count);
      EXPECT_LE(received.report.result_bound, value);
      EXPECT_EQ(room[count], T{42});
      room.resize(count);
      expect_within(room, sent, value);
    }
  });
}

TEST(PointToPoint, ArrivesWithinTheSendersBoundAlsoInALargerRoom) {
  for (const std::size_t count : {0U, 1U, 63U, 50001U}) {
    expect_arrives<float>("smooth", count, "1e-3", 1e-3);
    expect_arrives<float>("wild", count, "lossless", 0);
    expect_arrives<double>("noise", count, "1e-6", 1e-6);
    expect_arrives<std::int64_t>("integer", count, "1e-3", 0);
  }
}

TEST(PointToPoint, MessagesOfOneTagComeInOrderOtherTagsBesideThem) {
  on_ranks(2, [](int rank, Communicator& comm) {
    const auto a = make<float>("smooth", 9000, 1), b = make<float>("smooth", 9000, 2), c = make<float>("noise", 100, 3);
    if (rank == 0) {
      send(view(a), 1, 0, comm, with("1e-3", 2048));
      send(view(c), 1, largest_tag, comm, with("1e-3"));
      send(view(b), 1, 0, comm, with("lossless"));
      return;
    }
    std::vector<float> x(9000), y(100);
    recv(view(y), 0, largest_tag, comm, {});
    expect_within(y, c, 1e-3);
    recv(view(x), 0, 0, comm, {});
    expect_within(x, a, 1e-3);
    recv(view(x), 0, 0, comm, {});
    expect_within(x, b, 0);
  });
}

TEST(PointToPoint, SendrecvRoundARingAndWithOneself) {
  for (const int n : {1, 2, 5}) {
    on_ranks(n, [&](int rank, Communicator& comm) {
      const int from = (rank + n - 1) % n;
      const auto mine = make<float>("smooth", 20000 + static_cast<std::size_t>(rank), rank);
      std::vector<float> room(20010);
      const auto got = sendrecv(view(mine), (rank + 1) % n, 3, view(room), from, 3, comm, with("1e-3", 4096));
      const auto sent = make<float>("smooth", 20000 + static_cast<std::size_t>(from), from);
      ASSERT_EQ(got.count, sent.size());
      room.resize(got.count);
      expect_within(room, sent, 1e-3);
      // Collectives and messages do not meet.
      std::vector<float> x(100, 1.0F);
      allreduce(view(std::as_const(x)), view(x), Op::sum, comm, {});
      EXPECT_EQ(x[0], static_cast<float>(n));
    });
  }
}

TEST(PointToPoint, AnotherDtypeAndTooMuchAreSaidAndTheNextMessageArrives) {
  on_ranks(2, [](int rank, Communicator& comm) {
    const auto x = make<float>("smooth", 9000, 1);
    if (rank == 0) {
      for (int i = 0; i < 3; ++i) send(view(x), 1, 0, comm, with("1e-3", 2048));
      return;
    }
    std::vector<double> wide(9000);
    std::vector<float> narrow(8999), right(9000);
    expect_throws(Code::mismatch, {"rank 0", "f32", "rank 1", "f64"}, [&] { recv(view(wide), 0, 0, comm, {}); });
    expect_throws(Code::too_small, {"rank 0", "9000", "8999"}, [&] { recv(view(narrow), 0, 0, comm, {}); });
    recv(view(right), 0, 0, comm, {});
    expect_within(right, x, 1e-3);
  });
}

TEST(PointToPoint, WhatTheSenderMayNotDoTheReceiverHearsOf) {
  on_ranks(2, [](int rank, Communicator& comm) {
    std::vector<float> x(1000);
    const auto both = [&](Code code, std::initializer_list<const char*> words, ConstArray bad, const Options& options) {
      expect_throws(code, words, [&] {
        if (rank == 0) send(bad, 1, 0, comm, options);
        if (rank == 1) recv(view(x), 0, 0, comm, {});
      });
    };
    both(Code::invalid_argument, {"send is null"}, {nullptr, 10, DType::f32}, {});
    both(Code::invalid_argument, {"dtype 99"}, {x.data(), 10, static_cast<DType>(99)}, {});
    both(Code::invalid_argument, {"ratio"}, view(std::as_const(x)), with("100x"));
    expect_throws(Code::invalid_argument, {"tag", "32001"}, [&] { send(view(x), 1 - rank, 32001, comm, {}); });
    expect_throws(Code::invalid_argument, {"dest", "sendrecv"}, [&] { send(view(x), rank, 0, comm, {}); });
    expect_throws(Code::invalid_argument, {"source 2"}, [&] { recv(view(x), 2, 0, comm, {}); });
    EXPECT_TRUE(comm.usable());
  });
}

TEST(PointToPoint, WhatNoBoundBringsToARatioIsExact) {
  on_ranks(2, [](int rank, Communicator& comm) {
    std::vector<float> x(20000, NAN), got(20000);
    for (std::size_t i = 0; i < x.size(); i += 2) x[i] = static_cast<float>(i);
    std::vector<float> far(20000);  // beyond all steps
    for (std::size_t i = 0; i < far.size(); ++i) far[i] = 6e35F * (static_cast<float>(i * 7919 % 1000) - 499.5F);
    for (const std::vector<float>& sent : {x, far}) {
      if (rank == 0) send(view(sent), 1, 0, comm, with("30x"));
      if (rank == 1) {
        recv(view(got), 0, 0, comm, {});
        EXPECT_EQ(std::memcmp(got.data(), sent.data(), sent.size() * sizeof(float)), 0);
      }
    }
  });
}

TEST(PointToPoint, OfASendrecvWithOneWrongRankTheOtherHearsAndIsHeard) {
  on_ranks(2, [](int rank, Communicator& comm) {
    std::vector<float> mine(5000, 1.0F), room(5000);
    const auto exchange = [&](int to, int from) {
      sendrecv(view(std::as_const(mine)), to, 0, view(room), from, 0, comm, {});
    };
    if (rank == 0) {
      expect_throws(Code::invalid_argument, {"dest 5"}, [&] { exchange(5, 1); });
      expect_throws(Code::invalid_argument, {"source 7"}, [&] { exchange(1, 7); });
      expect_throws(Code::invalid_argument, {"source 7"}, [&] { exchange(0, 7); });
      expect_throws(Code::invalid_argument, {"dest 5"}, [&] { exchange(5, 0); });
      expect_throws(Code::invalid_argument, {"dest 5"}, [&] { exchange(5, 7); });
    } else {
      send(view(std::as_const(mine)), 0, 0, comm, {});
      expect_throws(Code::invalid_argument, {"rank 0", "source 7"}, [&] { recv(view(room), 0, 0, comm, {}); });
    }
    mine.assign(5000, 2.0F);
    exchange(1 - rank, 1 - rank);
    EXPECT_EQ(room, mine);
  });
}

TEST(PointToPoint, DamageIsNoticed) {
  const auto with_fault = [](const Fault& fault, bool usable) {
    run_ranks(
        2,
        [&](Transport& t) {
          const auto bad = make_faulty_transport(t, t.rank() == 0 ? fault : delay(0));
          Communicator comm(*bad);
          const auto x = make<float>("smooth", 20000, 1);
          std::vector<float> y(x.size());
          if (t.rank() == 0) {
            send(view(x), 1, 0, comm, with("1e-3", 2048));
            return;
          }
          expect_throws(Code::corrupt, {"rank 0"}, [&] { recv(view(y), 0, 0, comm, {}); });
          EXPECT_EQ(comm.usable(), usable);
        },
        20);
  };
  for (const std::uint64_t bit : {1U, 40U, 100U, 170U, 200U}) with_fault(flip_bit(0, bit), false);
  with_fault(truncate(0, 17), false);
  for (const std::uint64_t nth : {1U, 5U, 10U}) with_fault(flip_bit(nth, 3333), true);
  with_fault(truncate(4, 0), true);
  with_fault(truncate(4, 100), true);
}

}  // namespace
}  // namespace laconic::collective_p2p_test
