// What the programs over NCCL share: arrays of floats on a device, calls that do not block, and a count of what went
// wrong.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

constexpr std::size_t count = 100003;
inline int wrong = 0;
inline std::mutex mutex;

/// Says what is wrong unless it is good.
inline void must(bool good, const std::string& what) {
  if (good) return;
  const std::lock_guard lock(mutex);
  ++wrong;
  std::printf("%s\n", what.c_str());
}

inline float value(int rank, std::size_t i) {
  return std::sin(static_cast<float>(i) * 0.001F) + static_cast<float>(rank);
}

/// What a rank brings.
inline std::vector<float> values_of(int rank, std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = value(rank, i);
  return x;
}

/// Of a call on a communicator that does not block: what has become of it.
inline ncclResult_t settled(ncclResult_t status, ncclComm_t comm) {
  while (status == ncclInProgress) {
    must(ncclCommGetAsyncError(comm, &status) == ncclSuccess, "ncclCommGetAsyncError failed");
    std::this_thread::yield();
  }
  return status;
}

/// Device memory with contents.
class Array {
 public:
  Array(const std::vector<float>& x, cudaStream_t stream) : count_(x.size()), stream_(stream) {
    cudaMalloc(&data_, count_ * sizeof(float));
    cudaMemcpyAsync(data_, x.data(), count_ * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaStreamSynchronize(stream);
  }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  [[nodiscard]] float* at(std::size_t i) const { return static_cast<float*>(data_) + i; }
  /// In a while, as that stream has it. x must live on.
  void fill(const std::vector<float>& x, cudaStream_t stream) const {
    cudaMemcpyAsync(data_, x.data(), count_ * sizeof(float), cudaMemcpyHostToDevice, stream);
  }
  /// Everything on the stream has come to its end.
  [[nodiscard]] std::vector<float> contents() const {
    std::vector<float> x(count_);
    cudaMemcpyAsync(x.data(), data_, count_ * sizeof(float), cudaMemcpyDeviceToHost, stream_);
    cudaStreamSynchronize(stream_);
    return x;
  }

 private:
  std::size_t count_;
  cudaStream_t stream_;
  void* data_ = nullptr;
};
