#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "support/nccl_world.h"
#include "transport/conformance.h"
#include "transport/nccl/headers.h"
#include "transport/nccl/interfaces.h"
#include "transport/nccl/mesh.h"

namespace laconic::nccl_sockets_test {
namespace {

using nccl::Address;
using nccl::Header;
using nccl::Socket;
using Bytes = std::vector<std::uint8_t>;
using Mesh = std::vector<Socket>;

constexpr nccl::Token token = {1, 2};
constexpr double long_while = 60;  // seconds; nothing here takes nearly as long

const Address loopback = {.family = AF_INET, .bytes = {127, 0, 0, 1}};

/// A connection of somebody's, when it is there, and these bytes over it.
Socket caller(const Address& to, const Bytes& says) {
  Socket s = Socket::connect(to);
  for (std::size_t said = 0; said < says.size();) said += s.send(std::span(says).subspan(said)).value();
  return s;
}

/// All that the other end sends, up to so many bytes.
Bytes heard(Socket& s, std::size_t most) {
  Bytes all(most);
  std::size_t got = 0;
  while (got < most) {
    const auto n = s.receive(std::span(all).subspan(got));
    if (!n) break;
    got += *n;
  }
  all.resize(got);
  return all;
}

bool is_let_go(Socket& s) { return heard(s, 1).empty(); }

/// connect_all() on a thread for each rank; `before` is there first, and knows where they listen.
std::vector<Mesh> meshes(int ranks, const std::function<void(const std::vector<Address>&)>& before = {}) {
  std::vector<Socket> listeners;
  std::vector<Address> addresses;
  for (int r = 0; r < ranks; ++r) {
    listeners.push_back(Socket::listen(loopback));
    addresses.push_back(listeners.back().address().value());
  }
  if (before) before(addresses);
  std::vector<Mesh> all(listeners.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto k = static_cast<std::size_t>(r);
      all[k] = connect_all(listeners[k], r, addresses, token, long_while, [] {});
    });
  }
  for (std::thread& t : threads) t.join();
  return all;
}

/// Whether each socket leads to the rank that it is for.
void expect_connected(std::vector<Mesh>& all) {
  for (std::size_t a = 0; a < all.size(); ++a) {
    ASSERT_EQ(all[a].size(), all.size());
    EXPECT_FALSE(all[a][a].is_open());
    for (std::size_t b = 0; b < all.size(); ++b) {
      if (a != b) all[a][b].send(Bytes{static_cast<std::uint8_t>(10 * a + b)});
    }
  }
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = 0; b < all.size(); ++b) {
      if (a == b) continue;
      EXPECT_EQ(heard(all[a][b], 1), Bytes{static_cast<std::uint8_t>(10 * b + a)});
    }
  }
}

TEST(NcclMesh, ConnectsEveryTwoRanks) {
  for (const int ranks : {1, 2, 5}) {
    auto all = meshes(ranks);
    expect_connected(all);
  }
}

TEST(NcclMesh, StrangersAreLetGoAndHoldNobodyUp) {
  std::vector<Socket> strangers;
  auto all = meshes(3, [&](const std::vector<Address>& addresses) {
    for (const Address& a : addresses) {
      strangers.push_back(caller(a, {}));           // silent
      strangers.push_back(caller(a, {1, 2, 3}));    // too short
      strangers.push_back(caller(a, Bytes(4096)));  // something else
      caller(a, {});                                // closes
      caller(a, Bytes(10, 'L'));
    }
  });
  expect_connected(all);
}

/// Rank 0 of so many, and the last one, which takes its address for that of all others, until rank 0 has let go of the
/// connection to rank `mistaken`.
void expect_let_go(std::size_t ranks, const nccl::Token& secret, std::size_t mistaken) {
  Socket listener = Socket::listen(loopback);
  const std::vector<Address> addresses(ranks, listener.address().value());
  std::atomic<bool> refused = false;
  std::thread other([&] {
    Socket unused = Socket::listen(loopback);
    Mesh wrong = connect_all(unused, static_cast<int>(ranks) - 1, addresses, secret, long_while, [] {});
    ASSERT_EQ(wrong.size(), ranks);  // it has said hello
    refused = is_let_go(wrong[mistaken]);
  });
  const auto check = [&] {
    if (refused) throw Error(Code::transport, "stopped");
  };
  EXPECT_THROW(connect_all(listener, 0, addresses, token, long_while, check), Error);
  other.join();
  EXPECT_TRUE(refused);
}

TEST(NcclMesh, WhoDoesNotKnowTheSecretIsAStranger) { expect_let_go(2, {1, 3}, 0); }

/// Hosts may have the same address, each in a network of its own.
TEST(NcclMesh, WhoMeansAnotherRankIsAStranger) { expect_let_go(3, token, 1); }

TEST(NcclMesh, ARankThatDoesNotComeIsNotWaitedForLong) {
  Socket listener = Socket::listen(loopback);
  EXPECT_TRUE(connect_all(listener, 0, std::vector<Address>(2), token, 0.01, [] {}).empty());
}

TEST(NcclMesh, WhereNobodyListensThereIsNone) {
  std::vector<Address> addresses(2);
  addresses[0] = Socket::listen(loopback).address().value();  // closed again
  Socket listener = Socket::listen(loopback);
  EXPECT_TRUE(connect_all(listener, 1, addresses, token, long_while, [] {}).empty());
}

TEST(NcclMesh, NobodyListensAtWhatIsNoAddressOfTheHost) {
  EXPECT_FALSE(Socket::listen({.family = AF_INET, .bytes = {192, 0, 2, 77}}).is_open());
  EXPECT_FALSE(Socket::listen({}).is_open());
}

// --- headers ---

Bytes bytes_of(const Header& h) {
  Bytes b(sizeof h);
  std::memcpy(b.data(), &h, sizeof h);
  return b;
}

/// Rank 0's headers, and by hand what rank 1 does.
struct Pair {
  Pair() {
    auto all = meshes(2);
    peer = std::move(all[1][0]);
    headers = nccl::make_socket_headers(std::move(all[0]), 0);
  }
  void await() {
    while (!headers->ended()) headers->require_ranks();
  }
  Socket peer;
  std::unique_ptr<nccl::Headers> headers;
};

TEST(NcclSocketHeaders, ComeInPiecesAndOneOfARound) {
  Pair p;
  Bytes two = bytes_of({.round = 1});
  const Bytes second = bytes_of({.round = 2});
  two.insert(two.end(), second.begin(), second.end());
  p.headers->begin({.round = 11});
  EXPECT_FALSE(p.headers->ended());
  EXPECT_EQ(heard(p.peer, sizeof(Header)), bytes_of({.round = 11}));
  for (const std::uint8_t byte : std::span(two).first(100)) {
    p.peer.send(Bytes{byte});
    EXPECT_FALSE(p.headers->ended());
  }
  p.peer.send(std::span(two).subspan(100));
  p.await();
  EXPECT_EQ(p.headers->all()[0].round, 11U);
  EXPECT_EQ(p.headers->all()[1].round, 1U);
  p.headers->begin({.round = 12});
  p.await();
  EXPECT_EQ(p.headers->all()[0].round, 12U);
  EXPECT_EQ(p.headers->all()[1].round, 2U);
}

TEST(NcclSocketHeaders, WhoHasClosedIsMissedOnlyByThoseWhoAwaitIt) {
  Pair p;
  p.headers->begin({});
  EXPECT_EQ(heard(p.peer, sizeof(Header)).size(), sizeof(Header));
  p.peer.send(bytes_of({.round = 5}));
  p.peer.close();
  p.await();
  EXPECT_EQ(p.headers->all()[1].round, 5U);
  EXPECT_NO_THROW(p.headers->require_ranks());
  p.headers->begin({});
  try {
    p.await();
    ADD_FAILURE() << "a round without rank 1";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::transport);
    EXPECT_STREQ(e.what(), "rank 0: rank 1 has gone");
  }
}

TEST(NcclSocketHeaders, WhoAbortsIsNoticed) {
  Pair p;
  p.headers->begin({});
  p.headers->abort();
  EXPECT_EQ(heard(p.peer, 2 * sizeof(Header)).size(), sizeof(Header)) << "and what was sent still comes";
}

TEST(NcclSocketHeaders, WhoHangsUpIsNoticedAndNoticesIt) {
  Pair p;
  p.headers->hang_up();
  EXPECT_TRUE(heard(p.peer, 1).empty());
  p.headers->begin({});
  EXPECT_THROW(p.await(), Error);
}

// --- transports ---

/// All-gathers while transports of three ranks are made and used.
std::size_t all_gathers(const std::function<bool(int)>& sockets) {
  const std::size_t before = fake::traffic().all_gathers;
  test::over_nccl_communicators(3, [&](int rank, ncclComm_t comm) {
    const auto t = make_nccl_transport(comm, long_while, std::make_shared<nccl::Stop>(), sockets(rank));
    conformance::small_exchange(*t);
    conformance::everyone_to_everyone(*t, 1000);
    conformance::small_exchange(*t);
  });
  return fake::traffic().all_gathers - before;
}

class NcclSockets : public testing::Test {
 protected:
  void SetUp() override {
    if (!nccl::interface_for_ranks()) GTEST_SKIP() << "no network";
  }
};

TEST_F(NcclSockets, NcclGathersNoHeaders) {
  EXPECT_EQ(all_gathers([](int) { return true; }), 2 * 3U) << "addresses, and whether all are connected";
}

TEST_F(NcclSockets, OneRankWithoutSocketsAndAllTakeNccl) {
  for (const int other : {0, 1, 2}) {
    EXPECT_GT(all_gathers([=](int rank) { return rank != other; }), 20 * 3U);
  }
}

TEST_F(NcclSockets, ManyCommunicatorsOfOneProcessLeaveItFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 256, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::atomic<int> most{0};
  test::over_nccl_communicators(4, [&](int, ncclComm_t comm) {
    std::vector<std::unique_ptr<Transport>> many;
    for (int k = 0; k < 10; ++k) {  // 12 connections each
      many.push_back(make_nccl_transport(comm, long_while, std::make_shared<nccl::Stop>(), true));
      conformance::small_exchange(*many.back());
      const int open = nccl::Socket::open_now();
      for (int m = most; m < open && !most.compare_exchange_weak(m, open);) continue;
    }
  });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GT(most, 12) << "there is room for more than one";
  EXPECT_LE(most, 256 / 4);
  EXPECT_EQ(nccl::Socket::open_now(), 0);
}

TEST_F(NcclSockets, ARankThatHasGoneIsNoticedAtOnce) {
  test::over_nccl(
      3,
      [&](Transport& t) {
        conformance::small_exchange(t);
        if (t.rank() == 1) return;
        Bytes room(1);
        try {
          t.irecv(room, 1, 0).wait();
          ADD_FAILURE() << "a message from nobody";
        } catch (const Error& e) {
          const std::string mine = "rank " + std::to_string(t.rank()) + ": rank ";
          const std::string error = e.what();
          EXPECT_TRUE(error == mine + "1 has gone" || error == mine + std::to_string(2 - t.rank()) + " has gone")
              << error;
        }
      },
      0 /* for ever */, true);
}

/// As where a communicator is aborted that has nothing to do: nobody drives its transport, and it lives on.
TEST_F(NcclSockets, ARankThatWasStoppedIsNoticedThoughItDoesNothing) {
  std::latch given_up(1);
  test::over_nccl_communicators(2, [&](int rank, ncclComm_t comm) {
    const auto stop = std::make_shared<nccl::Stop>();
    const auto t = make_nccl_transport(comm, long_while, stop, true);
    const auto duplicate = t->duplicate();
    conformance::small_exchange(*duplicate);
    if (rank == 1) {
      stop->set();
      return given_up.wait();
    }
    for (Transport* each : {t.get(), duplicate.get()}) {
      try {
        each->allgather_small({}, {});
        ADD_FAILURE() << "an exchange with nobody";
      } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "rank 0: rank 1 has gone");
      }
    }
    given_up.count_down();
  });
}

TEST_F(NcclSockets, ARankMayLeaveBesideOthersThatNeedNothing) {
  std::latch gone(1);
  test::over_nccl_communicators(2, [&](int rank, ncclComm_t comm) {
    auto t = make_nccl_transport(comm, long_while, std::make_shared<nccl::Stop>(), true);
    conformance::small_exchange(*t);
    if (rank == 1) {
      t.reset();
      return gone.count_down();
    }
    t->poll();
    gone.wait();
    for (int i = 0; i < 100; ++i) EXPECT_NO_THROW(t->poll());
  });
}

}  // namespace
}  // namespace laconic::nccl_sockets_test
