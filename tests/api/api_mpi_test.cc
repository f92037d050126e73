// The C and C++ interfaces' collectives over real MPI ranks.
#include <gtest/gtest.h>
#include <laconic/laconic_mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <laconic/laconic.hpp>
#include <numeric>
#include <string>

extern "C" int api_header_in_c(void);

namespace {

class ApiMpi : public testing::Test {
 protected:
  ApiMpi() : comm(make(), {.bound = "1e-3"}) {}

  static laconic_comm* make() {
    laconic_comm* raw = nullptr;
    laconic::check(laconic_comm_from_mpi(MPI_COMM_WORLD, &raw));
    return raw;
  }
  /// Element i of rank r.
  static float element(std::size_t i, int r) { return static_cast<float>(i % 100) * 0.01F + static_cast<float>(r); }
  [[nodiscard]] std::vector<float> mine(std::size_t count) const {
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = element(i, comm.rank());
    return x;
  }
  [[nodiscard]] float sum(std::size_t i) const {
    float s = 0;
    for (int r = 0; r < comm.size(); ++r) s += element(i, r);
    return s;
  }

  laconic::Comm comm;
};

constexpr float bound = 1.01e-3F;  // and the rounding of the sums above

TEST_F(ApiMpi, AllreduceInAndOutOfPlace) {
  comm.set_options({.bound = "1e-3", .mode = laconic::Mode::compressed});
  auto x = mine(10007);
  std::vector<float> y(x.size());
  comm.allreduce<float>(x, y, laconic::Op::sum);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], sum(i), bound);
  comm.allreduce<float>(x, laconic::Op::sum);
  EXPECT_EQ(x, y);
  if (comm.size() > 1) {
    EXPECT_EQ(comm.last().result_bound, 1e-3);
    EXPECT_EQ(comm.total().calls, 2U);
    EXPECT_LT(comm.last().wire_bytes, comm.last().original_bytes);
  }
}

TEST_F(ApiMpi, ModesAreTheCallersChoice) {
  const auto x = mine(10007);
  std::vector<float> y(x.size());
  comm.set_options({.bound = "1e-3", .mode = laconic::Mode::plain});
  comm.allreduce<float>(x, y, laconic::Op::sum);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], sum(i), bound);
  EXPECT_EQ(comm.last().plain_calls, comm.size() > 1 ? 1U : 0U);
  comm.set_options({.bound = "1e-3", .mode = laconic::Mode::automatic});
  for (int i = 0; i < 9; ++i) comm.allreduce<float>(x, y, laconic::Op::sum);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], sum(i), bound);
  EXPECT_EQ(comm.total().calls, 10U);

  // Handles of MPICH's, whose last bytes are numbers of ours.
  const auto refused = [&](unsigned dtype, unsigned op) {
    return laconic_allreduce(x.data(), y.data(), x.size(), static_cast<laconic_dtype>(dtype),
                             static_cast<laconic_op>(op), comm.raw(), nullptr) != LACONIC_OK;
  };
  EXPECT_TRUE(refused(LACONIC_F32, 0x58000003U));
  EXPECT_TRUE(refused(0x4c000101U, LACONIC_SUM));

  laconic_options o = LACONIC_OPTIONS_INIT;
  o.mode = static_cast<laconic_mode>(4);
  EXPECT_EQ(laconic_allreduce(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_SUM, comm.raw(), &o),
            LACONIC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(laconic_last_error()).find("options.mode is 4"), std::string::npos);
}

TEST_F(ApiMpi, OptionsOfTheCallBeatTheCommunicators) {
  const auto x = mine(5000);
  std::vector<float> y(x.size());
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.bound = "lossless";
  ASSERT_EQ(laconic_allreduce(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_AVERAGE, comm.raw(), &o), LACONIC_OK);
  EXPECT_EQ(comm.last().result_bound, 0);
  const auto n = static_cast<float>(comm.size());
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], sum(i) / n, 1e-5F);
}

TEST_F(ApiMpi, WhatACallLeavesOpenIsTheCommunicators) {
  if (comm.size() == 1) return;
  const auto x = mine(5000);
  std::vector<float> y(x.size());
  comm.set_options({.bound = "0.5", .mode = laconic::Mode::compressed});
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.threads = 2;
  ASSERT_EQ(laconic_allreduce(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_SUM, comm.raw(), &o), LACONIC_OK);
  EXPECT_GT(comm.last().result_bound, 0.1);
  ASSERT_EQ(laconic_comm_set_options(comm.raw(), nullptr), LACONIC_OK);  // the environment's again, which has no bound
  ASSERT_EQ(laconic_allreduce(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_MIN, comm.raw(), &o), LACONIC_OK);
  EXPECT_EQ(comm.last().result_bound, 0);
}

TEST_F(ApiMpi, ReduceScatterInAndOutOfPlace) {
  const auto n = static_cast<std::size_t>(comm.size());
  const auto me = static_cast<std::size_t>(comm.rank());
  constexpr std::size_t share = 3000;
  auto x = mine(share * n);
  std::vector<float> y(share);
  comm.reduce_scatter<float>(x, y, laconic::Op::sum);
  for (std::size_t i = 0; i < share; ++i) ASSERT_NEAR(y[i], sum(me * share + i), bound);
  std::vector<std::size_t> counts(n, share);
  counts.front() += share - 7;
  counts.back() -= std::min<std::size_t>(counts.back(), share - 7);
  std::vector<float> other(counts[me]);
  comm.reduce_scatter<float>(x, other, counts, laconic::Op::sum);
  const std::size_t first = me == 0 ? 0 : me * share + share - 7;
  for (std::size_t i = 0; i < other.size(); ++i) ASSERT_NEAR(other[i], sum(first + i), bound);
  counts.assign(n, share);
  ASSERT_EQ(
      laconic_reduce_scatter(LACONIC_IN_PLACE, x.data(), counts.data(), LACONIC_F32, LACONIC_SUM, comm.raw(), nullptr),
      LACONIC_OK);
  EXPECT_TRUE(std::equal(y.begin(), y.end(), x.begin()));
}

TEST_F(ApiMpi, AllgatherAndAllgathervInPlace) {
  const auto n = static_cast<std::size_t>(comm.size());
  constexpr std::size_t count = 2500;
  const auto x = mine(count);
  std::vector<float> y(count * n);
  comm.allgather<float>(x, y);
  std::vector<std::size_t> counts(n);
  for (std::size_t r = 0; r < n; ++r) counts[r] = r % 2 == 0 ? count : 7;
  std::vector<float> z(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  const auto first = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::size_t{0});
  const auto own = counts[static_cast<std::size_t>(comm.rank())];
  std::copy_n(x.begin(), own, z.begin() + static_cast<std::ptrdiff_t>(first));
  ASSERT_EQ(laconic_allgatherv(LACONIC_IN_PLACE, z.data(), counts.data(), nullptr, LACONIC_F32, comm.raw(), nullptr),
            LACONIC_OK);
  std::size_t at = 0;
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(y[r * count + i], element(i, static_cast<int>(r)), bound);
    for (std::size_t i = 0; i < counts[r]; ++i) ASSERT_NEAR(z[at++], element(i, static_cast<int>(r)), bound);
  }
}

TEST_F(ApiMpi, ReduceScanExscanAndSchedules) {
  const auto x = mine(5000);
  std::vector<float> whole(x.size()), y(x.size());
  for (const auto schedule :
       {laconic::Schedule::ring, laconic::Schedule::recursive_doubling, laconic::Schedule::two_level}) {
    comm.set_options({.bound = "1e-3", .schedule = schedule});
    whole.swap(y);
    comm.allreduce<float>(x, y, laconic::Op::sum);
    EXPECT_TRUE(schedule == laconic::Schedule::ring || whole == y);
  }
  std::fill(y.begin(), y.end(), 0.0F);
  const int root = comm.size() / 2;
  comm.reduce<float>(x, y, laconic::Op::sum, root);
  EXPECT_EQ(y, comm.rank() == root ? whole : std::vector<float>(x.size()));
  comm.scan<float>(x, y, laconic::Op::sum);
  EXPECT_TRUE(comm.rank() != comm.size() - 1 || y == whole);
  std::vector<float> before(x.size());
  comm.exscan<float>(x, before, laconic::Op::sum);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(before[i] + x[i], y[i], 2 * bound);
  comm.allreduce<float>(x, y, laconic::Op::max);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], element(i, comm.size() - 1), bound);
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.schedule = static_cast<laconic_schedule>(7);
  EXPECT_EQ(laconic_scan(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_SUM, comm.raw(), &o),
            LACONIC_INVALID_ARGUMENT);
  EXPECT_NE(std::string(laconic_last_error()).find("schedule"), std::string::npos);
}

TEST_F(ApiMpi, BcastScatterGather) {
  const auto n = static_cast<std::size_t>(comm.size());
  const int root = comm.size() - 1;
  const bool at_root = comm.rank() == root;
  constexpr std::size_t count = 3000;
  auto x = mine(count * n);
  comm.bcast<float>(x, root);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], element(i, root), bound);

  std::vector<float> all(at_root ? count * n : 0), share(count);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = element(i, root);
  comm.scatter<float>(all, share, root);
  const std::size_t first = static_cast<std::size_t>(comm.rank()) * count;
  for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(share[i], element(first + i, root), bound);
  void* place = at_root ? LACONIC_IN_PLACE : share.data();
  ASSERT_EQ(laconic_scatter(all.data(), place, count, LACONIC_F32, root, comm.raw(), nullptr), LACONIC_OK);

  std::vector<float> back(at_root ? count * n : 0);
  comm.gather<float>(share, back, root);
  for (std::size_t i = 0; i < back.size(); ++i) ASSERT_NEAR(back[i], element(i, root), 2 * bound);
  const std::vector<float> before = back;
  const void* from = at_root ? LACONIC_IN_PLACE : share.data();
  ASSERT_EQ(laconic_gather(from, count, back.data(), LACONIC_F32, root, comm.raw(), nullptr), LACONIC_OK);
  EXPECT_EQ(back, before);
  const std::vector<std::size_t> counts(n, count);
  ASSERT_EQ(laconic_gatherv(from, count, back.data(), counts.data(), nullptr, LACONIC_F32, root, comm.raw(), nullptr),
            LACONIC_OK);
  EXPECT_EQ(back, before);
  if (comm.size() > 1) {
    EXPECT_EQ(laconic_bcast(x.data(), count, LACONIC_F32, comm.rank(), comm.raw(), nullptr), LACONIC_MISMATCH);
    EXPECT_EQ(laconic_scatterv(all.data(), nullptr, nullptr, place, count, LACONIC_F32, root, comm.raw(), nullptr),
              LACONIC_INVALID_ARGUMENT);
  }
}

TEST_F(ApiMpi, AlltoallAndAlltoallv) {
  const auto n = static_cast<std::size_t>(comm.size());
  constexpr std::size_t count = 1000;
  auto x = mine(count * n);
  std::vector<float> y(x.size());
  comm.alltoall<float>(x, y);
  const std::size_t me = static_cast<std::size_t>(comm.rank()) * count;
  for (std::size_t i = 0; i < y.size(); ++i) {
    ASSERT_NEAR(y[i], element(me + i % count, static_cast<int>(i / count)), bound);
  }
  const std::vector<std::size_t> counts(n, count);
  ASSERT_EQ(laconic_alltoallv(x.data(), counts.data(), nullptr, y.data(), counts.data(), nullptr, LACONIC_F32,
                              comm.raw(), nullptr),
            LACONIC_OK);
  ASSERT_EQ(laconic_alltoallv(LACONIC_IN_PLACE, nullptr, nullptr, x.data(), counts.data(), nullptr, LACONIC_F32,
                              comm.raw(), nullptr),
            LACONIC_OK);
  EXPECT_EQ(x, y);
  EXPECT_EQ(
      laconic_alltoallv(x.data(), nullptr, nullptr, y.data(), counts.data(), nullptr, LACONIC_F32, comm.raw(), nullptr),
      LACONIC_INVALID_ARGUMENT);
}

// Last rank first, a gap before each part.
TEST_F(ApiMpi, PartsWithDisplacements) {
  const auto n = static_cast<std::size_t>(comm.size());
  const auto me = static_cast<std::size_t>(comm.rank());
  constexpr std::size_t count = 1000, gap = 7;
  const std::vector<std::size_t> counts(n, count);
  std::vector<std::size_t> displs(n);
  for (std::size_t r = 0; r < n; ++r) displs[r] = (n - 1 - r) * (count + gap) + gap;
  const laconic::Parts parts{.counts = counts, .displs = displs};
  const auto x = mine(count);
  std::vector<float> all(n * (count + gap), 42);
  const auto expect_all = [&](auto&& value_of) {
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(all[displs[r] + i], value_of(r, i), 2 * bound);
      for (std::size_t i = 0; i < gap; ++i) ASSERT_EQ(all[displs[r] - gap + i], 42);
    }
  };
  const auto of_rank = [&](std::size_t r, std::size_t i) { return element(i, static_cast<int>(r)); };
  comm.allgatherv<float>(x, all, parts);
  expect_all(of_rank);
  ASSERT_EQ(
      laconic_allgatherv(LACONIC_IN_PLACE, all.data(), counts.data(), displs.data(), LACONIC_F32, comm.raw(), nullptr),
      LACONIC_OK);
  expect_all(of_rank);
  std::vector<float> share(count);
  comm.scatterv<float>(all, parts, share, 0);
  for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(share[i], element(i, comm.rank()), 3 * bound);
  std::fill(all.begin(), all.end(), 42.0F);
  comm.gatherv<float>(x, all, parts, 0);
  if (me == 0) expect_all(of_rank);

  auto blocks = mine(n * (count + gap));
  std::fill(all.begin(), all.end(), 42.0F);
  comm.alltoallv<float>(blocks, parts, all, parts);
  expect_all([&](std::size_t r, std::size_t i) { return element(displs[me] + i, static_cast<int>(r)); });

  EXPECT_THROW(comm.allgatherv<float>(x, std::span(all).first(count), parts), laconic::Error);
  std::vector<std::size_t> same(n, 0);
  if (n > 1) {
    EXPECT_EQ(laconic_allgatherv(x.data(), all.data(), counts.data(), same.data(), LACONIC_F32, comm.raw(), nullptr),
              LACONIC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(laconic_last_error()).find("recv: the parts of ranks 0 and 1 overlap"), std::string::npos);
  }
}

TEST_F(ApiMpi, EveryCodecAndFrameworkOrTheReason) {
  const auto x = mine(5000);
  std::vector<float> y(x.size());
  const auto code_of = [&](laconic_codec codec, laconic_framework framework, const char* text) {
    laconic_options o = LACONIC_OPTIONS_INIT;
    o.bound = text;
    o.codec = codec;
    o.framework = framework;
    return laconic_allreduce(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_SUM, comm.raw(), &o);
  };
  const auto expect_sum = [&](double within) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      double sum = 0;
      for (int r = 0; r < comm.size(); ++r) sum += static_cast<double>(element(i, r));
      ASSERT_NEAR(y[i], sum, within);
    }
  };
  for (const auto codec :
       {LACONIC_CODEC_DEFAULT, LACONIC_SLICE, LACONIC_SZX, LACONIC_FZLIGHT, LACONIC_ZFP, LACONIC_LZ4, LACONIC_ZSTD}) {
    for (const auto framework : {LACONIC_FRAMEWORK_DEFAULT, LACONIC_STEPWISE, LACONIC_POINT_TO_POINT}) {
      SCOPED_TRACE("codec " + std::to_string(codec) + ", framework " + std::to_string(framework));
      const int code = code_of(codec, framework, "1e-3");
      if (code == LACONIC_UNSUPPORTED) {
        EXPECT_NE(std::string(laconic_last_error()).find("built"), std::string::npos) << laconic_last_error();
        continue;
      }
      ASSERT_EQ(code, LACONIC_OK) << laconic_last_error();
      expect_sum(1.1e-3);
      const bool free = codec <= LACONIC_SLICE && framework == LACONIC_FRAMEWORK_DEFAULT;
      EXPECT_TRUE(free || comm.last().plain_calls == 0);
    }
  }
  const auto expect_refused = [&](int code, int wanted, const char* words) {
    EXPECT_EQ(code, wanted);
    EXPECT_NE(std::string(laconic_last_error()).find(words), std::string::npos) << laconic_last_error();
  };
  expect_refused(code_of(LACONIC_SZX, LACONIC_ON_GRID, "1e-3"), LACONIC_UNSUPPORTED, "cannot add compressed arrays");
  expect_refused(code_of(LACONIC_SLICE, LACONIC_ON_GRID, "10x"), LACONIC_UNSUPPORTED, "ratio");
  expect_refused(code_of(static_cast<laconic_codec>(99), LACONIC_STEPWISE, "1e-3"), LACONIC_INVALID_ARGUMENT,
                 "options.codec is 99");
  expect_refused(code_of(LACONIC_SLICE, static_cast<laconic_framework>(-1), "1e-3"), LACONIC_INVALID_ARGUMENT,
                 "options.framework is -1");
  laconic::Comm other(make(), {.bound = "1e-3", .codec = laconic::Codec::fzlight});
  other.allreduce<float>(x, y, laconic::Op::sum);
  expect_sum(1.1e-3);
}

TEST_F(ApiMpi, ProductsGoStepByStep) {
  const auto n = static_cast<std::size_t>(comm.size());
  constexpr std::size_t count = 3000;
  const float mine_is = 1.0F + static_cast<float>(comm.rank()) / 2;
  double all = 1, so_far = 1;
  for (int r = 0; r < comm.size(); ++r) {
    all *= 1 + r / 2.0;
    if (r <= comm.rank()) so_far = all;
  }
  const std::vector<float> x(count * n, mine_is);
  std::vector<float> y(x.size());
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.mode = LACONIC_MODE_COMPRESSED;
  for (const auto framework : {LACONIC_FRAMEWORK_DEFAULT, LACONIC_STEPWISE}) {
    o.framework = framework;
    for (const char* const text : {"lossless", "operand:1e-5"}) {
      SCOPED_TRACE(text);
      o.bound = text;
      const double within = o.bound[0] == 'l' ? 1e-6 : 1e-3;
      const auto expect = [&](int code, std::size_t elements, double product) {
        ASSERT_EQ(code, LACONIC_OK) << laconic_last_error();
        for (std::size_t i = 0; i < elements; ++i) ASSERT_NEAR(y[i], product, within);
      };
      laconic_comm* k = comm.raw();
      expect(laconic_allreduce(x.data(), y.data(), count, LACONIC_F32, LACONIC_PRODUCT, k, &o), count, all);
      expect(laconic_scan(x.data(), y.data(), count, LACONIC_F32, LACONIC_PRODUCT, k, &o), count, so_far);
      expect(laconic_reduce_scatter_block(x.data(), y.data(), count, LACONIC_F32, LACONIC_PRODUCT, k, &o), count, all);
    }
  }
  const auto expect_unsupported = [&](const char* words) {
    EXPECT_EQ(laconic_allreduce(x.data(), y.data(), count, LACONIC_F32, LACONIC_PRODUCT, comm.raw(), &o),
              LACONIC_UNSUPPORTED);
    EXPECT_NE(std::string(laconic_last_error()).find(words), std::string::npos) << laconic_last_error();
  };
  o.bound = "1e-3";
  expect_unsupported("state a bound for each of them");
  o.framework = LACONIC_ON_GRID;
  o.bound = "lossless";
  expect_unsupported("take the framework stepwise");
  std::vector<std::int32_t> numbers(count, 3);
  comm.allreduce<std::int32_t>(numbers, laconic::Op::product);
  EXPECT_EQ(numbers, std::vector<std::int32_t>(count, static_cast<std::int32_t>(std::lround(std::pow(3, n)))));
}

TEST_F(ApiMpi, MessagesBetweenTwo) {
  const int n = comm.size();
  const int from = (comm.rank() + n - 1) % n;
  const auto x = mine(300000);
  std::vector<float> y(x.size() + 1);
  ASSERT_EQ(comm.sendrecv<float>(x, (comm.rank() + 1) % n, y, from, 5), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], element(i, from), bound);
  if (n == 1) return;
  laconic_options wrong = LACONIC_OPTIONS_INIT;
  wrong.bound = "nonsense";
  if (comm.rank() == 0) {
    comm.send<float>(x, 1);
    EXPECT_EQ(laconic_send(x.data(), 10, LACONIC_F32, 1, 0, comm.raw(), &wrong), LACONIC_INVALID_ARGUMENT);
  } else if (comm.rank() == 1) {
    ASSERT_EQ(comm.recv<float>(y, 0), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], element(i, 0), bound);
    EXPECT_EQ(laconic_recv(y.data(), 10, LACONIC_F32, 0, 0, nullptr, comm.raw(), nullptr), LACONIC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(laconic_last_error()).find("nonsense"), std::string::npos) << laconic_last_error();
  }
}

TEST_F(ApiMpi, NonBlockingCallsWhileOthersRun) {
  comm.set_options({.bound = "1e-3", .mode = laconic::Mode::compressed});
  const auto x = mine(200000);
  std::vector<float> sums(x.size()), again(x.size()), all(x.size() * static_cast<std::size_t>(comm.size()));
  auto moved = x;
  const auto calls = comm.total().calls;
  laconic::Request a = comm.iallreduce<float>(x, sums, laconic::Op::sum);
  laconic::Request b = comm.ibcast<float>(moved, comm.size() - 1);
  laconic::Request c = comm.iallgather<float>(x, all);
  comm.allreduce<float>(x, again, laconic::Op::sum);
  MPI_Barrier(MPI_COMM_WORLD);
  while (!c.test()) MPI_Barrier(MPI_COMM_SELF);
  a.wait();
  b.wait();
  EXPECT_TRUE(a.test());
  EXPECT_EQ(comm.total().calls, calls + 4);
  EXPECT_EQ(sums, again);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(moved[i], element(i, comm.size() - 1), bound);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_NEAR(all[i], element(i % x.size(), static_cast<int>(i / x.size())), bound);
  }
}

// Each rank with all, itself too, received in another order than sent; calls that block, and collectives, meanwhile.
TEST_F(ApiMpi, NonBlockingMessages) {
  const int n = comm.size(), me = comm.rank();
  const auto x = mine(200000);
  const std::span<const float> sent(x);
  const auto calls = comm.total().calls;
  std::vector<std::vector<float>> got(static_cast<std::size_t>(n), std::vector<float>(x.size() + 1));
  std::vector<std::size_t> counts(static_cast<std::size_t>(n));
  std::vector<laconic::Request> requests;
  for (int r = 0; r < n; ++r) requests.push_back(comm.irecv<float>(got[std::size_t(r)], r, 4, &counts[std::size_t(r)]));
  for (int r = n - 1; r >= 0; --r) requests.push_back(comm.isend<float>(sent.first(x.size() - unsigned(r)), r, 4));
  std::vector<float> y(x.size()), z(x.size()), sums(x.size());
  const int to = (me + 1) % n, from = (me + n - 1) % n;
  ASSERT_EQ(comm.sendrecv<float>(x, to, y, from, 5), x.size());
  comm.allreduce<float>(x, sums, laconic::Op::sum);
  std::size_t count = 0;
  laconic::Request both = comm.isendrecv<float>(x, from, z, to, 5, &count);
  while (!both.test()) MPI_Barrier(MPI_COMM_SELF);
  EXPECT_EQ(count, x.size());
  laconic::wait_all(requests);
  EXPECT_EQ(comm.total().calls, calls + 2 * unsigned(n) + 3);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(y[i], element(i, from), bound);
    ASSERT_NEAR(z[i], element(i, to), bound);
    ASSERT_NEAR(sums[i], sum(i), bound);
  }
  for (int r = 0; r < n; ++r) {
    const auto& its = got[std::size_t(r)];
    ASSERT_EQ(counts[std::size_t(r)], x.size() - unsigned(me));
    for (std::size_t i = 0; i < x.size() - unsigned(me); ++i) ASSERT_NEAR(its[i], element(i, r), bound);
    EXPECT_EQ(its.back(), 0);
  }
}

// Whichever of them block, those of one tag arrive in the order of the calls.
TEST_F(ApiMpi, MessagesOfOneTagKeepTheirOrder) {
  if (comm.size() == 1) return;
  constexpr std::size_t messages = 12;
  std::vector<std::vector<float>> x, y(messages, std::vector<float>(20000));
  for (std::size_t i = 0; i < messages; ++i) x.emplace_back(20000, static_cast<float>(i));
  std::vector<laconic::Request> requests;
  for (std::size_t i = 0; i < messages; ++i) {
    if (comm.rank() == 0) {
      if (i % 3 == 2) comm.send<float>(x[i], 1, 6);
      if (i % 3 != 2) requests.push_back(comm.isend<float>(x[i], 1, 6));
    } else if (comm.rank() == 1) {
      if (i % 4 == 3) comm.recv<float>(y[i], 0, 6);
      if (i % 4 != 3) requests.push_back(comm.irecv<float>(y[i], 0, 6));
    }
  }
  laconic::wait_all(requests);
  for (std::size_t i = 0; comm.rank() == 1 && i < messages; ++i) ASSERT_NEAR(y[i][19999], x[i][0], bound);
}

TEST_F(ApiMpi, NonBlockingMessagesThatCannotBe) {
  const int n = comm.size(), to = (comm.rank() + 1) % n, from = (comm.rank() + n - 1) % n;
  const auto x = mine(1000);
  std::vector<float> y(x.size());
  laconic_comm* const raw = comm.raw();
  const auto expect = [](int code, int wanted, const char* words) {
    EXPECT_EQ(code, wanted);
    EXPECT_NE(std::string(laconic_last_error()).find(words), std::string::npos) << laconic_last_error();
  };
  laconic_request* request = nullptr;
  expect(laconic_isend(x.data(), 1000, LACONIC_F32, 0, 0, nullptr, nullptr, &request), LACONIC_INVALID_ARGUMENT,
         "comm");
  const auto refused = [&](int dest, int tag, const char* bound_text, const char* words) {
    laconic_options o = LACONIC_OPTIONS_INIT;
    o.bound = bound_text;
    ASSERT_EQ(laconic_isend(x.data(), 1000, LACONIC_F32, dest, tag, raw, &o, &request), LACONIC_OK);
    expect(laconic_wait(&request), LACONIC_INVALID_ARGUMENT, words);
    EXPECT_EQ(request, nullptr);
  };
  refused(n, 0, "1e-3", "want a rank below");
  refused(0, -1, "1e-3", "tag -1");
  // Others hear, and the next message is not taken for this one.
  laconic::Request in = comm.irecv<float>(y, from);
  refused(to, 0, "nonsense", "nonsense");
  EXPECT_THROW(in.wait(), laconic::Error);
  if (n > 1) in = comm.irecv<float>(y, from);  // oneself hears nothing but the error
  expect(laconic_isend(x.data(), 1000, LACONIC_F32, to, 0, raw, nullptr, nullptr), LACONIC_INVALID_ARGUMENT,
         "request is null");
  if (n == 1) {
    expect(laconic_irecv(y.data(), 1000, LACONIC_F32, 0, 0, nullptr, raw, nullptr, nullptr), LACONIC_INVALID_ARGUMENT,
           "request is null");
  } else {
    EXPECT_THROW(in.wait(), laconic::Error);
  }
  in = comm.irecv<float>(y, from);
  laconic::Request out = comm.isend<float>(laconic::in_place, to);
  EXPECT_THROW(out.wait(), laconic::Error);
  EXPECT_THROW(in.wait(), laconic::Error);
  in = comm.irecv<float>(y, from);
  comm.isend<float>(x, to).wait();
  in.wait();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], element(i, from), bound);
}

TEST_F(ApiMpi, EveryNonBlockingCallDoesWhatItsBlockingTwinDoes) {
  comm.set_options({.bound = "1e-3", .mode = laconic::Mode::compressed});
  const auto n = static_cast<std::size_t>(comm.size());
  const std::size_t count = 1000;
  const int root = 0;
  const auto x = mine(count * n);
  const std::vector<std::size_t> counts(n, count);
  using Floats = std::vector<float>;
  const auto same = [&](auto&& blocking, auto&& later) {
    Floats y(count * n), z(count * n);
    laconic_request* request = nullptr;
    EXPECT_EQ(blocking(y.data()), LACONIC_OK) << laconic_last_error();
    EXPECT_EQ(later(z.data(), &request), LACONIC_OK) << laconic_last_error();
    EXPECT_NE(request, nullptr);
    EXPECT_EQ(laconic_wait(&request), LACONIC_OK) << laconic_last_error();
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(y, z);
  };
  laconic_comm* k = comm.raw();
  using P = float*;
  using R = laconic_request**;
  const float* s = x.data();
  const std::size_t* v = counts.data();
  constexpr auto f = LACONIC_F32;
  constexpr auto sum = LACONIC_SUM;
  same([&](P y) { return laconic_reduce(s, y, count, f, sum, root, k, nullptr); },
       [&](P y, R r) { return laconic_ireduce(s, y, count, f, sum, root, k, nullptr, r); });
  same([&](P y) { return laconic_scan(s, y, count, f, sum, k, nullptr); },
       [&](P y, R r) { return laconic_iscan(s, y, count, f, sum, k, nullptr, r); });
  same([&](P y) { return laconic_exscan(s, y, count, f, sum, k, nullptr); },
       [&](P y, R r) { return laconic_iexscan(s, y, count, f, sum, k, nullptr, r); });
  same([&](P y) { return laconic_reduce_scatter(s, y, v, f, sum, k, nullptr); },
       [&](P y, R r) { return laconic_ireduce_scatter(s, y, v, f, sum, k, nullptr, r); });
  same([&](P y) { return laconic_reduce_scatter_block(s, y, count, f, sum, k, nullptr); },
       [&](P y, R r) { return laconic_ireduce_scatter_block(s, y, count, f, sum, k, nullptr, r); });
  same([&](P y) { return laconic_scatter(s, y, count, f, root, k, nullptr); },
       [&](P y, R r) { return laconic_iscatter(s, y, count, f, root, k, nullptr, r); });
  same([&](P y) { return laconic_scatterv(s, v, nullptr, y, count, f, root, k, nullptr); },
       [&](P y, R r) { return laconic_iscatterv(s, v, nullptr, y, count, f, root, k, nullptr, r); });
  same([&](P y) { return laconic_gather(s, count, y, f, root, k, nullptr); },
       [&](P y, R r) { return laconic_igather(s, count, y, f, root, k, nullptr, r); });
  same([&](P y) { return laconic_gatherv(s, count, y, v, nullptr, f, root, k, nullptr); },
       [&](P y, R r) { return laconic_igatherv(s, count, y, v, nullptr, f, root, k, nullptr, r); });
  same([&](P y) { return laconic_allgatherv(s, y, v, nullptr, f, k, nullptr); },
       [&](P y, R r) { return laconic_iallgatherv(s, y, v, nullptr, f, k, nullptr, r); });
  same([&](P y) { return laconic_alltoall(s, y, count, f, k, nullptr); },
       [&](P y, R r) { return laconic_ialltoall(s, y, count, f, k, nullptr, r); });
  same([&](P y) { return laconic_alltoallv(s, v, nullptr, y, v, nullptr, f, k, nullptr); },
       [&](P y, R r) { return laconic_ialltoallv(s, v, nullptr, y, v, nullptr, f, k, nullptr, r); });
}

TEST_F(ApiMpi, ANonBlockingCallThatFailsSaysSoWhenItIsWaitedFor) {
  std::vector<float> x(100), y(100);
  laconic_options wrong = LACONIC_OPTIONS_INIT;
  wrong.bound = "nonsense";
  laconic_request* request = nullptr;
  ASSERT_EQ(laconic_iallreduce(x.data(), y.data(), 100, LACONIC_F32, LACONIC_SUM, comm.raw(),
                               comm.rank() == 0 ? &wrong : nullptr, &request),
            LACONIC_OK);
  EXPECT_EQ(laconic_wait(&request), LACONIC_INVALID_ARGUMENT);
  EXPECT_EQ(request, nullptr);
  EXPECT_NE(std::string(laconic_last_error()).find("nonsense"), std::string::npos) << laconic_last_error();
  int done = 0;
  EXPECT_EQ(laconic_test(&request, &done), LACONIC_OK);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(laconic_ibcast(x.data(), 100, LACONIC_F32, 0, comm.raw(), nullptr, nullptr), LACONIC_INVALID_ARGUMENT);
  EXPECT_EQ(laconic_wait(nullptr), LACONIC_INVALID_ARGUMENT);
}

TEST_F(ApiMpi, VerificationTellsTheAchievedError) {
  auto x = mine(70001);
  const auto count = x.size() * static_cast<std::size_t>(comm.size());
  comm.set_options({.bound = "1e-3", .verify = comm.rank() == 0});  // one that asks is enough
  x = mine(x.size());
  comm.allreduce<float>(x, laconic::Op::sum);
  float largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - sum(i)));
  EXPECT_NEAR(comm.last().achieved_error, largest, 1e-5);
  EXPECT_EQ(comm.last().verified, count);

  std::vector<float> all(count);
  laconic::Request request = comm.iallgather<float>(x, all);
  request.wait();
  EXPECT_EQ(comm.last().verified, count * static_cast<std::size_t>(comm.size()));
  EXPECT_LE(comm.last().achieved_error, 1e-3);

  laconic_options off = LACONIC_OPTIONS_INIT;
  off.verify = -1;
  ASSERT_EQ(laconic_bcast(x.data(), x.size(), LACONIC_F32, 0, comm.raw(), &off), LACONIC_OK);
  EXPECT_EQ(comm.last().verified, 0U);
}

/// MPICH's own reduction has the part behind a rank's share as its room.
TEST_F(ApiMpi, AReductionThatIsLeftToMpiAndSpoilsItsOperandIsVerified) {
  const std::size_t n = 70000;
  const auto noise = [](int rank, std::size_t i) {
    const std::uint64_t bits = (i * 2654435761U + static_cast<std::size_t>(rank) * 40503U + 1) * 0x9E3779B97F4A7C15U;
    return static_cast<float>(bits >> 40) * 0x1p-24F - 0.5F;
  };
  const auto rank = static_cast<std::size_t>(comm.rank());
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.bound = "1e-7";  // not worth compressing
  o.verify = 1;
  std::vector<std::size_t> shares(static_cast<std::size_t>(comm.size()), n);
  for (int call = 0; call < 8; ++call) {
    shares[0] = call < 4 ? n : 0;  // whose share is nothing may lose its operand all the same
    const std::size_t first = rank == 0 ? 0 : shares[0] + n * (rank - 1);
    std::vector<float> x(shares[0] + n * (shares.size() - 1));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = noise(comm.rank(), i);
    ASSERT_EQ(
        laconic_reduce_scatter(LACONIC_IN_PLACE, x.data(), shares.data(), LACONIC_F32, LACONIC_SUM, comm.raw(), &o),
        LACONIC_OK)
        << laconic_last_error();
    EXPECT_EQ(comm.last().verified, x.size());
    for (std::size_t i = 0; i < shares[rank]; ++i) {
      double exact = 0;
      for (int r = 0; r < comm.size(); ++r) exact += static_cast<double>(noise(r, first + i));
      ASSERT_NEAR(x[i], exact, 1e-6) << i;
    }
  }
}

TEST_F(ApiMpi, TheEnvironmentAsksForVerification) {
  const char* asked = std::getenv("LACONIC_VERIFY");
  const bool verify = asked != nullptr && std::string(asked) == "1";
  auto x = mine(3000);
  comm.allreduce<float>(x, laconic::Op::average);
  EXPECT_EQ(comm.last().verified, verify ? x.size() * static_cast<std::size_t>(comm.size()) : 0U);
  EXPECT_EQ(std::isnan(comm.last().achieved_error), !verify);
}

TEST_F(ApiMpi, StatisticsOfAnOlderHeader) {
  laconic_stats old{};
  old.struct_size = offsetof(laconic_stats, achieved_error);
  old.achieved_error = 42;
  ASSERT_EQ(laconic_comm_last(comm.raw(), &old), LACONIC_OK);
  EXPECT_EQ(old.achieved_error, 42);
  old.struct_size -= 1;
  EXPECT_EQ(laconic_comm_last(comm.raw(), &old), LACONIC_INVALID_ARGUMENT);
}

TEST_F(ApiMpi, ABoundThatOneRankMisspellsIsAnErrorOnAll) {
  const auto x = mine(100);
  std::vector<float> y(x.size());
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.bound = comm.rank() == comm.size() - 1 ? "1e-3xyz" : "1e-3";
  EXPECT_EQ(laconic_allreduce(x.data(), y.data(), x.size(), LACONIC_F32, LACONIC_SUM, comm.raw(), &o),
            LACONIC_INVALID_ARGUMENT);
  const std::string text = laconic_last_error();
  EXPECT_NE(text.find("rank " + std::to_string(comm.size() - 1)), std::string::npos) << text;
  EXPECT_NE(text.find("1e-3xyz"), std::string::npos) << text;
  EXPECT_EQ(
      laconic_allreduce(x.data(), y.data(), x.size(), LACONIC_F32, static_cast<laconic_op>(9), comm.raw(), nullptr),
      LACONIC_UNSUPPORTED);
  EXPECT_EQ(
      laconic_allreduce(x.data(), y.data(), x.size(), static_cast<laconic_dtype>(9), LACONIC_SUM, comm.raw(), nullptr),
      LACONIC_INVALID_ARGUMENT);
  EXPECT_EQ(laconic_reduce_scatter(x.data(), y.data(), nullptr, LACONIC_F32, LACONIC_SUM, comm.raw(), nullptr),
            LACONIC_INVALID_ARGUMENT);
  EXPECT_NO_THROW(comm.allreduce<float>(x, y, laconic::Op::sum));
}

TEST_F(ApiMpi, NoCommunicatorFromNothing) {
  laconic_comm* raw = comm.raw();
  EXPECT_EQ(laconic_comm_from_mpi(MPI_COMM_NULL, &raw), LACONIC_INVALID_ARGUMENT);
  EXPECT_EQ(raw, nullptr);
  EXPECT_EQ(laconic_comm_from_mpi(MPI_COMM_WORLD, nullptr), LACONIC_INVALID_ARGUMENT);
}

TEST_F(ApiMpi, NoCommunicatorBetweenGroups) {
  if (comm.size() == 1) GTEST_SKIP() << "two groups need two ranks";
  const int group = comm.rank() % 2;
  MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, group, comm.rank(), &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - group, 1, &between);
  laconic_comm* raw = comm.raw();
  EXPECT_EQ(laconic_comm_from_mpi(between, &raw), LACONIC_INVALID_ARGUMENT);
  EXPECT_EQ(raw, nullptr);
  EXPECT_NE(std::string(laconic_last_error()).find("intercommunicator"), std::string::npos) << laconic_last_error();
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

TEST(ApiHeader, WorksInC) { EXPECT_EQ(api_header_in_c(), 0); }

}  // namespace
