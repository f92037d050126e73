// Arrays in the memory of a (fake) GPU over an MPI that knows nothing of GPUs: compressed messages, and the library's
// own collectives on copies. And over one that says it takes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

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
#include "transport/plain.h"

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

/// Calls of MPI's own, on copies.
struct Staged {
  explicit Staged(Transport& transport) : rank(transport, true), library(*rank.comm().plain()) {}
  Rank rank;
  PlainCollectives& library;
};

// A copy from or to pageable memory takes several times as long, and to allocate it, page by page, as long again.
TEST(DeviceMpi, CopiesForThePlainLibraryArePinnedOnce) {
  const auto transport = make_mpi_transport(MPI_COMM_WORLD);
  if (transport->size() == 1) return;  // then nothing is MPI's
  Staged staged(*transport);
  const MutArray x = mine(staged.rank), y = staged.rank.room(count, DType::f32);
  const fake::Live before = fake::live();
  const std::size_t freed = fake::frees();
  for (const std::size_t n : {count, count, count / 3}) {
    staged.library.allreduce({x.data, n, x.dtype}, {y.data, n, y.dtype}, Op::sum);
    staged.library.bcast({y.data, n, y.dtype}, 0);
    EXPECT_EQ(fake::live().pinned_allocations, before.pinned_allocations + 2) << "an operand's and a result's";
  }
  EXPECT_EQ(fake::frees(), freed);
}

TEST(DeviceMpi, WhatThePlainLibraryDoesNotWriteStays) {
  const auto transport = make_mpi_transport(MPI_COMM_WORLD);
  const auto ranks = static_cast<std::size_t>(transport->size());
  if (ranks == 1) return;
  Staged staged(*transport);
  Rank& r = staged.rank;
  const bool is_first = r.rank() == 0;
  const MutArray x = mine(r, 100);
  const std::vector<std::size_t> counts(ranks, 100);
  std::vector<std::size_t> displs(ranks);
  for (std::size_t i = 0; i < ranks; ++i) displs[i] = 150 * i;
  const Parts parts{false, counts, displs};
  const Bytes untouched = r.contents(r.room(150 * ranks, DType::f32));
  Bytes gathered = untouched;
  for (std::size_t i = 0; i < ranks; ++i) {
    const Bytes part = test::field(DType::f32, "smooth", 100, static_cast<int>(i));
    std::copy(part.begin(), part.end(), gathered.begin() + static_cast<std::ptrdiff_t>(displs[i] * sizeof(float)));
  }
  const auto expect = [&](const char* call, const Bytes& expected, auto&& make) {
    const MutArray y = r.room(150 * ranks, DType::f32);
    make(y);
    EXPECT_TRUE(r.contents(y) == expected) << call;
  };
  expect("allgather", gathered, [&](MutArray y) { staged.library.allgather(x, y, parts); });
  expect("gather", is_first ? gathered : untouched, [&](MutArray y) { staged.library.gather(x, y, parts, 0); });
  const auto others = [&](const char* call, auto&& make) {  // ranks that get nothing
    const MutArray y = r.room(100, DType::f32);
    const Bytes was = r.contents(y);
    const bool gets = make(y);
    EXPECT_EQ(r.contents(y) == was, !gets) << call;
  };
  others("reduce", [&](MutArray y) { return staged.library.reduce(x, y, Op::sum, 0), is_first; });
  others("exscan", [&](MutArray y) { return staged.library.scan(x, y, Op::sum, true), !is_first; });
  const MutArray z = mine(r, 100);
  staged.library.bcast(z, 0);
  EXPECT_TRUE(r.contents(z) == test::field(DType::f32, "smooth", 100, 0));
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
