// Collectives on arrays in the memory of a real device, among ranks that are threads of this process and share it, each
// with a stream of its own: the same results, to the bit, and the same bytes on the wire as on the host. Skipped, with
// the reason, where there is no device.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "collective/reduce_scatter.h"
#include "gpu/device.h"
#include "gpu/device_cases.h"

namespace laconic {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

constexpr std::size_t count = 300007;

class GpuCollective : public OnDevice<testing::TestWithParam<int>> {};

Options in_segments(const char* bound, std::size_t values) {
  Options o = with(bound);
  o.segment_values = values;
  return o;
}

TEST_P(GpuCollective, AllreduceOfEveryTypeAndOperation) {
  for (const DType t : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32}) {
    for (const Op op : {Op::sum, Op::average, Op::min, Op::max}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::string(name_of(op)));
      expect_as_on_host(GetParam(), [&](Rank& r) {
        const MutArray x = r.place(field(t, is_float(t) ? "smooth" : "integer", count, r.rank()), t);
        const MutArray y = r.room(count, t);
        return std::pair{y, allreduce(x, y, op, r.comm(), in_segments("1e-2", 65536))};
      });
    }
  }
}

TEST_P(GpuCollective, AllreduceOfEveryScheduleAndKindOfData) {
  for (const Schedule s : {Schedule::ring, Schedule::recursive_doubling, Schedule::rabenseifner, Schedule::direct}) {
    for (const char* kind : {"smooth", "noise", "constant", "denormal", "wild"}) {
      SCOPED_TRACE(std::string(kind) + ", schedule " + std::to_string(static_cast<int>(s)));
      expect_as_on_host(GetParam(), [&](Rank& r) {
        const MutArray x = r.place(field(DType::f32, kind, count, r.rank()), DType::f32);
        Options o = in_segments("1e-3", 8192);
        o.schedule = s;
        return std::pair{x, allreduce(x, x, Op::sum, r.comm(), o)};  // in place
      });
    }
  }
}

TEST_P(GpuCollective, OtherCollectives) {
  const auto n = static_cast<std::size_t>(GetParam());
  expect_as_on_host(GetParam(), [&](Rank& r) {
    const MutArray x = r.place(field(DType::f32, "smooth", count, 0), DType::f32);
    return std::pair{x, bcast(x, 0, r.comm(), with("1e-3"))};
  });
  expect_as_on_host(GetParam(), [&](Rank& r) {
    const MutArray x = r.place(field(DType::f64, "smooth", count, r.rank()), DType::f64);
    const MutArray all = r.room(count * n, DType::f64);
    return std::pair{all, allgather_equal(x, all, r.comm(), with("lossless"))};
  });
  expect_as_on_host(GetParam(), [&](Rank& r) {
    const MutArray x = r.place(field(DType::f32, "smooth", count * n, r.rank()), DType::f32);
    const MutArray y = r.room(count, DType::f32);
    return std::pair{y, reduce_scatter_block(x, y, Op::sum, r.comm(), with("1e-3"))};
  });
}

/// Many MiB: several segments of the size that is used for devices, several thread blocks each.
TEST_P(GpuCollective, LongArrays) {
  constexpr std::size_t many = (std::size_t{5} << 20) + 3;
  expect_as_on_host(GetParam(), [&](Rank& r) {
    const MutArray x = r.place(field(DType::f32, "smooth", many, r.rank()), DType::f32);
    return std::pair{x, allreduce(x, x, Op::sum, r.comm(), in_segments("1e-4rel", std::size_t{1} << 19))};
  });
}

/// The operand is filled on the caller's stream just before, and nobody waits for that; the result is there for any
/// stream. The caller finds device and errors as it left them. Stream 0, too, and calls that do not block.
TEST_P(GpuCollective, WorksBehindWhatTheStreamHasBeenGiven) {
  constexpr std::size_t bytes = count * sizeof(float);
  const auto body = [&](bool on_stream_0, bool blocks) {
    return [&, on_stream_0, blocks](Rank& r) {
      const MutArray x = r.place(Bytes(bytes, 0xFF), DType::f32);
      const auto call = [x](Communicator& c) { return allreduce(x, x, Op::sum, c, with("1e-3")); };
      if (r.device() == nullptr) {
        const Bytes mine = field(DType::f32, "smooth", count, r.rank());
        std::memcpy(x.data, mine.data(), bytes);
        return std::pair{x, blocks ? call(r.comm()) : in_background(r, call)};
      }
      const cudaStream_t stream = on_stream_0 ? nullptr : r.stream();
      const DeviceMemory from(field(DType::f32, "smooth", count, r.rank()).data(), bytes);
      const DeviceMemory busy(std::size_t{64} << 20);
      for (int i = 0; i < 20; ++i) must(cudaMemsetAsync(busy.data(), i, busy.size(), stream));
      must(cudaMemcpyAsync(x.data, from.data(), bytes, cudaMemcpyDeviceToDevice, stream));
      r.device()->use(stream);
      const Report report = blocks ? call(r.comm()) : in_background(r, call);
      EXPECT_EQ(cudaGetLastError(), cudaSuccess);
      int device = -1;
      must(cudaGetDevice(&device));
      EXPECT_EQ(device, 0);
      return std::pair{x, report};
    };
  };
  for (const bool on_stream_0 : {false, true}) {
    for (const bool blocks : {true, false}) expect_as_on_host(GetParam(), body(on_stream_0, blocks));
  }
}

/// Another thread captures a graph all the while, in the mode that CUDA has by default.
TEST_P(GpuCollective, CapturesOfOtherStreamsGoOn) {
  cudaStream_t captured = nullptr;
  must(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
  const DeviceMemory memory(1024);
  must(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
  must(cudaMemsetAsync(memory.data(), 1, 1024, captured));
  expect_as_on_host(GetParam(), [&](Rank& r) {
    const MutArray x = r.place(field(DType::f32, "smooth", count, r.rank()), DType::f32);
    return std::pair{x, allreduce(x, x, Op::sum, r.comm(), with("1e-3"))};
  });
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
  if (graph != nullptr) must(cudaGraphDestroy(graph));
  must(cudaStreamDestroy(captured));
}

INSTANTIATE_TEST_SUITE_P(Ranks, GpuCollective, testing::Values(2, 3, 4));

}  // namespace
}  // namespace laconic
