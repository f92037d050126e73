// Collectives on arrays in the memory of a (fake) GPU: the same results, to the bit, and the same bytes on the wire as
// on the host's. The fake's memory is closed to the host, so whatever touched an array directly would crash.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/fields.h"
#include "collective/gather.h"
#include "collective/p2p.h"
#include "collective/pool.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scan.h"
#include "collective/scatter.h"
#include "gpu/device_cases.h"
#include "gpu/device_memory.h"
#include "gpu/emulated_device.h"
#include "gpu/nothing_is_left.h"
#include "support/fake_cuda.h"
#include "support/sanitized.h"
#include "transport/faulty.h"
#include "transport/threads.h"

namespace laconic::device_collective_test {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

constexpr std::size_t count = sanitized ? 20001 : 50001;

std::vector<int> few_under_sanitizers(std::vector<int> few, std::vector<int> all) { return sanitized ? few : all; }

class Device : public test::NothingIsLeft {};

TEST_F(Device, AllreduceOfEveryTypeAndOperation) {
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64}) {
    for (const Op op : {Op::sum, Op::average, Op::min, Op::max}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::string(name_of(op)));
      expect_as_on_host(3, [&](Rank& r) {
        const MutArray x = r.place(field(t, is_float(t) ? "smooth" : "integer", count, r.rank()), t);
        const MutArray y = r.room(count, t);
        return std::pair{y, allreduce(x, y, op, r.comm(), with("1e-2"))};
      });
    }
  }
}

TEST_F(Device, AllreduceOfEveryGroupAndSchedule) {
  for (const int ranks : few_under_sanitizers({1, 4}, {1, 2, 4, 7})) {
    for (const Schedule s : {Schedule::ring, Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::direct}) {
      expect_as_on_host(ranks, [&](Rank& r) {
        const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
        Options o = with("1e-3rel");
        o.schedule = s;
        return std::pair{x, allreduce(x, x, Op::sum, r.comm(), o)};  // in place
      });
    }
  }
}

// More messages than the device adds at once.
TEST_F(Device, DirectExchangeAmongMany) {
  expect_as_on_host(10, [&](Rank& r) {
    const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
    const MutArray y = r.room(count, DType::f32);
    Options o = with("1e-3");
    o.schedule = Schedule::direct;
    return std::pair{y, allreduce(x, y, Op::sum, r.comm(), o)};
  });
  EXPECT_EQ(test::most_summed(), 8U);
}

TEST_F(Device, AllreduceOnTwoLevels) {
  expect_as_on_host(4,
                    [&](Rank& r) {
                      const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
                      Options o = with("1e-3");
                      o.schedule = Schedule::two_level;
                      return std::pair{x, allreduce(x, x, Op::sum, r.comm(), o)};
                    },
                    {0, 0, 1, 1});
}

TEST_F(Device, HardDataLosslessBoundsAndOtherCodecs) {
  const auto of = [&](const std::string& kind, const Options& o, bool hostile, Op op = Op::sum) {
    SCOPED_TRACE(kind);
    expect_as_on_host(3, [&](Rank& r) {
      auto values = testing_fields::make<float>(kind, count, r.rank());
      if (hostile) {
        testing_fields::sprinkle(values, 3, 301, std::numeric_limits<float>::quiet_NaN());
        testing_fields::sprinkle(values, 7, 211, std::numeric_limits<float>::infinity());
        testing_fields::sprinkle(values, 11, 97, 1e30F);
      }
      Bytes bytes(values.size() * sizeof(float));
      std::memcpy(bytes.data(), values.data(), bytes.size());
      const MutArray x = r.place(bytes, DType::f32);
      const MutArray y = r.room(count, DType::f32);
      return std::pair{y, allreduce(x, y, op, r.comm(), o)};
    });
  };
  of("smooth", with("1e-3"), true);
  of("smooth", with("1e-3"), true, Op::min);
  of("wild", with("1e-3"), false, Op::max);
  of("smooth", with("lossless"), true, Op::max);
  of("wild", with("1e-3"), false);
  of("smooth", with("lossless"), true);
  Options szx = with("1e-3");
  szx.codec = CodecId::szx;
  of("smooth", szx, false);
  Options steps = with("1e-3");
  steps.framework = Framework::stepwise;
  of("smooth", steps, false);
  Options hops = with("1e-3");
  hops.framework = Framework::point_to_point;
  of("noise", hops, false);
}

TEST_F(Device, SumsThatTheDeviceCannotForm) {
  const std::uint64_t before = test::failed_sums();
  test::let_sums_fail(gpu::Fault::too_many_terms);
  for (const Schedule s : {Schedule::ring, Schedule::recursive_doubling, Schedule::direct}) {
    expect_as_on_host(3, [&](Rank& r) {
      const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
      Options o = with("1e-3");
      o.schedule = s;
      return std::pair{x, allreduce(x, x, Op::sum, r.comm(), o)};
    });
  }
  expect_as_on_host(3, [&](Rank& r) {  // of which no message is sent on
    const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
    const MutArray y = r.room(r.rank() == 0 ? count - 200 : 100, DType::f32);
    return std::pair{
        y, reduce_scatter(x, y, std::vector<std::size_t>{count - 200, 100, 100}, Op::sum, r.comm(), with("1e-3"))};
  });
  test::let_sums_fail(gpu::Fault::none);
  EXPECT_GT(test::failed_sums(), before);
}

// As on devices with less shared memory for a block than 64-bit integers take.
TEST_F(Device, GridsThatTheDeviceHasNoKernelsFor) {
  test::let_wide_integers_be_too_much(true);
  // With the last two, operands fit 32 bits where sums of them do not.
  for (const char* bound : {"lossless", "1e-13", "4e-9", "2e-9"}) {
    SCOPED_TRACE(bound);
    const auto operand = [&](Rank& r) { return r.place(field(DType::f64, "smooth", count, r.rank()), DType::f64); };
    for (const Op op : {Op::sum, Op::average, Op::max}) {
      expect_as_on_host(3, [&](Rank& r) {
        const MutArray x = operand(r), y = r.room(count, DType::f64);
        return std::pair{y, allreduce(x, y, op, r.comm(), with(bound))};
      });
    }
    expect_as_on_host(3, [&](Rank& r) {
      const MutArray x = operand(r);
      return std::pair{x, bcast(x, 0, r.comm(), with(bound))};
    });
  }
  test::let_wide_integers_be_too_much(false);
}

// What a rank passes on is a sum of one operand more than its result: with five ranks and these bounds, it may be too
// long for 32 bits where the result is not.
TEST_F(Device, AnExclusiveScanPassesOnMoreThanItKeeps) {
  constexpr std::size_t few = 5000;
  test::let_wide_integers_be_too_much(true);
  for (const char* bound : {"1e-8", "4e-9", "2e-9", "1e-9"}) {
    for (const Op op : {Op::sum, Op::average}) {
      SCOPED_TRACE(std::string(bound) + " " + std::string(name_of(op)));
      expect_as_on_host(5, [&](Rank& r) {
        const MutArray x = r.place(field(DType::f64, "smooth", few, r.rank()), DType::f64), y = r.room(few, DType::f64);
        return std::pair{y, exscan(x, y, op, r.comm(), with(bound))};
      });
    }
  }
  test::let_wide_integers_be_too_much(false);
}

TEST_F(Device, OtherReductions) {
  for (const int ranks : few_under_sanitizers({3}, {2, 5})) {
    for (const Op op : {Op::sum, Op::max}) {
      for (const char* bound : {"1e-3", "lossless"}) {
        const Options o = with(bound);
        const auto operand = [&](Rank& r) { return r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32); };
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = operand(r), y = r.room(count, DType::f32);
          return std::pair{y, reduce(x, y, op, 1, r.comm(), o)};
        });
        expect_as_on_host(ranks, [&](Rank& r) {
          std::vector<std::size_t> counts(static_cast<std::size_t>(ranks), 100);
          counts[0] = count - 100 * (counts.size() - 1);
          const MutArray x = operand(r), y = r.room(counts[static_cast<std::size_t>(r.rank())], DType::f32);
          return std::pair{y, reduce_scatter(x, y, counts, op, r.comm(), o)};
        });
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = operand(r), y = r.room(count, DType::f32);
          return std::pair{y, scan(x, y, op, r.comm(), o)};
        });
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = operand(r), y = r.room(count, DType::f32);
          return std::pair{y, exscan(x, y, op, r.comm(), o)};
        });
      }
    }
  }
}

TEST_F(Device, Movement) {
  for (const int ranks : few_under_sanitizers({3}, {1, 2, 5})) {
    for (const DType t : {DType::f64, DType::f16, DType::i32}) {
      for (const char* bound : {"1e-2", "lossless"}) {
        SCOPED_TRACE(std::string(name_of(t)) + " " + bound);
        const Options o = with(bound);
        const auto n = static_cast<std::size_t>(ranks);
        const auto values = [&](Rank& r, std::size_t many) { return r.place(field(t, "smooth", many, r.rank()), t); };
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = values(r, count);
          return std::pair{x, bcast(x, ranks - 1, r.comm(), o)};
        });
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = values(r, 1000 + static_cast<std::size_t>(r.rank()));
          const MutArray y = r.room(1000 * n + n * (n - 1) / 2, t);
          return std::pair{y, allgather(x, y, r.comm(), o)};
        });
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = values(r, 3000), y = r.room(3000 * n, t);
          return std::pair{y, gather_equal(x, y, 0, r.comm(), o)};
        });
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = values(r, 3000 * n), y = r.room(3000, t);
          return std::pair{y, scatter_equal(x, y, 0, r.comm(), o)};
        });
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = values(r, 2500 * n), y = r.room(2500 * n, t);
          return std::pair{y, alltoall(x, y, r.comm(), o)};
        });
        expect_as_on_host(ranks, [&](Rank& r) {
          const MutArray x = values(r, 2500 * n);
          return std::pair{x, alltoall(x, x, r.comm(), o)};  // in place
        });
      }
    }
  }
}

TEST_F(Device, MessagesBetweenTwoRanks) {
  Options o = with("1e-3");
  o.verify = true;
  expect_as_on_host(2, [&](Rank& r) {
    const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
    const MutArray y = r.room(count, DType::f32);
    const Received got = sendrecv(x, 1 - r.rank(), 0, y, 1 - r.rank(), 0, r.comm(), o);
    EXPECT_EQ(got.count, count);
    EXPECT_GT(got.report.verified, 0U);
    return std::pair{y, got.report};
  });
}

TEST_F(Device, ResultsAreVerified) {
  for (const char* bound : {"1e-3", "lossless"}) {
    expect_as_on_host(3, [&](Rank& r) {
      const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
      Options o = with(bound);
      o.verify = true;
      const Report report = allreduce(x, x, Op::sum, r.comm(), o);
      EXPECT_EQ(report.verified, 3 * count);
      EXPECT_LE(report.achieved_error, 1.1e-3);
      return std::pair{x, report};
    });
  }
}

TEST_F(Device, NothingAndLittle) {
  for (const std::size_t n : {0U, 1U, 5U, 2049U}) {
    expect_as_on_host(4, [&](Rank& r) {
      const MutArray x = r.place(field(DType::f32, "smooth", n, r.rank()), DType::f32);
      const MutArray y = r.room(n, DType::f32);
      return std::pair{y, allreduce(x, y, Op::sum, r.comm(), with("1e-3"))};
    });
  }
}

TEST_F(Device, MessagesLongerThanWhatIsPinned) {
  expect_as_on_host(2, [&](Rank& r) {
    constexpr std::size_t many = (std::size_t{5} << 18) + 77;
    Bytes noise(many * sizeof(float));
    std::uint32_t state = 1;
    for (std::uint8_t& b : noise) b = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24);
    const MutArray x = r.place(noise, DType::f32);
    Options o = with("lossless");
    o.segment_values = many;
    return std::pair{x, bcast(x, 0, r.comm(), o)};
  });
}

// What suits the host and what suits a device is not the same.
TEST_F(Device, RanksOfBothKindsCutMessagesAlike) {
  expect_as_on_host(2, [&](Rank& r) {
    constexpr std::size_t many = 300001;
    const MutArray x = r.place(field(DType::f32, "smooth", many, r.rank()), DType::f32);
    Options o = with("1e-3");
    o.segment_values = 0;
    Report report = allreduce(x, x, Op::sum, r.comm(), o);
    report.stats.wire_bytes = 0;  // the host alone has shorter messages, and more bytes
    return std::pair{x, report};
  });
}

TEST_F(Device, PlainElementsLongerThanWhatIsPinned) {
  expect_as_on_host(4,
                    [&](Rank& r) {
                      constexpr std::size_t many = 1150001;
                      const MutArray x = r.place(field(DType::f32, "smooth", many, r.rank()), DType::f32);
                      const MutArray y = r.room(4 * many, DType::f32);
                      Options o = with("1e-3");
                      o.segment_values = many;
                      o.schedule = Schedule::two_level;
                      return std::pair{y, allgather_equal(x, y, r.comm(), o)};
                    },
                    {0, 0, 1, 1});
}

TEST_F(Device, PinnedMemoryOfTheHostIsReached) {
  run_ranks(2, [](Transport& t) {
    Rank r(t, true);
    void* pinned = nullptr;
    cudaMallocHost(&pinned, count * sizeof(float));
    const MutArray x{pinned, count, DType::f32};
    const Bytes mine = field(DType::f32, "smooth", count, r.rank());
    std::memcpy(pinned, mine.data(), mine.size());
    const MutArray y = r.place(mine, DType::f32);
    allreduce(x, x, Op::sum, r.comm(), with("1e-3"));
    allreduce(y, y, Op::sum, r.comm(), with("1e-3"));
    EXPECT_TRUE(r.contents(x) == r.contents(y));
    cudaFreeHost(pinned);
    std::vector<float> pageable(count);
    EXPECT_THROW(
        allreduce({pageable.data(), count, DType::f32}, {pageable.data(), count, DType::f32}, Op::sum, r.comm(), {}),
        Error);
  });
}

TEST_F(Device, DamagedMessagesAreErrorsEverywhere) {
  const std::pair<std::uint64_t, Schedule> cases[] = {
      {5, Schedule::ring}, {400, Schedule::direct}, {90001, Schedule::ring}, {90001, Schedule::direct}};
  for (const auto& damage : cases) {
    const std::uint64_t bit = damage.first;
    int failed = 0;
    std::mutex mutex;
    Options o = with("1e-3");
    o.schedule = damage.second;
    run_ranks(
        3,
        [&](Transport& t) {
          const auto faulty = make_faulty_transport(t, t.rank() == 1 ? flip_bit(1, bit) : delay(0));
          Rank r(*faulty, true);
          const MutArray x = r.place(field(DType::f32, "noise", count, r.rank()), DType::f32);
          try {
            allreduce(x, x, Op::sum, r.comm(), o);
          } catch (const Error& e) {
            EXPECT_EQ(e.code(), Code::corrupt) << e.what();
            const std::string from = o.schedule == Schedule::direct ? "from ranks" : "from rank ";
            EXPECT_NE(std::string(e.what()).find(from), std::string::npos) << e.what();
            const std::lock_guard lock(mutex);
            ++failed;
          }
          // The group works on.
          const MutArray y = r.place(field(DType::f32, "noise", 1000, r.rank()), DType::f32);
          allreduce(y, y, Op::sum, r.comm(), with("1e-3"));
        },
        60);
    EXPECT_EQ(failed, 3) << "bit " << bit;
  }
}

TEST_F(Device, AStreamThatIsBeingCapturedIsRefused) {
  run_ranks(1, [](Transport& t) {
    Rank r(t, true);
    fake::set_capturing(r.stream(), true);
    EXPECT_THROW(r.device()->use(r.stream()), Error);
    fake::set_capturing(r.stream(), false);
    r.device()->use(r.stream());
  });
}

// What the program captures, in CUDA's default mode in any of its threads, or on another stream in this one, stays
// valid.
TEST_F(Device, CallsInTheBackgroundComeAfterWhatTheStreamHas) {
  expect_as_on_host(3, [&](Rank& r) {
    const MutArray from = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
    const MutArray x = r.room(count, DType::f32);
    r.memory().begin_copy(x.data, from.data, x.bytes());
    return std::pair{x, in_background(r, [&](Communicator& c) { return allreduce(x, x, Op::sum, c, with("1e-3")); })};
  });
}

TEST_F(Device, CapturesOfOtherStreamsGoOn) {
  cudaStream_t captured = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
  for (const Options& o : {with("1e-3"), with("1e-3", Mode::automatic), with("lossless")}) {
    expect_as_on_host(3, [&](Rank& r) {
      cudaStream_t own = nullptr;
      EXPECT_EQ(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), cudaSuccess);
      EXPECT_EQ(cudaStreamBeginCapture(own, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
      const auto result = std::pair{x, allreduce(x, x, Op::sum, r.comm(), o)};
      EXPECT_EQ(cudaStreamEndCapture(own, nullptr), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(own), cudaSuccess);
      cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
      EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
      EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "the thread's mode is not what it was";
      cudaThreadExchangeStreamCaptureMode(&mode);
      return result;
    });
  }
  EXPECT_EQ(cudaStreamEndCapture(captured, nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(captured), cudaSuccess);
}

// To free waits for the device, where a kernel may be waiting for what this rank has yet to send.
TEST_F(Device, CallsFreeNothing) {
  run_ranks(3, [](Transport& t) {
    Rank r(t, true);
    const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
    allgather_value(t, 0);  // all ranks have theirs
    const std::size_t before = fake::frees();
    for (const std::size_t values : {2048U, 4096U, 16384U, 2048U, 32768U}) {
      Options o = with("1e-3");
      o.segment_values = values;
      allreduce(x, x, Op::sum, r.comm(), o);
    }
    r.memory().copy(static_cast<std::uint8_t*>(x.data) + 4, x.data, x.bytes() - 4);
    EXPECT_EQ(fake::frees(), before);
    allgather_value(t, 0);  // before any of them ends
  });
}

TEST_F(Device, MessagesOfManyLengthsNeedFewRooms) {
  gpu::DeviceMemory memory;
  const fake::Live before = fake::live();
  BufferPool pool(memory, true);
  for (const Content content : {Content::data, Content::elements}) {
    for (std::size_t bytes = 1; bytes < 300000; bytes += 997) {
      const MessagePtr one = pool.take(bytes, content), other = pool.take(bytes / 3, content);
      EXPECT_GE(one->capacity(), bytes);
      EXPECT_GE(other->capacity(), bytes / 3);
    }
  }
  EXPECT_LT(fake::live().pinned_allocations - before.pinned_allocations, 30U);
  EXPECT_LT(fake::live().device_allocations - before.device_allocations, 30U);
}

TEST_F(Device, ArraysThatOverlapAreMoved) {
  run_ranks(1, [](Transport& t) {
    Rank r(t, true);
    constexpr std::size_t bytes = (std::size_t{5} << 20) / 2, by = 100000;
    Bytes expected(bytes);
    for (std::size_t i = 0; i < bytes; ++i) expected[i] = static_cast<std::uint8_t>(i * 2654435761U >> 24);
    const MutArray x = r.place(expected, DType::f32);
    auto* const there = static_cast<std::uint8_t*>(x.data);
    for (const auto& [to, from] : {std::pair{by, std::size_t{0}}, std::pair{std::size_t{0}, by}}) {
      std::memmove(expected.data() + to, expected.data() + from, bytes - by);
      r.memory().copy(there + to, there + from, bytes - by);
      EXPECT_TRUE(r.contents(x) == expected) << "by " << by << (to != 0 ? " up" : " down");
    }
  });
}

// Else a rank that lacks room for a copy in the middle of a call would go on to its next one.
TEST_F(Device, RoomThatThereIsNotEndsTheCommunicatorAsOnTheHost) {
  run_ranks(1, [](Transport& t) {
    Rank r(t, true);
    const auto too_much = [&] { r.comm().whole([&] { r.memory().array_room(SIZE_MAX - 64); }); };
    EXPECT_THROW(too_much(), std::bad_alloc);
    EXPECT_FALSE(r.comm().usable());
  });
}

TEST_F(Device, PointersAreToldApart) {
  run_ranks(1, [](Transport& t) {
    Rank r(t, true);
    const MutArray x = r.room(100, DType::f32);
    EXPECT_TRUE(gpu::is_device_pointer(x.data));
    EXPECT_TRUE(gpu::is_device_pointer(static_cast<std::uint8_t*>(x.data) + 40));
    EXPECT_FALSE(gpu::is_device_pointer(&t));
    EXPECT_FALSE(gpu::is_device_pointer(nullptr));
  });
}

}  // namespace
}  // namespace laconic::device_collective_test
