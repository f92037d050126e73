// Memory that runs out on one rank in the middle of a call: all hear of it, or none has to. Memory that a transport
// which failed may still write to: it stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/calibration.h"
#include "collective/cost_cache.h"
#include "collective/fields.h"
#include "collective/memory.h"
#include "collective/moved.h"
#include "collective/movement.h"
#include "collective/ordinary_memory.h"
#include "collective/p2p.h"
#include "collective/world.h"
#include "core/error.h"
#include "support/over_transport.h"

namespace laconic::collective_memory_test {
namespace {

using moved::with;
using test::Ordinary;
using testing_fields::make;
using world::view;

constexpr int ranks = 3;
constexpr int poor_one = 1;

/// Room for messages there is only so often, then never for long ones.
class Scarce final : public Ordinary {
 public:
  /// as_gpu: says so as the memory of a GPU does.
  explicit Scarce(int rooms, bool as_gpu = false) : left_(rooms), as_gpu_(as_gpu) {}
  Room message_room(std::size_t bytes) override {
    if (left_ == 0 && bytes > 1000 && as_gpu_) throw Error(Code::internal, "cudaHostAlloc: out of memory");
    if (left_ == 0 && bytes > 1000) throw std::bad_alloc();
    if (left_ > 0) --left_;
    return host_memory().message_room(bytes);
  }
  void find_more() { left_ = -1; }

 private:
  int left_;  ///< negative: any number
  bool as_gpu_;
};

using Call = std::function<void(Communicator&, std::vector<float>&)>;

/// Makes a call where the poor rank (or `all`) has room for so many messages. True: it worked. All must agree on that,
/// and the next one works; what works gives what it gives where nobody is poor.
bool works_with(int rooms, const Call& call, bool all = false) {
  std::vector<std::string> said(ranks);
  std::vector<std::vector<float>> got(ranks), again(ranks);
  run_ranks(
      ranks,
      [&](Transport& t) {
        Scarce memory(all || t.rank() == poor_one ? rooms : -1, rooms % 2 == 0);
        Communicator comm(t, {}, memory);
        const auto me = static_cast<std::size_t>(t.rank());
        std::vector<float>& x = got[me];
        x = again[me] = make<float>("smooth", 300000, t.rank());
        try {
          call(comm, x);
        } catch (const Error& e) {
          said[me] = e.what();
        }
        EXPECT_TRUE(comm.usable());
        memory.find_more();
        EXPECT_NO_THROW(call(comm, again[me]));
      },
      20);
  for (const auto& x : again) EXPECT_TRUE(world::same_bytes(x, again[0]));
  for (const std::string& text : said) EXPECT_EQ(text, said[0]);
  if (said[0].empty()) {
    for (const auto& x : got) EXPECT_TRUE(world::same_bytes(x, again[0]));
    return true;
  }
  EXPECT_NE(said[0].find(all ? "rank " : "rank 1"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("out of memory"), std::string::npos) << said[0];
  return false;
}

Options in_short_segments() {
  Options options = with("1e-3");
  options.segment_values = 4096;
  options.mode = Mode::compressed;
  return options;
}

TEST(ScarceMemory, AllHearOfItOnTheGrid) {
  int worked = 0, failed = 0;
  for (const Schedule schedule : {Schedule::ring, Schedule::direct, Schedule::recursive_doubling})
    for (const int rooms : {1, 2, 3, 5, 8, 11, 17, 29, 40, 300}) {
      const bool works = works_with(rooms, [&](Communicator& comm, std::vector<float>& x) {
        Options options = in_short_segments();
        options.schedule = schedule;
        allreduce(view(std::as_const(x)), view(x), Op::sum, comm, options);
      });
      ++(works ? worked : failed);
    }
  EXPECT_GT(worked, 0);
  EXPECT_GT(failed, 0);
}

TEST(ScarceMemory, AllMayBePoor) {
  int failed = 0;
  for (const int rooms : {1, 2, 3, 5, 8, 11, 17, 29, 40}) {
    const auto call = [&](Communicator& comm, std::vector<float>& x) {
      allreduce(view(std::as_const(x)), view(x), Op::sum, comm, in_short_segments());
    };
    failed += works_with(rooms, call, true) ? 0 : 1;
  }
  EXPECT_GT(failed, 0);
}

// Short pieces that go to one rank share a message, which takes room of its own.
TEST(ScarceMemory, AllHearOfItWherePiecesShareMessages) {
  int failed = 0;
  for (int rooms = 1; rooms < 12; ++rooms) {
    const bool works = works_with(rooms, [&](Communicator& comm, std::vector<float>& x) {
      Options options = with("1e-3");
      options.mode = Mode::compressed;
      options.schedule = Schedule::rabenseifner;
      allreduce({x.data(), 9000, DType::f32}, {x.data(), 9000, DType::f32}, Op::sum, comm, options);
      std::fill(x.begin() + 9000, x.end(), 0.0F);
    });
    failed += works ? 0 : 1;
  }
  EXPECT_GT(failed, 0);
}

TEST(ScarceMemory, AllHearOfItInSteps) {
  int failed = 0;
  for (int rooms = 1; rooms < 20; ++rooms) {
    const bool works = works_with(rooms, [&](Communicator& comm, std::vector<float>& x) {
      Options options = in_short_segments();
      options.framework = Framework::stepwise;
      allreduce(view(std::as_const(x)), view(x), Op::sum, comm, options);
    });
    failed += works ? 0 : 1;
  }
  EXPECT_GT(failed, 0);
}

TEST(ScarceMemory, WhoOnlyReceivesNeedsLittle) {
  for (int rooms = 2; rooms < 12; ++rooms)
    EXPECT_TRUE(works_with(
        rooms, [&](Communicator& comm, std::vector<float>& x) { bcast(view(x), 0, comm, in_short_segments()); }));
}

// Where a rank cannot even receive, it leaves the call: nothing more may be said over the group.
TEST(ScarceMemory, WithoutAnyTheGroupIsOfNoMoreUse) {
  run_ranks(
      ranks,
      [&](Transport& t) {
        Scarce memory(t.rank() == poor_one ? 0 : -1);
        Communicator comm(t, {}, memory);
        std::vector<float> x = make<float>("smooth", 300000, t.rank());
        const auto call = [&] {
          comm.whole([&] { allreduce(view(std::as_const(x)), view(x), Op::sum, comm, in_short_segments()); });
        };
        if (t.rank() == poor_one) {
          EXPECT_THROW(call(), std::bad_alloc);
        } else {
          EXPECT_THROW(call(), Error);
        }
        EXPECT_FALSE(comm.usable());
      },
      1);
}

TEST(ScarceMemory, ALinkIsMeasuredByAllOrNone) {
  for (const bool as_gpu : {false, true}) {
    CostCache::forget();
    run_ranks(
        ranks,
        [&](Transport& t) {
          Scarce memory(t.rank() == poor_one ? 1 : -1, as_gpu);
          const auto measure = [&] { calibrate_link(t, memory, "off"); };
          if (t.rank() == poor_one && !as_gpu) {
            EXPECT_THROW(measure(), std::bad_alloc);
          } else {
            EXPECT_THROW(measure(), Error);
          }
          memory.find_more();
          EXPECT_NO_THROW(measure());
        },
        5);
  }
}

/// Says that it is a GPU's.
class AsGpu final : public Ordinary {
 public:
  [[nodiscard]] bool on_host() const override { return false; }
};

constexpr double short_ones_later = 2e-3;

/// Messages go one after the other over a link of this kind. As if by bad luck, short ones take longer than others.
class OverLink final : public test::OverTransport {
 public:
  OverLink(Transport& over, const Link& link) : OverTransport(over), link_(link) {}
  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override {
    const std::chrono::duration<double> wire(static_cast<double>(buffer.size()) / link_.bytes_per_second);
    free_ = std::max(free_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(wire);
    const bool is_short = buffer.size() <= 64;
    const std::chrono::duration<double> latency(link_.latency + (is_short ? short_ones_later : 0));
    return Request(std::make_unique<Late>(over_.irecv(buffer, from, tag),
                                          free_ + std::chrono::duration_cast<Clock::duration>(latency)));
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Late final : Request::State {
    Late(Request r, Clock::time_point when) : request(std::move(r)), at(when) {}
    bool test() override { return Clock::now() >= at && request.test(); }
    void wait() override {
      request.wait();
      std::this_thread::sleep_until(at);
    }
    Request request;
    Clock::time_point at;
  };
  Link link_;
  Clock::time_point free_;
};

// As over NCCL between GPUs: what 2 MiB take on the wire is little beside the time until anything is there. How fast it
// is found to be depends on the machine, but not whether that is within eight times of the truth.
TEST(Calibration, LatencyDoesNotHideHowFastALinkIs) {
  constexpr Link link{6e-3, 1.25e9};
  CostCache::forget();
  run_ranks(2, [&](Transport& t) {
    AsGpu memory;
    OverLink slow(t, link);
    const Link found = calibrate_link(slow, memory, "off");
    EXPECT_GE(found.latency, link.latency);
    EXPECT_LE(found.bytes_per_second, 8 * link.bytes_per_second);
  });
}

constexpr std::chrono::milliseconds busy{40};

/// Ranks wait for a processor: what is not short takes as long, however much it is.
class OnBusyMachine final : public test::OverTransport {
 public:
  using OverTransport::OverTransport;
  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override {
    if (buffer.size() > 64) std::this_thread::sleep_for(busy);
    return OverTransport::irecv(buffer, from, tag);
  }
};

/// The longest message that is received over it.
class Longest final : public test::OverTransport {
 public:
  using OverTransport::OverTransport;
  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override {
    bytes = std::max(bytes, buffer.size());
    return OverTransport::irecv(buffer, from, tag);
  }
  std::size_t bytes = 0;
};

TEST(Calibration, ProbesGrowWhereOnlyWaitingTakesTime) {
  CostCache::forget();
  run_ranks(2, [&](Transport& t) {
    OnBusyMachine machine(t);
    Longest probes(machine);
    calibrate_link(probes, host_memory(), "off");
    EXPECT_EQ(probes.bytes, std::size_t{2} << 20);
  });
}

TEST(Calibration, ASlowLinkIsNotProbedForLong) {
  CostCache::forget();
  run_ranks(2, [&](Transport& t) {
    OverLink slow(t, {0, 4e6});
    Longest probes(slow);
    calibrate_link(probes, host_memory(), "off");
    EXPECT_LE(probes.bytes, std::size_t{512} << 10);
  });
}

/// Notes which rooms for messages have been freed.
class Watched final : public Ordinary {
 public:
  Room message_room(std::size_t bytes) override {
    const Room room = host_memory().message_room(bytes);
    return {room.get(), [this, room](const std::uint8_t* p) { freed.push_back(p); }};
  }
  std::vector<const std::uint8_t*> freed;
};

/// After so many receives the others are given up before they complete.
class GivesUp final : public test::OverTransport {
 public:
  GivesUp(Transport& over, int receives) : OverTransport(over), left_(receives) {}
  Request irecv(std::span<std::uint8_t> buffer, int from, int tag) override {
    if (left_-- > 0) return over_.irecv(buffer, from, tag);
    given_up.push_back(buffer.data());
    return Request(std::make_unique<Never>());
  }

  std::vector<const std::uint8_t*> given_up;

 private:
  struct Never final : Request::State {
    bool test() override { return false; }
    void wait() override { throw Error(Code::transport, "gave up"); }
  };
  int left_;
};

/// What the transport holds when it gives up after so many receives outlives the call and the communicator.
void expect_kept(int receives, std::size_t at_least, const Call& call) {
  run_ranks(2, [&](Transport& t) {
    Watched memory;
    GivesUp bad(t, receives);
    {
      Communicator comm(bad, {}, memory);
      std::vector<float> x = make<float>("smooth", 300000, t.rank());
      EXPECT_THROW(call(comm, x), Error);
      EXPECT_FALSE(comm.usable());
    }
    EXPECT_GE(bad.given_up.size(), at_least);
    for (const std::uint8_t* p : bad.given_up) EXPECT_EQ(std::ranges::count(memory.freed, p), 0);
  });
}

TEST(MemoryOfMessages, StaysWhereTheTransportMayStillWrite) {
  for (const int receives : {0, 3}) {
    expect_kept(receives, 8, [](Communicator& comm, std::vector<float>& x) {
      allreduce(view(std::as_const(x)), view(x), Op::sum, comm, in_short_segments());
    });
  }
  for (const int receives : {0, 1, 4}) {  // the first brings the head of the message
    expect_kept(receives, receives == 0 ? 1 : 8, [](Communicator& comm, std::vector<float>& x) {
      std::vector<float> y(x.size());
      sendrecv(view(x), 1 - comm.rank(), 0, view(y), 1 - comm.rank(), 0, comm, in_short_segments());
    });
  }
  CostCache::forget();
  for (const int receives : {0, 16}) {
    expect_kept(receives, 1, [](Communicator& comm, std::vector<float>&) {
      try {
        calibrate_link(comm.transport(), comm.memory(), "off");
      } catch (const Error&) {
        comm.mark_unusable();
        throw;
      }
    });
  }
}

/// Notes how many blocks a kernel is made for.
class Counting final : public Ordinary {
 public:
  std::unique_ptr<Kernel> movement(std::vector<ConstArray> operands, std::vector<MutArray> results,
                                   const Budget& budget, int threads) override {
    blocks = operands.size();
    EXPECT_EQ(results.size(), blocks);
    return host_memory().movement(std::move(operands), std::move(results), budget, threads);
  }
  std::size_t blocks = 0;
};

// Of thousands of ranks, n * n blocks would be what takes the memory.
TEST(MemoryOfBlocks, AnAlltoallHasThoseOfItsOwnRank) {
  constexpr std::size_t n = 5;
  run_ranks(n, [&](Transport& t) {
    Counting memory;
    Communicator comm(t, {}, memory);
    Options options = with("1e-3");
    options.mode = Mode::compressed;
    std::vector<float> x = make<float>("smooth", n * 30000, t.rank()), y(x.size());
    alltoall(view(std::as_const(x)), view(y), comm, options);
    EXPECT_EQ(memory.blocks, 2 * n - 1);
    memory.blocks = 0;
    const std::vector<std::size_t> counts(n, 30000);
    alltoallv(view(std::as_const(x)), {counts}, view(y), {counts}, comm, options);
    EXPECT_EQ(memory.blocks, 2 * n - 1);
  });
}

}  // namespace
}  // namespace laconic::collective_memory_test
