// Arrays in the memory of a (fake) GPU over an MPI that knows nothing of GPUs: compressed messages, and the library's
// own collectives on copies. And over one that says it takes them.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "collective/allgather.h"
#include "collective/allreduce.h"
#include "collective/alltoall.h"
#include "collective/bcast.h"
#include "collective/gather.h"
#include "collective/reduce.h"
#include "collective/reduce_scatter.h"
#include "collective/scan.h"
#include "collective/scatter.h"
#include "gpu/device_rank.h"
#include "support/fake_cuda.h"
#include "transport/mpi/mpi.h"

namespace {
bool mpi_takes_device_arrays = false;
}  // namespace

/// In place of the MPI library's own.
extern "C" int MPIX_Query_cuda_support(void) { return mpi_takes_device_arrays ? 1 : 0; }

namespace laconic {
namespace {

using test::Bytes;
using test::Rank;

constexpr std::size_t count = 20011;

/// The same as on the host, in every mode.
void expect_as_on_host(const std::function<std::pair<MutArray, Report>(Rank&, const Options&)>& body) {
  for (const Mode mode : {Mode::plain, Mode::compressed, Mode::automatic}) {
    Options o;
    o.bound = Bound::parse("1e-3");
    o.mode = mode;
    o.segment_values = 8192;
    const auto transport = make_mpi_transport(MPI_COMM_WORLD);
    Rank on_host(*transport, false), on_device(*transport, true);
    const auto [expected, plain_report] = body(on_host, o);
    const auto [got, report] = body(on_device, o);
    if (mode == Mode::automatic && plain_report.route != report.route) continue;  // as it turned out to be faster
    EXPECT_EQ(report.route, plain_report.route);
    if (mode == Mode::plain && transport->size() > 1) {
      EXPECT_EQ(report.route, Route::plain);
    }
    EXPECT_TRUE(on_device.contents(got) == on_host.contents(expected)) << "mode " << static_cast<int>(mode);
  }
}

MutArray mine(Rank& r, std::size_t n = count) {
  return r.place(test::field(DType::f32, "smooth", n, r.rank()), DType::f32);
}

TEST(DeviceMpi, Reductions) {
  for (const Op op : {Op::sum, Op::average}) {
    expect_as_on_host([&](Rank& r, const Options& o) {
      const MutArray x = mine(r);
      return std::pair{x, allreduce(x, x, op, r.comm(), o)};
    });
    expect_as_on_host([&](Rank& r, const Options& o) {
      const MutArray x = mine(r), y = r.room(count, DType::f32);
      return std::pair{y, reduce(x, y, op, 0, r.comm(), o)};
    });
    expect_as_on_host([&](Rank& r, const Options& o) {
      const auto n = static_cast<std::size_t>(r.comm().size());
      const MutArray x = mine(r, 5000 * n), y = r.room(5000, DType::f32);
      return std::pair{y, reduce_scatter_block(x, y, op, r.comm(), o)};
    });
    expect_as_on_host([&](Rank& r, const Options& o) {
      const MutArray x = mine(r), y = r.room(count, DType::f32);
      return std::pair{y, scan(x, y, op, r.comm(), o)};
    });
    expect_as_on_host([&](Rank& r, const Options& o) {
      const MutArray x = mine(r), y = r.room(count, DType::f32);
      return std::pair{y, exscan(x, y, op, r.comm(), o)};
    });
  }
}

// As NCCL has it: the result in the place of the rank's own block.
TEST(DeviceMpi, ReduceScatterIntoTheOwnBlock) {
  expect_as_on_host([&](Rank& r, const Options& o) {
    const auto n = static_cast<std::size_t>(r.comm().size());
    const MutArray x = mine(r, 5000 * n);
    const MutArray own{static_cast<std::uint8_t*>(x.data) + static_cast<std::size_t>(r.rank()) * 5000 * sizeof(float),
                       5000, DType::f32};
    return std::pair{own, reduce_scatter_block(x, own, Op::sum, r.comm(), o)};
  });
}

TEST(DeviceMpi, Movement) {
  expect_as_on_host([&](Rank& r, const Options& o) {
    const MutArray x = mine(r);
    return std::pair{x, bcast(x, r.comm().size() - 1, r.comm(), o)};
  });
  const auto wide = [](Rank& r, std::size_t n) { return n * static_cast<std::size_t>(r.comm().size()); };
  expect_as_on_host([&](Rank& r, const Options& o) {
    const MutArray x = mine(r, 5000), y = r.room(wide(r, 5000), DType::f32);
    return std::pair{y, allgather_equal(x, y, r.comm(), o)};
  });
  expect_as_on_host([&](Rank& r, const Options& o) {
    const MutArray x = mine(r, 5000 + static_cast<std::size_t>(r.rank()));
    const std::size_t n = wide(r, 1);
    const MutArray y = r.room(5000 * n + n * (n - 1) / 2, DType::f32);
    return std::pair{y, allgather(x, y, r.comm(), o)};
  });
  expect_as_on_host([&](Rank& r, const Options& o) {
    const MutArray x = mine(r, 5000), y = r.room(wide(r, 5000), DType::f32);
    return std::pair{y, gather_equal(x, y, 0, r.comm(), o)};
  });
  expect_as_on_host([&](Rank& r, const Options& o) {
    const MutArray x = mine(r, wide(r, 5000)), y = r.room(5000, DType::f32);
    return std::pair{y, scatter_equal(x, y, 0, r.comm(), o)};
  });
  expect_as_on_host([&](Rank& r, const Options& o) {
    const MutArray x = mine(r, wide(r, 5000));
    return std::pair{x, alltoall(x, x, r.comm(), o)};
  });
}

// What it gets is what is there when the stream has come to it. Memory is open, since this MPI reads it after all.
TEST(DeviceMpi, AnMpiThatTakesDeviceArraysGetsThemAsTheyAre) {
  mpi_takes_device_arrays = true;
  const auto transport = make_mpi_transport(MPI_COMM_WORLD);
  mpi_takes_device_arrays = false;
  if (transport->size() == 1) return;  // then nothing is MPI's
  {
    Rank r(*transport, true);
    EXPECT_EQ(r.comm().plain(), transport->plain());
    const MutArray x = mine(r);
    const Bytes zeros(x.bytes());
    Options o;
    o.bound = Bound::parse("1e-3");
    o.mode = Mode::plain;
    const fake::DeviceAccess open;
    ASSERT_EQ(cudaMemcpyAsync(x.data, zeros.data(), zeros.size(), cudaMemcpyDefault, r.stream()), cudaSuccess);
    EXPECT_EQ(allreduce(x, x, Op::sum, r.comm(), o).route, Route::plain);
    EXPECT_TRUE(r.contents(x) == zeros);
  }
  const auto other = make_mpi_transport(MPI_COMM_WORLD);
  Rank r(*other, true);
  EXPECT_NE(r.comm().plain(), other->plain());
}

}  // namespace
}  // namespace laconic
