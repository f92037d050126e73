// The C and C++ interfaces' collectives over real MPI ranks.
#include <gtest/gtest.h>
#include <laconic/laconic_mpi.h>

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

TEST_F(ApiMpi, ReduceScatterInAndOutOfPlace) {
  const auto n = static_cast<std::size_t>(comm.size());
  const auto me = static_cast<std::size_t>(comm.rank());
  constexpr std::size_t share = 3000;
  auto x = mine(share * n);
  std::vector<float> y(share);
  comm.reduce_scatter<float>(x, y, laconic::Op::sum);
  for (std::size_t i = 0; i < share; ++i) ASSERT_NEAR(y[i], sum(me * share + i), bound);
  const std::vector<std::size_t> counts(n, share);
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
  ASSERT_EQ(laconic_allgatherv(LACONIC_IN_PLACE, z.data(), counts.data(), LACONIC_F32, comm.raw(), nullptr),
            LACONIC_OK);
  std::size_t at = 0;
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(y[r * count + i], element(i, static_cast<int>(r)), bound);
    for (std::size_t i = 0; i < counts[r]; ++i) ASSERT_NEAR(z[at++], element(i, static_cast<int>(r)), bound);
  }
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

TEST(ApiHeader, WorksInC) { EXPECT_EQ(api_header_in_c(), 0); }

}  // namespace
