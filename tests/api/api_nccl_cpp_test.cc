// The C++ interface on spans of memory of (fake) GPUs, over the fake NCCL. As a program has it: nothing of Laconic's
// own.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <laconic/laconic_nccl.h>

#include <cmath>
#include <laconic/laconic.hpp>
#include <thread>
#include <vector>

namespace {

constexpr int ranks = 2;
constexpr std::size_t count = 30011;
constexpr float bound = 1e-3F;

float element(int rank, std::size_t i) { return std::sin(static_cast<float>(i) * 0.002F) + static_cast<float>(rank); }

std::vector<float> mine(int rank) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = element(rank, i);
  return x;
}

void average(int rank, ncclComm_t nccl) {
  ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  void* there = nullptr;
  ASSERT_EQ(cudaMalloc(&there, count * sizeof(float)), cudaSuccess);
  std::vector<float> here = mine(rank);
  ASSERT_EQ(cudaMemcpyAsync(there, here.data(), count * sizeof(float), cudaMemcpyHostToDevice, stream), cudaSuccess);
  {
    laconic_comm* raw = nullptr;
    laconic::check(laconic_comm_from_nccl(nccl, nullptr, &raw));
    laconic::Comm comm(raw, {.bound = "1e-3", .mode = laconic::Mode::compressed});
    laconic::check(laconic_comm_use_device(comm.raw(), stream));
    comm.allreduce<float>({static_cast<float*>(there), count}, laconic::Op::average);
    EXPECT_THROW(comm.allreduce<float>(here, laconic::Op::sum), laconic::Error);  // not on a device
  }
  ASSERT_EQ(cudaMemcpy(here.data(), there, count * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
  for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(here[i], (element(0, i) + element(1, i)) / 2, 1.01F * bound) << i;
  cudaFree(there);
  cudaStreamDestroy(stream);
}

TEST(ApiNcclCpp, SpansOfDeviceMemory) {
  ncclComm_t comms[ranks] = {};
  ASSERT_EQ(ncclCommInitAll(comms, ranks, nullptr), ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back([&, r] { average(r, comms[r]); });
  for (std::thread& t : threads) t.join();
  for (const ncclComm_t c : comms) EXPECT_EQ(ncclCommDestroy(c), ncclSuccess);
}

}  // namespace
