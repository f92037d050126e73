// More bytes than an int can count: one message, and collectives that compress and that leave it to MPI.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "collective/allreduce.h"
#include "collective/bcast.h"
#include "core/array.h"
#include "support/sanitized.h"
#include "transport/mpi/mpi.h"

namespace laconic {
namespace {

constexpr std::size_t values = (std::size_t{1} << 29) + 4099;  // f32: 2^31 bytes and some more
constexpr std::size_t bytes = 4 * values;
// Repeats after a prime: a block that lands in the wrong place is noticed.
constexpr std::size_t period = 100003;

class Large : public testing::Test {
 protected:
  Large() : comm(make_mpi_transport(MPI_COMM_WORLD)) {}
  /// Skips alike on all ranks. All tests have the first one's memory: to get it takes as long as the calls.
  void SetUp() override {
    if (test::sanitized) GTEST_SKIP() << "2 GiB, element by element, take minutes with sanitizers";
    for (std::size_t i = 0; i < period; ++i) pattern[i] = static_cast<float>(i % 251);
    if (room != nullptr) return;
    const std::size_t free =
        static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    int enough = free > 4 * bytes ? 1 : 0;
    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (enough == 0) GTEST_SKIP() << "needs 9 GB of free memory, there are " << free / 1000000000 << " GB";
    room = std::make_unique_for_overwrite<float[]>(values);
  }
  static void TearDownTestSuite() { room.reset(); }
  [[nodiscard]] static MutArray array() { return {room.get(), values, DType::f32}; }
  void fill() const {
    for (std::size_t i = 0; i < values; i += period)
      std::copy_n(pattern.data(), std::min(period, values - i), room.get() + i);
  }
  static void clear() { std::memset(room.get(), 0xff, bytes); }
  void expect_filled(float tolerance = 0) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values; i += period) {
      const std::size_t n = std::min(period, values - i);
      if (std::memcmp(room.get() + i, pattern.data(), 4 * n) == 0) continue;
      for (std::size_t k = 0; k < n; ++k) wrong += std::abs(room[i + k] - pattern[k]) <= tolerance ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U);
  }
  Communicator comm;
  std::vector<float> pattern = std::vector<float>(period);
  inline static std::unique_ptr<float[]> room;
};

TEST_F(Large, OneMessage) {
  auto* data = reinterpret_cast<std::uint8_t*>(room.get());
  if (comm.rank() == 0) {
    fill();
    comm.transport().isend({data, bytes}, 1, 3).wait();
  } else {
    clear();
    Request receive = comm.transport().irecv({data, bytes}, 0, 3);
    receive.wait();
    EXPECT_EQ(receive.received(), bytes);
    expect_filled();
  }
}

TEST_F(Large, BcastCompressedAndPlain) {
  for (const Mode mode : {Mode::compressed, Mode::plain}) {
    if (comm.rank() == 0) fill();
    if (comm.rank() != 0) clear();
    Options options;
    options.mode = mode;
    bcast(array(), 0, comm, options);
    expect_filled();
  }
}

TEST_F(Large, AllreduceInPlace) {
  fill();
  Options options;
  options.mode = Mode::compressed;
  options.bound = Bound::parse("1e-2");
  allreduce(array(), array(), Op::max, comm, options);  // of the same on both ranks
  expect_filled(1e-2F);
}

}  // namespace
}  // namespace laconic
