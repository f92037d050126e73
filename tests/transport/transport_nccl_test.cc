#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <latch>
#include <numeric>
#include <string>
#include <thread>

#include "core/error.h"
#include "support/nccl_world.h"
#include "transport/conformance.h"
#include "transport/nccl/link.h"

namespace laconic::transport_nccl_test {
namespace {

using test::over_nccl_communicators;
using Buffer = conformance::Buffer;

/// Headers go by sockets (true) or by NCCL.
class NcclTransport : public testing::TestWithParam<bool> {
 protected:
  static void over_nccl(int ranks, const std::function<void(Transport&)>& body, double timeout = 30) {
    test::over_nccl(ranks, body, timeout, GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Headers, NcclTransport, testing::Bool(),
                         [](const auto& headers) { return headers.param ? "BySockets" : "ByNccl"; });

TEST_P(NcclTransport, Conforms) {
  for (const int ranks : {1, 2, 3, 4, 7}) over_nccl(ranks, conformance::run_all);
}

/// Memory of one of the kinds that messages may lie in.
class Room {
 public:
  enum Kind { pageable, pinned, device };
  Room(Kind kind, const Buffer& contents) : kind_(kind), size_(contents.size()) {
    void* p = nullptr;
    EXPECT_EQ(kind == device   ? cudaMalloc(&p, size_)
              : kind == pinned ? cudaMallocHost(&p, size_)
                               : cudaSuccess,
              cudaSuccess);
    if (kind == pageable) p = std::malloc(size_);
    data_ = static_cast<std::uint8_t*>(p);
    EXPECT_EQ(cudaMemcpy(data_, contents.data(), size_, cudaMemcpyDefault), cudaSuccess);
  }
  ~Room() {
    if (kind_ == device) cudaFree(data_);
    if (kind_ == pinned) cudaFreeHost(data_);
    if (kind_ == pageable) std::free(data_);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  [[nodiscard]] std::span<std::uint8_t> span() { return {data_, size_}; }
  [[nodiscard]] Buffer contents() const {
    Buffer b(size_);
    EXPECT_EQ(cudaMemcpy(b.data(), data_, size_, cudaMemcpyDefault), cudaSuccess);
    return b;
  }

 private:
  Kind kind_;
  std::size_t size_;
  std::uint8_t* data_;
};
constexpr Room::Kind kinds[] = {Room::pageable, Room::pinned, Room::device};

int next_of(const Transport& t) { return (t.rank() + 1) % t.size(); }
int previous_of(const Transport& t) { return (t.rank() + t.size() - 1) % t.size(); }

TEST_P(NcclTransport, MessagesGoFromAnyMemoryToAny) {
  over_nccl(3, [](Transport& t) {
    for (const Room::Kind from : kinds) {
      for (const Room::Kind to : kinds) {
        Room out(from, conformance::message(t.rank(), 0, 1, 5000)), in(to, Buffer(5000)), late(to, Buffer(5000));
        Request receive = t.irecv(in.span(), previous_of(t), 1);
        Request send = t.isend(out.span(), next_of(t), 1);
        Request again = t.isend(out.span(), next_of(t), 2);
        receive.wait();
        send.wait();
        again.wait();
        t.irecv(late.span(), previous_of(t), 2).wait();
        const Buffer expected = conformance::message(previous_of(t), 0, 1, 5000);
        EXPECT_EQ(in.contents(), expected) << from << " to " << to;
        EXPECT_EQ(late.contents(), expected) << from << " to " << to << ", late";
      }
    }
  });
}

TEST_P(NcclTransport, MoreMessagesThanAHeaderHoldsOfManySizes) {
  over_nccl(3, [](Transport& t) {
    constexpr int many = 150;
    const auto length_of = [](int i) { return static_cast<std::size_t>(i % 7 == 0 ? 0 : i * i * 3); };
    std::vector<Buffer> out, in;
    std::vector<Request> requests;
    for (int i = 0; i < many; ++i) {
      out.push_back(conformance::message(t.rank(), next_of(t), i, length_of(i)));
      in.emplace_back(length_of(many - 1) + 1);
    }
    for (int i = 0; i < many; i += 2) {
      requests.push_back(t.irecv(in[static_cast<std::size_t>(i)], previous_of(t), i % 2));
    }
    for (int i = 0; i < many; ++i) requests.push_back(t.isend(out[static_cast<std::size_t>(i)], next_of(t), i % 2));
    t.poll();
    for (int i = 1; i < many; i += 2) {
      requests.push_back(t.irecv(in[static_cast<std::size_t>(i)], previous_of(t), i % 2));
    }
    for (Request& r : requests) r.wait();
    for (int i = 0; i < many; ++i) {
      Buffer& got = in[static_cast<std::size_t>(i)];
      got.resize(length_of(i));
      EXPECT_EQ(got, conformance::message(previous_of(t), t.rank(), i, length_of(i))) << i;
    }
    conformance::small_exchange(t);
  });
}

/// Rank 0 has nothing to say, but the others need its rounds.
TEST_P(NcclTransport, WhoHasNothingToSayHelpsTheOthersUntilAllMeet) {
  over_nccl(3, [](Transport& t) {
    for (int round = 0; round < 20; ++round) {
      if (t.rank() != 0) {
        const int other = 3 - t.rank();
        const Buffer out = conformance::message(t.rank(), other, round, 100);
        Buffer in(100);
        Request send = t.isend(out, other, 0);
        t.irecv(in, other, 0).wait();
        send.wait();
        EXPECT_EQ(in, conformance::message(other, t.rank(), round, 100));
      }
      if (round % 5 == 4) conformance::small_exchange(t);
    }
  });
}

TEST_P(NcclTransport, PollingHelpsToo) {
  std::atomic<int> through = 0;
  over_nccl(3, [&](Transport& t) {
    Buffer data(1000, 1);
    if (t.rank() == 0) {
      while (through != 2) t.poll();
    } else if (t.rank() == 1) {
      t.isend(data, 2, 0).wait();
      ++through;
    } else {
      t.irecv(data, 1, 0).wait();
      ++through;
    }
    conformance::small_exchange(t);
  });
}

TEST_P(NcclTransport, AfterASmallExchangeNobodyNeedsToHelpWithWhatWasSentBefore) {
  over_nccl(2, [](Transport& t) {
    constexpr int many = 100;
    const Buffer data = conformance::message(0, 1, 0, 10);
    std::vector<Request> sends;
    if (t.rank() == 0) {
      for (int i = 0; i < many; ++i) sends.push_back(t.isend(data, 1, 0));
    }
    conformance::small_exchange(t);
    if (t.rank() == 0) return;
    for (int i = 0; i < many; ++i) {
      Buffer got(10);
      t.irecv(got, 0, 0).wait();
      EXPECT_EQ(got, data);
    }
  });
}

TEST_P(NcclTransport, MessagesUnderWayAreNoObstacleToOtherCalls) {
  over_nccl(3, [](Transport& t) {
    Buffer in(5000), out = conformance::message(t.rank(), next_of(t), 0, 5000);
    const auto post = [&] {
      std::vector<Request> both;
      both.push_back(t.irecv(in, previous_of(t), 0));
      both.push_back(t.isend(out, next_of(t), 0));
      return both;
    };
    const auto finish = [&](std::vector<Request> both) {
      for (Request& r : both) r.wait();
      EXPECT_EQ(in, conformance::message(previous_of(t), t.rank(), 0, 5000));
      std::fill(in.begin(), in.end(), std::uint8_t{0});
    };
    auto first = post();
    const auto other = t.duplicate();
    finish(std::move(first));
    auto second = post();
    t.allgather_small({}, {});
    std::int32_t x = 1;
    t.plain()->allreduce({&x, 1, DType::i32}, {&x, 1, DType::i32}, Op::sum);
    EXPECT_EQ(x, 3);
    finish(std::move(second));
  });
}

TEST_P(NcclTransport, SmallExchangesOfAnySize) {
  over_nccl(3, [](Transport& t) {
    for (const std::size_t bytes : {0U, 1U, 512U, 513U, 100000U}) {
      Buffer all(3 * bytes);
      t.allgather_small(conformance::message(t.rank(), 0, 0, bytes), all);
      for (int r = 0; r < 3; ++r) {
        const Buffer theirs = conformance::message(r, 0, 0, bytes);
        EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(),
                               all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * bytes)));
      }
    }
  });
}

TEST_P(NcclTransport, DifferentSmallExchangesAreAnErrorEverywhere) {
  over_nccl(2, [](Transport& t) {
    const Buffer mine(t.rank() == 0 ? 4 : 5);
    Buffer all(10);
    EXPECT_THROW(t.allgather_small(mine, all), Error);
  });
}

TEST_P(NcclTransport, AMessageLongerThanItsBufferIsAnErrorAndNoHarm) {
  over_nccl(2, [](Transport& t) {
    for (const Room::Kind kind : kinds) {
      for (const bool late : {false, true}) {
        Room out(kind, conformance::message(t.rank(), 0, 1, 10)), room(kind, Buffer(9, 7)), next(kind, Buffer(10));
        Request posted = late ? Request() : t.irecv(room.span(), 1 - t.rank(), 0);
        Request first = t.isend(out.span(), 1 - t.rank(), 0), second = t.isend(out.span(), 1 - t.rank(), 0);
        first.wait();
        second.wait();
        if (late) posted = t.irecv(room.span(), 1 - t.rank(), 0);
        EXPECT_THROW(posted.wait(), Error);
        EXPECT_EQ(room.contents(), Buffer(9, 7));
        t.irecv(next.span(), 1 - t.rank(), 0).wait();
        EXPECT_EQ(next.contents(), conformance::message(1 - t.rank(), 0, 1, 10));
      }
    }
    conformance::small_exchange(t);
  });
}

TEST_P(NcclTransport, AForgottenRequestIsCancelledOrCompleted) {
  over_nccl(2, [](Transport& t) {
    Buffer lost(100), got(100);
    const Buffer expected = conformance::message(1 - t.rank(), 0, 0, 100);
    {
      const Request dropped = t.irecv(lost, 1 - t.rank(), 0);
    }
    {
      const Buffer gone(50);
      const Request never = t.isend(gone, 1 - t.rank(), 0);
    }
    {
      const Buffer soon_gone = conformance::message(t.rank(), 0, 0, 100);
      Request announced = t.isend(soon_gone, 1 - t.rank(), 0);
      t.poll();
    }
    t.irecv(got, 1 - t.rank(), 0).wait();
    EXPECT_EQ(got, expected);
    EXPECT_EQ(lost, Buffer(100));
    conformance::small_exchange(t);
  });
}

// Seconds: transports must be made within that, too.
constexpr double short_while = 0.3;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::transport);
    return e.what();
  }
  return "no error";
}

/// By sockets, who gives up last may first notice that the other one has.
TEST_P(NcclTransport, ARankThatNeverComesIsGivenUp) {
  for (const bool exchange : {false, true}) {
    std::latch given_up(2);
    std::atomic<int> in_time = 0;
    over_nccl(
        3,
        [&](Transport& t) {
          if (t.rank() == 2) return given_up.wait();
          Buffer room(1), all(3);
          const std::string error = error_of([&] {
            if (exchange) return t.allgather_small(room, all);
            t.irecv(room, 2, 0).wait();
          });
          const std::string rank = "rank " + std::to_string(t.rank());
          const bool noticed = GetParam() && error == rank + ": rank " + std::to_string(1 - t.rank()) + " has gone";
          in_time += noticed ? 0 : 1;
          EXPECT_TRUE(noticed ||
                      error == rank + " gave up after waiting 0.3 s for " +
                                   (exchange ? "all ranks to call the same collective" : "a message from rank 2") +
                                   "; raise LACONIC_TIMEOUT if it is only slow")
              << error;
          EXPECT_EQ(error_of([&] { t.poll(); }), error) << "it stays failed";
          given_up.count_down();
        },
        short_while);
    EXPECT_GE(in_time, 1);
  }
}

TEST_P(NcclTransport, WhatIsUnderWayWhenARankFailsDoesNoHarm) {
  over_nccl(
      3,
      [&](Transport& t) {
        Buffer in(100), out(100);
        Request receive = t.irecv(in, previous_of(t), 0);
        Request send = t.isend(out, next_of(t), 0);
        Request unanswered = t.irecv(in, next_of(t), 0);
        receive.wait();
        send.wait();
        EXPECT_NE(error_of([&] { unanswered.wait(); }), "no error");
      },
      short_while);
}

TEST_P(NcclTransport, AnAsynchronousErrorEndsEverything) {
  const std::size_t lone_aborts = fake::traffic().lone_aborts;
  over_nccl_communicators(2, [](int rank, ncclComm_t comm) {
    const auto t = make_nccl_transport(comm, 30, std::make_shared<nccl::Stop>(), GetParam());
    conformance::small_exchange(*t);
    fake::set_async_error(comm, ncclRemoteError);
    Buffer room(1);
    const std::string error = error_of([&] { t->irecv(room, 1 - rank, 0).wait(); });
    EXPECT_NE(error.find("rank " + std::to_string(rank) + ": the communicator failed: remote process"),
              std::string::npos)
        << error;
  });
  EXPECT_EQ(fake::traffic().lone_aborts - lone_aborts, 2U) << "but for the test's: kernels of the others may wait";
}

TEST_P(NcclTransport, AnotherThreadEndsEveryWait) {
  const std::function<void(Transport&)> waits[] = {
      [](Transport& t) {
        Buffer room(1);
        t.irecv(room, 1, 0).wait();
      },
      [](Transport& t) { t.allgather_small({}, {}); },
      [](Transport& t) {
        Room x(Room::device, Buffer(4));
        const MutArray array{x.span().data(), 1, DType::i32};
        t.plain()->allreduce(array, array, Op::sum);
      },
  };
  for (const auto& wait : waits) {
    std::latch ended(1);
    over_nccl_communicators(2, [&](int rank, ncclComm_t comm) {
      const auto stop = std::make_shared<nccl::Stop>();
      const auto t = make_nccl_transport(comm, 60, stop, GetParam());
      if (rank != 0) return ended.wait();
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        stop->set();
      });
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(error_of([&] { wait(*t); }), "the communicator was aborted or revoked");
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
      other.join();
      EXPECT_NE(error_of([&] { t->poll(); }), "no error") << "it stays stopped";
      ended.count_down();
    });
  }
}

TEST_P(NcclTransport, WhoWasStoppedBeforeTouchesNoCommunicator) {
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  const auto stop = std::make_shared<nccl::Stop>();
  stop->set();
  ASSERT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_EQ(error_of([&] { make_nccl_transport(comm, 30, stop, GetParam()); }),
            "the communicator was aborted or revoked");
}

/// The program's communicator, which blocks, is split only once: all else is asked of Laconic's own.
TEST_P(NcclTransport, WhoGoesAfterTheFirstSplitIsGivenUp) {
  std::latch given_up(1);
  over_nccl_communicators(2, [&](int rank, ncclComm_t comm) {
    nccl::Stop stop;
    if (rank == 1) {
      const nccl::Link first(comm, rank, 30, stop);
      return given_up.wait();
    }
    EXPECT_EQ(error_of([&] { make_nccl_transport(comm, short_while, std::make_shared<nccl::Stop>(), GetParam()); }),
              "rank 0 gave up after waiting 0.3 s for all ranks to make a communicator; raise LACONIC_TIMEOUT if it is "
              "only slow");
    given_up.count_down();
  });
}

TEST_P(NcclTransport, SaysWhatItIs) {
  over_nccl(2, [](Transport& t) {
    EXPECT_EQ(t.description(), GetParam() ? "NCCL 2.28.9, headers by TCP" : "NCCL 2.28.9, headers by NCCL");
    EXPECT_EQ(t.nodes(), (std::vector<int>{0, 0}));
    EXPECT_TRUE(t.needs_everyone());
  });
}

TEST_P(NcclTransport, ARoundThatNobodyAnswersIsAbortedAtTheEnd) {
  over_nccl(2, [](Transport& t) {
    conformance::small_exchange(t);
    if (t.rank() == 0) t.poll();
  });
}

TEST_P(NcclTransport, WorksOnAnyThread) {
  over_nccl(2, [](Transport& t) {
    const auto other = t.duplicate();
    std::thread([&] { conformance::small_exchange(*other); }).join();
    int device = -1;
    cudaGetDevice(&device);
    EXPECT_EQ(device, t.rank());
  });
}

TEST_P(NcclTransport, NothingButTheMessagesTravels) {
  const fake::Traffic before = fake::traffic();
  over_nccl(4, [](Transport& t) {
    conformance::everyone_to_everyone(t, 100);
    conformance::small_exchange(t);
  });
  const fake::Traffic after = fake::traffic();
  EXPECT_EQ(after.sends - before.sends, 12U);
  EXPECT_EQ(after.sent_bytes - before.sent_bytes, 1200U);
}

// So that one group begins while another ends.
TEST_P(NcclTransport, GroupsTakeCommunicatorsInTurn) {
  constexpr int messages = 6;
  const fake::Traffic before = fake::traffic();
  over_nccl(2, [](Transport& t) {
    Buffer data(std::size_t{1} << 20, static_cast<std::uint8_t>(1 + t.rank()));
    for (int i = 0; i < messages; ++i) {
      if (t.rank() == 0) t.isend(data, 1, 0).wait();
      if (t.rank() == 1) t.irecv(data, 0, 0).wait();
    }
    EXPECT_EQ(data, Buffer(data.size(), 1));
    t.allgather_small({}, {});
  });
  EXPECT_EQ(fake::traffic().senders - before.senders, 3U);
}

// Of many messages few are under way at once: what a rank sends on does not wait for all that it gets.
TEST_P(NcclTransport, LongMessagesTakeTurnsWithWhatIsSentOn) {
  // What is sent on goes in the fourth round at the latest, and no round has more than 24 messages.
  constexpr std::size_t messages = 56;
  constexpr std::size_t bytes = std::size_t{512} << 10;
  over_nccl(3, [](Transport& t) {
    std::vector<Buffer> data(messages, Buffer(bytes, static_cast<std::uint8_t>(t.rank())));
    std::vector<Request> requests;
    for (auto& message : data) {
      if (t.rank() == 0) requests.push_back(t.isend(message, 1, 0));
      if (t.rank() == 1) requests.push_back(t.irecv(message, 0, 0));
    }
    if (t.rank() == 1) {
      requests.front().wait();
      t.isend(data.front(), 2, 0).wait();
      EXPECT_FALSE(requests.back().test());
    }
    if (t.rank() == 2) t.irecv(data.front(), 1, 0).wait();
    for (auto& request : requests) request.wait();
    EXPECT_EQ(data.front(), Buffer(bytes, 0));
    if (t.rank() == 1) {
      EXPECT_EQ(data.back(), Buffer(bytes, 0));
    }
    t.allgather_small({}, {});
  });
}

// --- NCCL's own collectives ---

using test::over_nccl;

class PlainNccl : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, PlainNccl, testing::Values(1, 2, 3, 4));

/// An array of i32 in any memory, and what it should hold.
struct Numbers : Room {
  Numbers(Kind kind, const std::vector<std::int32_t>& values) : Room(kind, bytes_of(values)) {}
  static Buffer bytes_of(const std::vector<std::int32_t>& values) {
    Buffer b(values.size() * 4);
    if (!b.empty()) std::memcpy(b.data(), values.data(), b.size());
    return b;
  }
  MutArray array(std::size_t first, std::size_t count) { return {span().data() + first * 4, count, DType::i32}; }
  MutArray array() { return array(0, span().size() / 4); }
  [[nodiscard]] std::vector<std::int32_t> values() const {
    const Buffer b = contents();
    std::vector<std::int32_t> v(b.size() / 4);
    if (!b.empty()) std::memcpy(v.data(), b.data(), b.size());
    return v;
  }
};

std::vector<std::int32_t> numbers(int rank, std::size_t count) {
  std::vector<std::int32_t> v(count);
  std::iota(v.begin(), v.end(), 100 * rank + 1);
  return v;
}

TEST_P(PlainNccl, Reduces) {
  over_nccl(GetParam(), [](Transport& t) {
    PlainCollectives& plain = *t.plain();
    const int n = t.size();
    const auto ranks = static_cast<std::size_t>(n);
    EXPECT_FALSE(plain.has_scan());
    EXPECT_TRUE(plain.reduces(DType::bf16, Op::product));
    EXPECT_TRUE(plain.reduces(DType::f32, Op::average));
    EXPECT_FALSE(plain.reduces(DType::i32, Op::average));
    const auto sum = [&](std::size_t i) {
      return static_cast<std::int32_t>(100 * n * (n - 1) / 2 + n * (static_cast<int>(i) + 1));
    };
    for (const Room::Kind kind : kinds) {
      Numbers in(kind, numbers(t.rank(), 3 * ranks)), out(kind, std::vector<std::int32_t>(3 * ranks));
      plain.allreduce(in.array(), out.array(), Op::sum);
      for (std::size_t i = 0; i < 3 * ranks; ++i) EXPECT_EQ(out.values()[i], sum(i));
      plain.reduce(in.array(), out.array(), Op::max, n - 1);
      if (t.rank() == n - 1) {
        EXPECT_EQ(out.values(), numbers(n - 1, 3 * ranks));
      }
      Numbers part(kind, {0, 0, 0});
      plain.reduce_scatter(in.array(), part.array(), {.equal = true}, Op::sum);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(part.values()[i], sum(3 * static_cast<std::size_t>(t.rank()) + i));
      Numbers again(kind, numbers(t.rank(), 3 * ranks));
      plain.reduce_scatter(again.array(), again.array(0, 3), {.equal = true}, Op::sum);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(again.values()[i], sum(3 * static_cast<std::size_t>(t.rank()) + i));
      // Rank r gets r elements.
      std::vector<std::size_t> counts(ranks);
      std::iota(counts.begin(), counts.end(), std::size_t{0});
      const std::size_t total = ranks * (ranks - 1) / 2, mine = static_cast<std::size_t>(t.rank());
      Numbers operand(kind, numbers(t.rank(), total + 1)), share(kind, std::vector<std::int32_t>(mine + 1));
      plain.reduce_scatter(operand.array(0, total), share.array(0, mine), {.counts = counts}, Op::sum);
      for (std::size_t i = 0; i < mine; ++i) EXPECT_EQ(share.values()[i], sum(mine * (mine - 1) / 2 + i));
    }
  });
}

TEST_P(PlainNccl, Moves) {
  over_nccl(GetParam(), [](Transport& t) {
    PlainCollectives& plain = *t.plain();
    const int n = t.size(), last = n - 1;
    const auto ranks = static_cast<std::size_t>(n), me = static_cast<std::size_t>(t.rank());
    // Rank r's part has r + 1 elements and lies behind a gap.
    std::vector<std::size_t> counts(ranks), displs(ranks);
    std::size_t extent = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      counts[r] = r + 1;
      displs[r] = extent + 1;
      extent += counts[r] + 1;
    }
    const Parts parts{.counts = counts, .displs = displs};
    std::vector<std::int32_t> placed(extent, -1);
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto own = numbers(static_cast<int>(r), counts[r]);
      std::copy(own.begin(), own.end(), placed.begin() + static_cast<std::ptrdiff_t>(displs[r]));
    }
    for (const Room::Kind kind : kinds) {
      Numbers data(kind, numbers(t.rank(), 5));
      plain.bcast(data.array(), last);
      EXPECT_EQ(data.values(), numbers(last, 5));

      Numbers own(kind, numbers(t.rank(), me + 1)), whole(kind, std::vector<std::int32_t>(extent, -1));
      plain.allgather(own.array(), whole.array(), parts);
      EXPECT_EQ(whole.values(), placed) << "gaps stay as they are";
      Numbers equal(kind, std::vector<std::int32_t>(2 * ranks)), two(kind, numbers(t.rank(), 2));
      plain.allgather(two.array(), equal.array(), {.equal = true});
      for (std::size_t r = 0; r < ranks; ++r) EXPECT_EQ(equal.values()[2 * r], 100 * static_cast<int>(r) + 1);

      Numbers gathered(kind, std::vector<std::int32_t>(extent, -1));
      plain.gather(own.array(), gathered.array(), parts, last);
      EXPECT_EQ(gathered.values(), t.rank() == last ? placed : std::vector<std::int32_t>(extent, -1));
      Numbers received(kind, std::vector<std::int32_t>(me + 1));
      plain.scatter(gathered.array(), parts, received.array(), last);
      EXPECT_EQ(received.values(), numbers(t.rank(), me + 1));
      if (t.rank() == last) {  // in place: nothing of its own moves
        plain.scatter(gathered.array(), parts, gathered.array(displs[me], counts[me]), last);
        plain.gather(gathered.array(displs[me], counts[me]), gathered.array(), parts, last);
        EXPECT_EQ(gathered.values(), placed);
      } else {
        plain.scatter({}, {}, received.array(), last);
        plain.gather(own.array(), {}, {}, last);
      }

      Numbers out(kind, numbers(t.rank(), 2 * ranks)), in(kind, std::vector<std::int32_t>(2 * ranks));
      plain.alltoall(out.array(), {.equal = true}, in.array(), {.equal = true});
      for (std::size_t r = 0; r < ranks; ++r) {
        EXPECT_EQ(in.values()[2 * r + 1], 100 * static_cast<int>(r) + 2 * t.rank() + 2);
      }
    }
  });
}

TEST(PlainNccl, RunsOnTheCallersStreamBehindWhatIsThere) {
  over_nccl(2, [](Transport& t) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    t.plain()->work_on(stream);
    Numbers x(Room::device, {0, 0});
    ASSERT_EQ(cudaMemsetAsync(x.span().data(), 1, 8, stream), cudaSuccess);
    t.plain()->allreduce(x.array(), x.array(), Op::sum);
    EXPECT_EQ(x.values(), (std::vector<std::int32_t>{0x02020202, 0x02020202}));
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
}

TEST(PlainNccl, ArraysThatArePinnedAtTheirBeginningAlone) {
  over_nccl(2, [](Transport& t) {
    constexpr std::size_t pinned = 4096;
    std::vector<std::int32_t> x(4 * pinned, t.rank() + 1);
    ASSERT_EQ(cudaHostRegister(x.data(), pinned, cudaHostRegisterDefault), cudaSuccess);
    t.plain()->allreduce({x.data(), x.size(), DType::i32}, {x.data(), x.size(), DType::i32}, Op::sum);
    EXPECT_EQ(x, std::vector<std::int32_t>(x.size(), 3));
    EXPECT_EQ(cudaHostUnregister(x.data()), cudaSuccess);
  });
}

TEST(PlainNccl, ARankThatNeverComesIsGivenUp) {
  std::latch given_up(1);
  over_nccl(
      2,
      [&](Transport& t) {
        if (t.rank() == 1) return given_up.wait();
        Numbers x(Room::device, {0, 0});
        const auto call = [&] { t.plain()->allreduce(x.array(), x.array(), Op::sum); };
        EXPECT_NE(error_of(call).find("all ranks to call ncclAllReduce"), std::string::npos);
        given_up.count_down();
      },
      short_while);
}

}  // namespace
}  // namespace laconic::transport_nccl_test
