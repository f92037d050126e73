// The C interface on arrays in the memory of (fake) GPUs, over the fake NCCL.
#include <gtest/gtest.h>
#include <laconic/laconic_nccl.h>

#include <barrier>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gpu/emulated_device.h"
#include "support/fake_cuda.h"
#include "support/nccl_world.h"

namespace {

constexpr std::size_t count = 30011;
constexpr float bound = 1e-3F;

float element(int rank, std::size_t i) { return std::sin(static_cast<float>(i) * 0.002F) + static_cast<float>(rank); }

float sum(int ranks, std::size_t i) {
  float s = 0;
  for (int r = 0; r < ranks; ++r) s += element(r, i);
  return s;
}

/// One rank's stream, and floats in its device's memory.
class Gpu {
 public:
  Gpu() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~Gpu() {
    for (float* a : arrays_) cudaFree(a);
    cudaStreamDestroy(stream_);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  float* place(const std::vector<float>& x) {
    void* data = nullptr;
    cudaMalloc(&data, x.size() * sizeof(float));
    cudaMemcpy(data, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice);
    arrays_.push_back(static_cast<float*>(data));
    return arrays_.back();
  }
  float* mine(int rank, std::size_t n = count) {
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = element(rank, i);
    return place(x);
  }
  float* room(std::size_t n = count) { return place(std::vector<float>(n, -1.0F)); }
  static std::vector<float> contents(const float* data, std::size_t n = count) {
    std::vector<float> x(n);
    cudaMemcpy(x.data(), data, n * sizeof(float), cudaMemcpyDeviceToHost);
    return x;
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<float*> arrays_;
};

laconic_options within(const char* b) {
  laconic_options o = LACONIC_OPTIONS_INIT;
  o.bound = b;
  o.mode = LACONIC_MODE_COMPRESSED;
  return o;
}

void expect_near(const std::vector<float>& got, const std::function<float(std::size_t)>& expected, const char* what) {
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected(i), 1.01F * bound) << what << ", " << i;
}

/// Left to NCCL, which scales before it adds: a sum of these would be infinite.
TEST(ApiNccl, AveragesOfLargeValuesStayWithinTheType) {
  laconic_options options = within("1e-3");
  options.mode = LACONIC_MODE_PLAIN;
  laconic::test::over_nccl_communicators(2, [&](int rank, ncclComm_t comm) {
    Gpu gpu;
    const float* const x = gpu.place(std::vector<float>(2 * count, 2.5e38F));
    float* const y = gpu.room();
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(laconic_nccl_allreduce(x, y, count, ncclFloat32, ncclAvg, comm, gpu.stream(), &options), LACONIC_OK);
      EXPECT_EQ(Gpu::contents(y), std::vector<float>(count, 2.5e38F));
      ASSERT_EQ(laconic_nccl_reduce(x, y, count, ncclFloat32, ncclAvg, 0, comm, gpu.stream(), &options), LACONIC_OK);
      if (rank == 0) {
        EXPECT_EQ(Gpu::contents(y), std::vector<float>(count, 2.5e38F));
      }
      ASSERT_EQ(laconic_nccl_reduce_scatter(x, y, count, ncclFloat32, ncclAvg, comm, gpu.stream(), &options),
                LACONIC_OK);
      EXPECT_EQ(Gpu::contents(y), std::vector<float>(count, 2.5e38F));
    }
    laconic_stats stats{};
    stats.struct_size = sizeof stats;
    ASSERT_EQ(laconic_nccl_total(comm, &stats), LACONIC_OK);
    EXPECT_EQ(stats.plain_calls, 6U);
    EXPECT_EQ(laconic_nccl_release(comm), LACONIC_OK);
  });
}

TEST(ApiNccl, FunctionsAsNcclHasThem) {
  const laconic_options options = within("1e-3");
  for (const int ranks : {1, 2, 3}) {
    laconic::test::over_nccl_communicators(ranks, [&](int rank, ncclComm_t comm) {
      Gpu gpu;
      const auto all = [&](std::size_t i) { return sum(ranks, i); };
      const float* const x = gpu.mine(rank);
      float* const y = gpu.room();
      const cudaStream_t stream = gpu.stream();
      ASSERT_EQ(laconic_nccl_allreduce(x, y, count, ncclFloat32, ncclSum, comm, stream, &options), LACONIC_OK)
          << laconic_last_error();
      expect_near(Gpu::contents(y), all, "allreduce");
      ASSERT_EQ(laconic_nccl_allreduce(x, y, count, ncclFloat32, ncclAvg, comm, stream, &options), LACONIC_OK);
      expect_near(
          Gpu::contents(y), [&](std::size_t i) { return sum(ranks, i) / static_cast<float>(ranks); }, "average");
      ASSERT_EQ(laconic_nccl_reduce(x, rank == 0 ? y : nullptr, count, ncclFloat32, ncclMax, 0, comm, stream, &options),
                LACONIC_OK);
      if (rank == 0) {
        expect_near(Gpu::contents(y), [&](std::size_t i) { return element(ranks - 1, i); }, "maximum");
      }
      ASSERT_EQ(laconic_nccl_broadcast(x, y, count, ncclFloat32, ranks - 1, comm, stream, &options), LACONIC_OK);
      expect_near(Gpu::contents(y), [&](std::size_t i) { return element(ranks - 1, i); }, "broadcast");
      const auto n = static_cast<std::size_t>(ranks);
      float* const gathered = gpu.room(count * n);
      ASSERT_EQ(laconic_nccl_allgather(x, gathered, count, ncclFloat32, comm, stream, &options), LACONIC_OK);
      expect_near(
          Gpu::contents(gathered, count * n),
          [&](std::size_t i) { return element(static_cast<int>(i / count), i % count); }, "allgather");
      float* const scattered = gpu.mine(rank, count * n);
      float* const own = scattered + static_cast<std::size_t>(rank) * count;
      ASSERT_EQ(laconic_nccl_reduce_scatter(scattered, own, count, ncclFloat32, ncclSum, comm, stream, &options),
                LACONIC_OK)
          << laconic_last_error();
      expect_near(
          Gpu::contents(own), [&](std::size_t i) { return all(static_cast<std::size_t>(rank) * count + i); },
          "reduce_scatter");
      laconic_stats stats{};
      stats.struct_size = sizeof stats;
      ASSERT_EQ(laconic_nccl_total(comm, &stats), LACONIC_OK);
      EXPECT_EQ(stats.calls, 6U);
      if (ranks > 1) {
        EXPECT_LT(stats.wire_bytes, stats.original_bytes / 2);
      }
      ASSERT_EQ(laconic_nccl_last(comm, &stats), LACONIC_OK);
      EXPECT_EQ(laconic_nccl_release(comm), LACONIC_OK);
      EXPECT_EQ(laconic_nccl_release(comm), LACONIC_OK);  // nothing is left
      EXPECT_EQ(laconic_nccl_last(comm, &stats), LACONIC_INVALID_ARGUMENT);
    });
  }
}

TEST(ApiNccl, ACommunicatorForTheOtherCalls) {
  const laconic_options options = within("1e-3");
  laconic::test::over_nccl_communicators(3, [&](int rank, ncclComm_t nccl) {
    Gpu gpu;
    laconic_comm* comm = nullptr;
    ASSERT_EQ(laconic_comm_from_nccl(nccl, gpu.stream(), &comm), LACONIC_OK) << laconic_last_error();
    EXPECT_EQ(laconic_comm_rank(comm), rank);
    EXPECT_EQ(laconic_comm_size(comm), 3);
    float* const x = gpu.mine(rank);
    float* const y = gpu.room();
    ASSERT_EQ(laconic_scan(x, y, count, LACONIC_F32, LACONIC_SUM, comm, &options), LACONIC_OK) << laconic_last_error();
    expect_near(Gpu::contents(y), [&](std::size_t i) { return sum(rank + 1, i); }, "scan");
    ASSERT_EQ(laconic_alltoall(x, y, count / 3, LACONIC_F32, comm, &options), LACONIC_OK) << laconic_last_error();
    expect_near(
        Gpu::contents(y, count / 3),
        [&](std::size_t i) { return element(0, static_cast<std::size_t>(rank) * (count / 3) + i); }, "alltoall");
    ASSERT_EQ(laconic_allreduce(LACONIC_IN_PLACE, x, count, LACONIC_F32, LACONIC_SUM, comm, &options), LACONIC_OK);
    expect_near(Gpu::contents(x), [](std::size_t i) { return sum(3, i); }, "allreduce");
    // All ranks are on one host, so everything passes as it is, from device to device.
    float* const own = gpu.mine(rank);
    laconic_options two_levels = options;
    two_levels.schedule = LACONIC_TWO_LEVEL;
    ASSERT_EQ(laconic_allreduce(own, y, count, LACONIC_F32, LACONIC_SUM, comm, &two_levels), LACONIC_OK);
    expect_near(Gpu::contents(y), [](std::size_t i) { return sum(3, i); }, "allreduce on two levels");
    // Another stream, and a plain call on it.
    Gpu other;
    ASSERT_EQ(laconic_comm_use_device(comm, other.stream()), LACONIC_OK);
    laconic_options plain = LACONIC_OPTIONS_INIT;
    plain.mode = LACONIC_MODE_PLAIN;
    float* const z = other.mine(rank);
    ASSERT_EQ(laconic_allreduce(z, y, count, LACONIC_F32, LACONIC_SUM, comm, &plain), LACONIC_OK);
    expect_near(Gpu::contents(y), [](std::size_t i) { return sum(3, i); }, "plain allreduce");
    laconic_comm_free(comm);
  });
}

/// Puts a rank's elements there when the stream comes to it.
void enqueue(const std::vector<float>& x, float* there, cudaStream_t stream) {
  ASSERT_EQ(cudaMemcpyAsync(there, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice, stream), cudaSuccess);
}

TEST(ApiNccl, NonBlockingCallsComeAfterWhatTheirStreamHas) {
  for (const char* b : {"1e-3", "lossless"}) {  // coded on the device; and on the host
    const laconic_options options = within(b);
    laconic::test::over_nccl_communicators(3, [&](int rank, ncclComm_t nccl) {
      Gpu gpu, other;
      laconic_comm* comm = nullptr;
      ASSERT_EQ(laconic_comm_from_nccl(nccl, gpu.stream(), &comm), LACONIC_OK) << laconic_last_error();
      const std::vector<float> here = Gpu::contents(gpu.mine(rank));
      float *const late = gpu.room(), *const y = gpu.room(), *const z = gpu.mine(rank), *const blocked = gpu.mine(rank);
      laconic_request *added = nullptr, *sent = nullptr, *scattered = nullptr;
      enqueue(here, late, gpu.stream());
      ASSERT_EQ(laconic_iallreduce(late, y, count, LACONIC_F32, LACONIC_SUM, comm, &options, &added), LACONIC_OK)
          << laconic_last_error();
      ASSERT_EQ(laconic_ibcast(z, count, LACONIC_F32, 1, comm, &options, &sent), LACONIC_OK) << laconic_last_error();
      ASSERT_EQ(laconic_comm_use_device(comm, other.stream()), LACONIC_OK);
      ASSERT_EQ(laconic_scan(LACONIC_IN_PLACE, blocked, count, LACONIC_F32, LACONIC_SUM, comm, &options), LACONIC_OK)
          << laconic_last_error();
      expect_near(Gpu::contents(blocked), [&](std::size_t i) { return sum(rank + 1, i); }, "scan meanwhile");
      ASSERT_EQ(laconic_wait(&sent), LACONIC_OK) << laconic_last_error();
      expect_near(Gpu::contents(z), [](std::size_t i) { return element(1, i); }, "bcast");
      ASSERT_EQ(laconic_wait(&added), LACONIC_OK) << laconic_last_error();
      expect_near(Gpu::contents(y), [](std::size_t i) { return sum(3, i); }, "allreduce");

      constexpr std::size_t share = count / 3;
      float* const whole = other.room();
      enqueue(here, whole, other.stream());
      ASSERT_EQ(laconic_ireduce_scatter_block(LACONIC_IN_PLACE, whole, share, LACONIC_F32, LACONIC_SUM, comm, &options,
                                              &scattered),
                LACONIC_OK);
      ASSERT_EQ(laconic_wait(&scattered), LACONIC_OK) << laconic_last_error();
      const std::size_t first = share * static_cast<std::size_t>(rank);
      expect_near(Gpu::contents(whole, share), [&](std::size_t i) { return sum(3, first + i); }, "on another stream");
      laconic_comm_free(comm);
    });
  }
}

TEST(ApiNccl, NonBlockingCallsThatCannotBeAreErrorsOnAllRanks) {
  const laconic_options options = within("1e-3");
  laconic::test::over_nccl_communicators(3, [&](int rank, ncclComm_t nccl) {
    Gpu gpu;
    laconic_comm* comm = nullptr;
    ASSERT_EQ(laconic_comm_from_nccl(nccl, gpu.stream(), &comm), LACONIC_OK) << laconic_last_error();
    const auto call = [&](void* x) {
      laconic_request* request = nullptr;
      EXPECT_EQ(laconic_iallreduce(LACONIC_IN_PLACE, x, count, LACONIC_F32, LACONIC_SUM, comm, &options, &request),
                LACONIC_OK);
      return laconic_wait(&request);
    };
    float* const x = gpu.mine(rank);
    if (rank == 1) laconic::fake::set_capturing(gpu.stream(), true);
    EXPECT_EQ(call(x), LACONIC_UNSUPPORTED);
    EXPECT_NE(std::string(laconic_last_error()).find("rank 1"), std::string::npos) << laconic_last_error();
    if (rank == 1) laconic::fake::set_capturing(gpu.stream(), false);
    std::vector<float> on_host(count);
    EXPECT_EQ(call(rank == 2 ? on_host.data() : x), LACONIC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(laconic_last_error()).find("rank 2"), std::string::npos) << laconic_last_error();
    EXPECT_EQ(call(x), LACONIC_OK) << laconic_last_error();
    expect_near(Gpu::contents(x), [](std::size_t i) { return sum(3, i); }, "allreduce");
    laconic_comm_free(comm);
  });
}

/// NCCL's own way in place works in place: it would be slower than NCCL with memory that is made for each call.
TEST(ApiNccl, ReduceScatterInPlaceByNcclsOwnMakesNoRoom) {
  laconic_options plain = within("1e-3");
  plain.mode = LACONIC_MODE_PLAIN;
  std::barrier together(3);
  laconic::test::over_nccl_communicators(3, [&](int rank, ncclComm_t comm) {
    Gpu gpu;
    const std::size_t before_own = static_cast<std::size_t>(rank) * count;
    float* const x = gpu.mine(rank, 3 * count);
    const auto to = [&](float* y) {
      return laconic_nccl_reduce_scatter(x, y, count, ncclFloat32, ncclSum, comm, gpu.stream(), &plain);
    };
    ASSERT_EQ(to(gpu.room()), LACONIC_OK) << laconic_last_error();  // makes what a communicator needs
    together.arrive_and_wait();
    const laconic::fake::Live live = laconic::fake::live();
    const std::size_t frees = laconic::fake::frees();
    together.arrive_and_wait();
    EXPECT_EQ(to(x + before_own), LACONIC_OK) << laconic_last_error();
    together.arrive_and_wait();
    EXPECT_EQ(laconic::fake::frees(), frees);
    EXPECT_EQ(laconic::fake::live().pinned_allocations, live.pinned_allocations);
    together.arrive_and_wait();
    expect_near(Gpu::contents(x + before_own), [&](std::size_t i) { return sum(3, before_own + i); }, "reduce_scatter");
    EXPECT_EQ(laconic_nccl_release(comm), LACONIC_OK);
  });
}

// As NCCL's own would be: most of them are not waited for.
TEST(ApiNccl, ShortCallsThatGoPlainlyAreLeftOnTheStream) {
  constexpr std::size_t n = 100;
  laconic_options plain = LACONIC_OPTIONS_INIT;
  plain.mode = LACONIC_MODE_PLAIN;
  laconic::test::over_nccl_communicators(2, [&](int rank, ncclComm_t comm) {
    Gpu gpu;
    const float* const x = gpu.mine(rank, n);
    int left = 0;
    for (int i = 0; i < 20; ++i) {
      float* const y = gpu.room(n);
      ASSERT_EQ(laconic_nccl_allreduce(x, y, n, ncclFloat32, ncclSum, comm, gpu.stream(), &plain), LACONIC_OK)
          << laconic_last_error();
      left += Gpu::contents(y, n).front() == -1.0F ? 1 : 0;
      // What follows on the stream finds the result, and the next calls' times are without it.
      if (i % 3 != 0) continue;
      ASSERT_EQ(cudaStreamSynchronize(gpu.stream()), cudaSuccess);
      expect_near(Gpu::contents(y, n), [](std::size_t k) { return sum(2, k); }, "allreduce");
    }
    EXPECT_GT(left, 10);
    for (int i = 0; i < 20; ++i) {  // the root's array lies elsewhere
      float* const y = gpu.room(n);
      ASSERT_EQ(laconic_nccl_broadcast(x, y, n, ncclFloat32, 1, comm, gpu.stream(), &plain), LACONIC_OK)
          << laconic_last_error();
      ASSERT_EQ(cudaStreamSynchronize(gpu.stream()), cudaSuccess);
      expect_near(Gpu::contents(y, n), [](std::size_t k) { return element(1, k); }, "broadcast");
    }
    float* const y = gpu.room(n);
    const laconic_options compressed = within("1e-3");
    ASSERT_EQ(laconic_nccl_allreduce(x, y, n, ncclFloat32, ncclSum, comm, gpu.stream(), &compressed), LACONIC_OK);
    expect_near(Gpu::contents(y, n), [](std::size_t k) { return sum(2, k); }, "compressed allreduce behind them");
    EXPECT_EQ(laconic_nccl_release(comm), LACONIC_OK);
  });
}

TEST(ApiNccl, CapturesOfOtherStreamsGoOn) {
  const laconic_options options = within("1e-3");
  std::barrier together(3);
  cudaStream_t captured = nullptr;
  laconic::test::over_nccl_communicators(3, [&](int rank, ncclComm_t nccl) {
    Gpu gpu;
    float* const x = gpu.mine(rank);
    float* const y = gpu.room();
    together.arrive_and_wait();
    if (rank == 0) {
      ASSERT_EQ(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
      ASSERT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
    }
    together.arrive_and_wait();
    for (const laconic_mode mode : {LACONIC_MODE_COMPRESSED, LACONIC_MODE_PLAIN}) {
      laconic_options o = options;
      o.mode = mode;
      EXPECT_EQ(laconic_nccl_allreduce(x, y, count, ncclFloat32, ncclSum, nccl, gpu.stream(), &o), LACONIC_OK)
          << laconic_last_error();
    }
    EXPECT_EQ(laconic_nccl_release(nccl), LACONIC_OK);
    laconic_comm* comm = nullptr;
    ASSERT_EQ(laconic_comm_from_nccl(nccl, gpu.stream(), &comm), LACONIC_OK) << laconic_last_error();
    EXPECT_EQ(laconic_scan(x, y, count, LACONIC_F32, LACONIC_SUM, comm, &options), LACONIC_OK) << laconic_last_error();
    laconic_comm_free(comm);
    together.arrive_and_wait();
    if (rank == 0) {
      EXPECT_EQ(cudaStreamEndCapture(captured, nullptr), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(captured), cudaSuccess);
    }
    together.arrive_and_wait();
    expect_near(Gpu::contents(y), [&](std::size_t i) { return sum(rank + 1, i); }, "scan");
  });
}

TEST(ApiNccl, AbandoningEndsACallThatWaits) {
  const laconic_options options = within("1e-3");
  laconic::test::over_nccl_communicators(2, [&](int rank, ncclComm_t comm) {
    Gpu gpu;
    const float* const x = gpu.mine(rank);
    float* const y = gpu.room();
    const auto call = [&] {
      return laconic_nccl_allreduce(x, y, count, ncclFloat32, ncclSum, comm, gpu.stream(), &options);
    };
    ASSERT_EQ(call(), LACONIC_OK) << laconic_last_error();
    if (rank == 0) {
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        EXPECT_EQ(laconic_nccl_abandon(comm), LACONIC_OK);
      });
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(call(), LACONIC_TRANSPORT);
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
      other.join();
    } else {
      EXPECT_EQ(laconic_nccl_abandon(comm), LACONIC_OK);
    }
    // With this all begins anew, and what there was is freed.
    ASSERT_EQ(call(), LACONIC_OK) << laconic_last_error();
    expect_near(Gpu::contents(y), [](std::size_t i) { return sum(2, i); }, "allreduce");
    EXPECT_EQ(laconic_nccl_release(comm), LACONIC_OK);
  });
}

using Call = std::function<int(const float* x, float* y, ncclComm_t comm, cudaStream_t stream)>;

/// What waits for a stream on which a call was left waits as that call would have: `behind` comes after one that rank 1
/// does not make.
void expect_abandoning_ends(const Call& behind) {
  constexpr std::size_t n = 100;
  laconic_options plain = LACONIC_OPTIONS_INIT;
  plain.mode = LACONIC_MODE_PLAIN;
  const laconic_options compressed = within("1e-3");
  std::barrier together(2);
  laconic::test::over_nccl_communicators(2, [&](int rank, ncclComm_t comm) {
    Gpu gpu;
    const float* const x = gpu.mine(rank, n);
    float* const y = gpu.room(n);
    const auto call = [&](const laconic_options& options) {
      return laconic_nccl_allreduce(x, y, n, ncclFloat32, ncclSum, comm, gpu.stream(), &options);
    };
    for (int i = 0; i < 5; ++i) ASSERT_EQ(call(plain), LACONIC_OK) << laconic_last_error();
    if (rank == 0) {
      ASSERT_EQ(call(plain), LACONIC_OK) << "is not left, and rank 1 does not come";
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        EXPECT_EQ(laconic_nccl_abandon(comm), LACONIC_OK);
      });
      EXPECT_EQ(behind(x, y, comm, gpu.stream()), LACONIC_TRANSPORT);
      other.join();
    } else {
      EXPECT_EQ(laconic_nccl_abandon(comm), LACONIC_OK);
    }
    together.arrive_and_wait();
    if (rank == 1) ncclAllReduce(x, y, n, ncclFloat32, ncclSum, comm, gpu.stream());  // ends it
    EXPECT_EQ(cudaStreamSynchronize(gpu.stream()), cudaSuccess);
    ASSERT_EQ(call(compressed), LACONIC_OK) << laconic_last_error();
    EXPECT_EQ(laconic_nccl_release(comm), LACONIC_OK);
  });
}

TEST(ApiNccl, AbandoningEndsACallBehindOneThatWasLeft) {
  const laconic_options compressed = within("1e-3");
  expect_abandoning_ends([&](const float* x, float* y, ncclComm_t comm, cudaStream_t stream) {
    return laconic_nccl_allreduce(x, y, 100, ncclFloat32, ncclSum, comm, stream, &compressed);
  });
}

/// Whose root has its array elsewhere.
TEST(ApiNccl, AbandoningEndsABroadcastBehindOneThatWasLeft) {
  const laconic_options compressed = within("1e-3");
  expect_abandoning_ends([&](const float*, float* y, ncclComm_t comm, cudaStream_t stream) {
    return laconic_nccl_broadcast(y + 10, y, 90, ncclFloat32, 0, comm, stream, &compressed);
  });
}

TEST(ApiNccl, AGpuThatIsTooOldIsAnErrorOnAllRanks) {
  const laconic_options options = within("1e-3");
  std::barrier together(2);
  laconic::test::let_be_too_old(1);
  laconic::test::over_nccl_communicators(2, [&](int rank, ncclComm_t nccl) {
    Gpu gpu;
    float* const x = gpu.mine(rank);
    const auto call = [&] {
      return laconic_nccl_allreduce(x, x, count, ncclFloat32, ncclSum, nccl, gpu.stream(), &options);
    };
    const auto expect_refused = [&](int code) {
      EXPECT_EQ(code, LACONIC_UNSUPPORTED);
      const std::string error = laconic_last_error();
      EXPECT_NE(error.find(rank == 1 ? "rank 1's GPU cannot run" : "a rank's GPU cannot run"), std::string::npos)
          << error;
      EXPECT_EQ(rank == 1, error.find("cudaErrorNoKernelImageForDevice") != std::string::npos) << error;
    };
    for (int i = 0; i < 2; ++i) expect_refused(call());
    laconic_comm* comm = nullptr;
    expect_refused(laconic_comm_from_nccl(nccl, gpu.stream(), &comm));
    together.arrive_and_wait();
    laconic::test::let_be_too_old(-1);
    together.arrive_and_wait();
    EXPECT_EQ(call(), LACONIC_OK) << laconic_last_error();
    EXPECT_EQ(laconic_nccl_release(nccl), LACONIC_OK);
  });
}

TEST(ApiNccl, WhatIsWrongIsSaid) {
  laconic_options options = within("1e-3");
  laconic::test::over_nccl_communicators(2, [&](int rank, ncclComm_t nccl) {
    Gpu gpu;
    float* const x = gpu.mine(rank);
    const auto expect = [](int code, int expected, const char* word) {
      EXPECT_EQ(code, expected);
      EXPECT_NE(std::string(laconic_last_error()).find(word), std::string::npos) << laconic_last_error();
    };
    const cudaStream_t s = gpu.stream();
    expect(laconic_nccl_allreduce(x, x, count, ncclInt8, ncclSum, nccl, s, nullptr), LACONIC_UNSUPPORTED, "datatype");
    expect(laconic_nccl_allreduce(x, x, count, ncclFloat32, ncclProd, nccl, s, nullptr), LACONIC_UNSUPPORTED, "op");
    expect(laconic_nccl_allreduce(x, x, count, ncclFloat32, ncclSum, nullptr, s, nullptr), LACONIC_INVALID_ARGUMENT,
           "comm");
    expect(laconic_nccl_allreduce(x, x, SIZE_MAX / 4 + 1 + count, ncclFloat32, ncclSum, nccl, s, &options),
           LACONIC_INVALID_ARGUMENT, "count is ");
    expect(laconic_nccl_allgather(x, gpu.room(), PTRDIFF_MAX / 4, ncclFloat32, nccl, s, &options),
           LACONIC_INVALID_ARGUMENT, "count is ");
    // A pointer to the host's memory on one rank is an error on both.
    std::vector<float> here(count);
    expect(
        laconic_nccl_allreduce(rank == 0 ? here.data() : x, gpu.room(), count, ncclFloat32, ncclSum, nccl, s, &options),
        LACONIC_INVALID_ARGUMENT, "send does not lie");
    laconic::fake::set_capturing(s, true);
    expect(laconic_nccl_allreduce(x, x, count, ncclFloat32, ncclSum, nccl, s, &options), LACONIC_UNSUPPORTED,
           "captured");
    laconic::fake::set_capturing(s, false);
    EXPECT_EQ(laconic_nccl_allreduce(x, x, count, ncclFloat32, ncclSum, nccl, s, &options), LACONIC_OK);
    EXPECT_EQ(laconic_nccl_release(nccl), LACONIC_OK);

    laconic_comm* comm = nullptr;
    expect(laconic_comm_from_nccl(nullptr, s, &comm), LACONIC_INVALID_ARGUMENT, "nccl");
    ASSERT_EQ(laconic_comm_from_nccl(nccl, s, &comm), LACONIC_OK);
    laconic_request* request = nullptr;
    expect(laconic_send(x, count, LACONIC_F32, 1 - rank, 0, comm, nullptr), LACONIC_UNSUPPORTED, "two ranks");
    expect(laconic_irecv(x, count, LACONIC_F32, 1 - rank, 0, nullptr, comm, nullptr, &request), LACONIC_UNSUPPORTED,
           "non-blocking messages");
    laconic_comm_free(comm);
  });
}

}  // namespace
